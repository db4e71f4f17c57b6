import type { Line } from '../planner/explain/answer.js';
import type { Outcome } from '../planner/log/verdict/diagnosis.js';
import type { RingOverview, Use } from '../planner/plan/overview/overview.js';
import type { Picture } from '../view/draw/picture.js';
import type { StoryStep } from '../view/why/story.js';
import type { Stage } from '../view/learn/stages.js';
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
  /** Width of pictures on a phone; undefined on larger screens, where each has the width that it needs. */
  readonly width: number | undefined;
  readonly files: readonly OpenFile[];
}

/** A reply of the worker: progress, then a result, which an answer may follow, or an error. */
export type Reply = { readonly id: number } & (
  | { readonly kind: 'progress'; readonly text: string }
  | { readonly kind: 'shown'; readonly shown: Shown; readonly isLast: boolean }
  | { readonly kind: 'error'; readonly message: string; readonly excerpt: Excerpt | undefined }
);

/** Texts for fields of the page: what a worker sends once, and completions of a question. */
export type Known =
  | {
      readonly kind: 'tables';
      /** Variables of NCCL with their meanings. */
      readonly variables: readonly (readonly [name: string, meaning: string])[];
      /** Machines of the catalogue with their descriptions. */
      readonly machines: readonly (readonly [name: string, description: string])[];
    }
  | { readonly kind: 'completions'; readonly completions: readonly (readonly [text: string, detail: string])[] };

/** The line of an error in a file, with its place marked. */
export interface Excerpt {
  readonly line: number;
  readonly before: string;
  readonly marked: string;
  readonly after: string;
}

/** The contents of all views for one state. */
export interface Shown {
  /** Undefined for a file without a machine, such as a log of warnings. */
  readonly plan: ShownPlan | undefined;
  readonly log: ShownLog | undefined;
  /** The reason why the machine that the files describe is not planned; undefined where it is, or where they describe none. */
  readonly unplanned: string | undefined;
  readonly answer: ShownAnswer | undefined;
  /** The contents of the view. */
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
  /** All that is assumed about the machines, and the command whose output leaves nothing to assume. */
  readonly assumed: { readonly facts: readonly string[]; readonly command: string };
  /** Limit of each kind of host, a sentence; its name where there are several kinds. */
  readonly limits: readonly { readonly name: string | undefined; readonly text: string }[];
  readonly devices: readonly Device[];
  /** Equal hosts of the first kind, which changes of devices are about. */
  readonly nEqual: number;
  /** Hosts of the opened file, where it says how many; undefined where the state does. */
  readonly ownCount: number | undefined;
  /** Rules that changed in this version of NCCL; undefined for the oldest one. */
  readonly news: VersionNews | undefined;
}

/** Rules that differ from those of the version before, each with a sentence. */
export interface VersionNews {
  readonly since: string;
  readonly rules: readonly (readonly [name: string, text: string])[];
}

/** The search of a graph. */
export interface ShownReport {
  readonly title: string;
  /** Number of the kind of hosts that was searched. */
  readonly host: number;
  readonly steps: readonly StoryStep[];
}

/** The contents of a view: made when it is looked at. */
export type ShownPart =
  ShownMachines | ShownCluster | ShownMatrices | ShownTimes | ShownChannels | ShownMotion | ShownWhy | ShownChanges | ShownLearn;

/** Each kind of hosts with the load of its links. */
export interface ShownMachines {
  readonly view: 'machine';
  readonly hosts: readonly { readonly name: string; readonly picture: Picture; readonly channels: readonly number[] }[];
  /** Channels whose rings go over the selected link; undefined where no link is selected. */
  readonly over: readonly number[] | undefined;
}

/** The paths of each kind of hosts. */
export interface ShownMatrices {
  readonly view: 'matrix';
  readonly hosts: readonly { readonly name: string; readonly picture: Picture }[];
  /** The path of the selected cell, on its machine. */
  readonly path: { readonly text: string; readonly picture: Picture } | undefined;
}

/** The rings of each kind of hosts, with the subjects of their ranks and network ports; and the features in use. */
export interface ShownChannels {
  readonly view: 'channels';
  readonly hosts: readonly { readonly name: string; readonly rings: readonly ShownRing[] }[];
  readonly uses: readonly Use[];
}

