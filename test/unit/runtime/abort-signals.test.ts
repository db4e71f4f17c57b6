import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { withAnySignal } from '../../../src/runtime/abort-signals.js';

/** Rejects with the reason of a signal. */
const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    signal.addEventListener('abort', () => reject(signal.reason as Error));
  });

describe('withAnySignal', () => {
  it('aborts with the first signal, and for its reason', async () => {
    const [one, other] = [new AbortController(), new AbortController()];
    const work = withAnySignal([one.signal, undefined, other.signal], untilAborted);
    other.abort(new Error('other'));
    one.abort(new Error('one'));
    await expect(work).rejects.toThrow('other');
  });

  it('is aborted at once by a signal that was', async () => {
    const aborted = AbortSignal.abort(new Error('before'));
    await expect(withAnySignal([new AbortController().signal, aborted], untilAborted)).rejects.toThrow('before');
  });

  it('leaves no listener on a signal that outlives the work', async () => {
    const { signal } = new AbortController();
    expect(await withAnySignal([signal], () => Promise.resolve(1))).toBe(1);
    await expect(withAnySignal([signal], () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});
