import type { Outcome } from '../planner/log/diagnosis.js';
import type { RingOverview } from '../planner/plan/overview/overview.js';
import type { Picture } from '../view/draw/picture.js';
import type { StoryStep } from '../view/why/story.js';
import type { Motion } from '../view/motion/motion.js';
import type { StudioState } from './state.js';

/** A file in the page; its key is another one for other contents. */
export interface OpenFile {
  readonly key: number;
  readonly name: string;
  readonly blob: Blob;
}

/** A state to be shown, and all opened files. */
export interface Request {
  readonly id: number;
  readonly state: StudioState;
  readonly files: readonly OpenFile[];
}

/** A reply of the worker: progress, then either a result or an error. */
export type Reply = { readonly id: number } & (
  | { readonly kind: 'progress'; readonly text: string }
  | { readonly kind: 'shown'; readonly shown: Shown }
  | { readonly kind: 'error'; readonly message: string }
);

/** The contents of all views for one state. */
export interface Shown {
  /** Undefined for a file without a machine, such as a log of warnings. */
  readonly plan: ShownPlan | undefined;
  readonly log: ShownLog | undefined;
  readonly answer: ShownAnswer | undefined;
  /** The contents of a view that is made when it is looked at. */
  readonly part: ShownPart | undefined;
  /** Time of the worker for it, ms. */
  readonly tookMs: number;
}

/** A planned cluster. */
export interface ShownPlan {
  readonly title: string;
  /** Number, and what it counts. */
  readonly figures: readonly (readonly [value: string, label: string])[];
  readonly notes: readonly string[];
  /** Sentence on the limit of each kind of host. */
  readonly limits: readonly string[];
  readonly uses: readonly { readonly name: string; readonly used: string; readonly text: string }[];
  readonly hosts: readonly ShownHost[];
  readonly choice: Picture;
  readonly changes: ShownChanges | undefined;
  readonly reports: readonly ShownReport[];
  readonly findings: readonly ShownFinding[];
}

/** The search of a graph. */
export interface ShownReport {
  readonly title: string;
  /** Number of the kind of hosts that was searched. */
  readonly host: number;
  readonly steps: readonly StoryStep[];
}

/** Contents of the views of {@link viewsOnDemand}. */
export type ShownPart = ShownCluster | ShownTimes | ShownMotion;

/** A channel through all nodes. */
export interface ShownCluster {
  readonly view: 'cluster';
  readonly picture: Picture;
  readonly nChannels: number;
}

/** Times of a call over sizes. */
export interface ShownTimes {
  readonly view: 'choice';
  readonly picture: Picture;
  /** A sentence on what is missing; undefined where nothing is. */
  readonly note: string | undefined;
}

/** A simulated call on one channel; a text where it cannot be shown. */
export interface ShownMotion {
  readonly view: 'motion';
  readonly summary: string;
  readonly motion: Motion | undefined;
  readonly nChannels: number;
}

/** A kind of hosts. */
export interface ShownHost {
  readonly name: string;
  readonly machine: Picture;
  readonly matrix: Picture;
  readonly rings: readonly (RingOverview & {
    readonly subjects: readonly string[];
    readonly ends: readonly (string | undefined)[];
  })[];
  readonly devices: readonly Device[];
}

/** A GPU or network device that can be taken out. */
export interface Device {
  readonly subject: string;
  readonly name: string;
  readonly off: { readonly gpu: number } | { readonly nic: string };
}

/** Differences from the same machine without settings. */
export interface ShownChanges {
  readonly from: string;
  readonly to: string;
  readonly rules: readonly { readonly name: string; readonly lines: readonly string[] }[];
  readonly calls: readonly (readonly string[])[];
  readonly decisions: readonly (readonly string[])[];
  /** Pictures of both sides, where the machines are not the same. */
  readonly pictures: readonly (readonly [Picture, Picture])[];
}

/** A finding of the doctor, or of a log. */
export interface ShownFinding {
  readonly severity: 'error' | 'warning' | 'info';
  readonly problem: string;
  readonly why: string;
  readonly remedy: string;
  readonly lines: readonly string[];
}

/** The diagnosis of all opened files, as `tccl diagnose` has it. */
export interface ShownLog {
  readonly outcome: Outcome;
  readonly verdict: string;
  /** Of an open question: cause, and the next step. */
  readonly open: readonly string[];
  readonly findings: readonly ShownFinding[];
  /** Facts of its communicators. */
  readonly facts: readonly string[];
}

/** An answer, or the reason why there is none. */
export interface ShownAnswer {
  readonly title: string;
  readonly sentences: readonly string[];
}
