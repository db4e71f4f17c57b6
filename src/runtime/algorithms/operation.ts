import type { WindowCall } from './other-calls.js';

/** An operation beside the collectives, as observers see it. Several may run at a time. */
export interface Operation {
  readonly name: 'send' | 'recv' | 'group' | 'program' | Exclude<WindowCall, 'put with signal'>;
  /** Description for people: `send of 5 float32 to rank 1`. */
  readonly text: string;
  /** The same as separate values. */
  readonly args: Readonly<Record<string, string | number | boolean | readonly number[]>>;
}

/** Reports the begin of an operation. The returned function reports its end; without an argument if it succeeded. */
export type Observe = (operation: Operation) => (error?: Error) => void;
