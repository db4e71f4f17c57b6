import type { LogFindingCode } from './codes.js';

/**
 * The part that a finding plays, from the likeliest root cause down:
 * a `fault` names what is broken or set wrong; a `failure` is a call that failed, with its usual causes; a `symptom` follows
 * from something else; a `cost` works but is slow; a `risk` matters only if the job did not get through init; an `outcome`
 * says how the job ended; a `note` is good to know.
 */
export type Kind = 'fault' | 'failure' | 'symptom' | 'cost' | 'risk' | 'outcome' | 'note';

/** Meaning of a line of text, of NCCL or of programs around it. To add a rule, add one of these to a table. */
export interface LineRule {
  /** Stable name, shared by rules that name one cause. */
  readonly code: LogFindingCode;
  readonly kind: Kind;
  /** Lower-case texts; only lines that contain one of them are matched. Rare ones keep reading fast. */
  readonly needles: readonly string[];
  /**
   * Pattern that the line must match, too, in linear time on any line. Its groups are `$1` to `$9` in `problem`; a group named
   * `host`, `node` or `pod` is the place.
   */
  readonly pattern?: RegExp;
  /** Text that a matching line must not contain. */
  readonly except?: RegExp;
  /** The problem, in one sentence without a full stop. */
  readonly problem: string;
  readonly cause: string;
  /** The remedy, beginning with the next command or setting. */
  readonly remedy: string;
  /** Codes of findings that this one causes: they are shown as its consequences. */
  readonly explains?: readonly LogFindingCode[];
  /** A state of the machine that goes on after an init that succeeded. */
  readonly lasts?: boolean;
  /** A state that holds until the next boot, however old the kernel's line is. */
  readonly untilBoot?: boolean;
  /** Programs catch this failure and go on: it is none where lines of progress follow, and nothing else failed. */
  readonly isCatchable?: boolean;
  /** Makes no finding of its own; other checks ask for it. */
  readonly isSilent?: boolean;
  /** Concerns only jobs on several hosts. */
  readonly network?: boolean;
  /** Thread or source where such lines are explained. */
  readonly source?: string;
}
