import { setFlagsFromString, runInNewContext } from '#platform/engine';

let collector: (() => void) | undefined;

/** Runs the garbage collector of this thread, some milliseconds for a small heap. Returns false where that is not possible. */
export function collectGarbage(): boolean {
  collector ??= collectorHere();
  collector?.();
  return collector !== undefined;
}

function collectorHere(): (() => void) | undefined {
  const { Bun: bun } = globalThis as { readonly Bun?: { gc(force: boolean): void } };
  if (bun !== undefined) return () => bun.gc(true);
  try {
    // V8 looks at the flag when it makes a context; the program's own does not change.
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('globalThis.gc') as (() => void) | undefined;
    setFlagsFromString('--no-expose-gc');
    return gc;
  } catch {
    return undefined; // this runtime has neither
  }
}