/** A ring, with the subjects of what it goes through. */
export interface ShownRing extends RingOverview {
  readonly subjects: readonly string[];
  readonly ends: readonly (string | undefined)[];
}

/** The search of each graph, and the doctor's findings about the machines and the cluster. */
export interface ShownWhy {
  readonly view: 'why';
  /** Picture of each kind of hosts. */
  readonly machines: readonly Picture[];
  readonly reports: readonly ShownReport[];
  readonly findings: readonly ShownFinding[];
}

/** NCCL's stages for this cluster, and exercises. */
export interface ShownLearn {
  readonly view: 'learn';
  readonly stages: readonly Stage[];
  readonly exercises: readonly Exercise[];
}

/** A question with its solution. */
export interface Exercise {
  readonly question: string;
  /** Answers to choose from; undefined where the answer is written. */
  readonly options: readonly string[] | undefined;
  readonly solution: string;
  readonly because: string;
  /** Change of the state that shows it. */
  readonly change: Partial<StudioState>;
}

/** A comparison; undefined where nothing is set that could be compared. */
export interface ShownChanges {
  readonly view: 'changes';
  readonly changes: Changes | undefined;
}

/** A channel through all nodes. */
export interface ShownCluster {
  readonly view: 'cluster';
  readonly picture: Picture;
  readonly nChannels: number;
  /** Faults of its machines, and of how they fit together. */
  readonly findings: readonly ShownFinding[];
}

/** Times of a call over sizes. */
export interface ShownTimes {
  readonly view: 'choice';
  /** Bandwidth and choice of all collectives. */
  readonly believed: Picture;
  /** Kernels on symmetric windows; undefined where no buffer lies in one. */
  readonly windows: Picture | undefined;
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

/** A GPU or network device that can be taken out or changed. */
export interface Device {
  readonly subject: string;
  readonly name: string;
  /** Its name in changes of devices. */
  readonly key: string;
  /** Subject of the card that it is a port of. */
  readonly card: string | undefined;
  readonly off: { readonly gpu: number } | { readonly nic: string };
}

/** Differences from the same machine without settings, or from another one. */
export interface Changes {
  readonly from: string;
  readonly to: string;
  readonly rules: readonly { readonly name: string; readonly lines: readonly string[] }[];
  readonly calls: readonly (readonly string[])[];
  readonly decisions: readonly (readonly string[])[];
  /** True if the pictures have marks for what differs: they are of the same machine. */
  readonly isMarked: boolean;
  /** Pictures of both sides. */
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
  /** `replayed` for traces of calls alone. */
  readonly outcome: Outcome | 'replayed';
  readonly verdict: string;
  /** The place that the verdict is about, of several: a file or a job. */
  readonly where: string;
  /** Other likely causes, with their places: those of other files, hosts or jobs. */
  readonly also: readonly (readonly [where: string, problem: string])[];
  /** Of an open question: cause, and the next step. */
  readonly open: readonly string[];
  readonly findings: readonly ShownFinding[];
  /** Positions of the ranks of each group, hosts by who waits for whom, and the machine with the GPUs of late ranks. */
  readonly ranks: readonly Picture[];
  /** Heat maps of measured pairs of hosts or GPUs. */
  readonly pairs: readonly Picture[];
  /** Facts of its communicators. */
  readonly facts: readonly string[];
  /** Its traces on the cluster; undefined where no file has calls with times. */
  readonly replay: ShownReplay | undefined;
}

/** Traces of calls beside predicted times, as `tccl replay` has them. */
export interface ShownReplay {
  /** Label and text. */
  readonly summary: readonly (readonly [label: string, text: string])[];
  /** Undefined where the cluster cannot have run the job. */
  readonly calls: ShownTable | undefined;
  readonly ranks: ShownTable | undefined;
  readonly notes: readonly string[];
}

/** A table of texts. */
export interface ShownTable {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** An answer, or the reason why there is none. */
export interface ShownAnswer {
  readonly title: Line;
  readonly lines: readonly Line[];
}
