import { afterEach, expect, it, vi } from 'vitest';
import { limitsFrom } from '../../../src/devices/limits.js';

afterEach(() => {
  vi.restoreAllMocks();
});

it('gives later exchanges what is left of the time, whatever becomes of the date', () => {
  const { signal } = new AbortController();
  let nowMs = 5000;
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  const limits = limitsFrom({ timeoutMs: 1000, signal });
  vi.spyOn(Date, 'now').mockReturnValue(0);
  nowMs += 400;
  expect(limits()).toEqual({ signal, timeoutMs: 600 });
  nowMs += 700;
  // The exchange ends with the error of a limit that has passed.
  expect(limits()).toEqual({ signal, timeoutMs: 1 });
  expect(limitsFrom(undefined)()).toEqual({});
});
