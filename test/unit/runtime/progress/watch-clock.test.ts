import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { afterWatching, WatchClock } from '../../../../src/runtime/progress/watch-clock.js';

let nowMs = 5;
beforeEach(() => {
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** Time that a clock counts between looks at this distance. */
function counted(clock: WatchClock, ...gapsMs: number[]): number {
  const begun = clock.look();
  for (const gapMs of gapsMs) {
    nowMs += gapMs;
    clock.look();
  }
  return clock.look() - begun;
}

test('all time counts for a rank that looks often', () => {
  expect(counted(new WatchClock(10_000), ...Array<number>(500).fill(20))).toBe(10_000);
});

test('a time without a look counts no more than a quarter of the limit, and of long limits no more than four seconds', () => {
  expect(counted(new WatchClock(2000), 20, 3_600_000, 20)).toBe(540);
  expect(counted(new WatchClock(8000), 20, 3_600_000, 20)).toBe(1040);
  expect(counted(new WatchClock(600_000), 20, 3_600_000, 20)).toBe(4040);
  // Short limits: the time between looks of ranks that wait for sockets counts in full.
  expect(counted(new WatchClock(20), 50, 50)).toBe(100);
});

test('a delayed action runs once, and time in which the process was stopped does not count', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const action = vi.fn();
    const pass = (ms: number): void => {
      for (let i = 0; i < ms; i += 10) {
        nowMs += 10;
        vi.advanceTimersByTime(10);
      }
    };
    afterWatching(1000, action);
    pass(500);
    nowMs += 60_000;
    pass(200);
    expect(action).not.toHaveBeenCalled();
    pass(200);
    expect(action).toHaveBeenCalledOnce();
    pass(5000);
    expect(action).toHaveBeenCalledOnce();
    afterWatching(100, action)();
    pass(5000);
    expect(action).toHaveBeenCalledOnce();
  } finally {
    vi.useRealTimers();
  }
});
