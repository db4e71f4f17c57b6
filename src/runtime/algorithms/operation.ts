/** An operation beside the collectives, of which several may be under way at a time, as those who observe them are told. */
export interface Operation {
  readonly name: 'send' | 'recv' | 'group' | 'put' | 'get' | 'signal' | 'waitSignal' | 'flush';
  /** As a person reads it: `send of 5 float32 to rank 1`. */
  readonly text: string;
  /** The same in parts. */
  readonly args: Readonly<Record<string, string | number | boolean | readonly number[]>>;
}

/** Tells that an operation begins. What it gives is to be told how it ended: without an argument, well. */
export type Observe = (operation: Operation) => (error?: Error) => void;
