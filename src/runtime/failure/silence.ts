/** A host that does not answer, as another host found out. Travels with errors from rank to rank. */
export interface Silence {
  /** Address of the silent host. */
  readonly host: string;
  /** True if the interface of the host that noticed does not run, so that the silent one may live. */
  readonly isOfOwnInterface: boolean;
}

const silences = new WeakMap<object, Silence>();

/** Records that an error is about a silent host. */
export function ofSilence<E extends object>(error: E, silence: Silence | undefined): E {
  if (silence !== undefined) silences.set(error, silence);
  return error;
}

/** The silent host that an error is about, from whichever rank it came. The rank there may live. */
export function silenceOf(error: unknown): Silence | undefined {
  return typeof error === 'object' && error !== null ? silences.get(error) : undefined;
}
