import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CallQueue } from '../../../../src/runtime/algorithms/call-queue.js';
import { CheckedCall } from '../../../../src/runtime/communicator/checked-call.js';
import type { Engine } from '../../../../src/runtime/algorithms/engine.js';
import type { QueuedCall } from '../../../../src/runtime/algorithms/queued-call.js';
import { Ending } from '../../../../src/runtime/failure/ending.js';
import { Board } from '../../../../src/runtime/device/board.js';
import { DONE, PENDING } from '../../../../src/runtime/device/kernels/kernels.js';
import { Segment } from '../../../../src/runtime/device/segment.js';
import { Progress } from '../../../../src/runtime/progress/progress.js';
import { dataTypeOf } from '../../../../src/runtime/device/types.js';
import { RemoteError } from '../../../../src/errors.js';

const TIMEOUT_MS = 1000;
/** Tolerance of the time at which that is found. */
const LATE_MS = 100;

/** A queue whose calls progress and end only when the test says so. */
function queue() {
  const state = { steps: 0, getsFurther: false, isDone: false, wake: (): void => undefined };
  const engine: { -readonly [P in keyof Engine]: Engine[P] } = {
    blocking: false,
    begin: () => PENDING,
    progress: () => {
      if (state.getsFurther) state.steps++;
      return state.isDone ? DONE : PENDING;
    },
    get steps() {
      return state.steps;
    },
    polled: false,
    parkAfterMs: 0,
    wakeOn: ({ wake }) => {
      state.wake = wake;
    },
    check: () => undefined,
    late: () => [1],
    reportWait: () => undefined,
    forwardReport: () => undefined,
    underWay: () => undefined,
    doing: () => undefined,
    abort: () => undefined,
    close: () => Promise.resolve(),
  };
  const fail = vi.fn((error: unknown) => error);
  const calls = new CallQueue({
    engine,
    rank: 0,
    libc: undefined,
    spins: 1,
    patience: 0,
    limits: { timeoutMs: TIMEOUT_MS, warnAfterMs: 0 },
    warn: () => undefined,
    fail,
    ending: new Ending(),
    messages: {
      throwRecordedFailure: () => undefined,
      forwardReport: () => undefined,
      readReports: () => undefined,
      doing: () => undefined,
    },
    progress: new Progress(undefined),
    parkedRanks: Segment.alone().parkedRanks,
    recorder: Board.ofOwn().show({ id: '0.0', name: undefined, rank: 0, nRanks: 2 }),
  });
  return { state, engine, calls, fail };
}

const array = new Float32Array(1);
const call: QueuedCall = { code: 0, type: dataTypeOf(array), root: 0, send: array, recv: array, count: 1, details: undefined };

it('a blocking call succeeds when its data arrived before another rank left, even if it polls late', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    const { state, engine, calls, fail } = queue();
    let turns = 0;
    engine.rest = () => {
      vi.advanceTimersByTime(100);
      state.isDone = ++turns === 3;
    };
    engine.check = () => {
      if (state.isDone) throw new RemoteError('RANK_DIED', 'rank 1 died', { rank: 1 });
    };
    calls.run(new CheckedCall(0, 2).allReduce(array, array, 'sum', undefined));
    expect([turns, fail.mock.calls]).toEqual([3, []]);
  } finally {
    vi.useRealTimers();
  }
});

it('a blocking call reports its wait a few dozen times, at any number of polls', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    const { state, engine, calls } = queue();
    let said = 0;
    engine.underWay = () => ({
      kind: 'allReduce',
      type: dataTypeOf(array),
      operator: 'sum',
      root: 0,
      count: 1,
      algorithm: 'ring',
    });
    engine.reportWait = () => {
      said++;
      return undefined;
    };
    let turns = 0;
    engine.rest = () => {
      vi.advanceTimersByTime(1);
      state.isDone = ++turns === TIMEOUT_MS - 1;
    };
    calls.run(new CheckedCall(0, 2).allReduce(array, array, 'sum', undefined));
    expect(said).toBeGreaterThan(4);
    expect(said).toBeLessThan(33);
  } finally {
    vi.useRealTimers();
  }
});

it('a blocking call finishes promise calls before it, and polls none that has ended', async () => {
  const { state, engine, calls } = queue();
  const log: string[] = [];
  let left = 0;
  engine.begin = ({ count }) => {
    log.push(`begin ${count}`);
    left = count;
    return PENDING;
  };
  engine.progress = () => {
    if (left === 0) throw new Error('nothing is under way');
    state.steps++;
    return --left === 0 ? DONE : PENDING;
  };
  const ended = [2, 1].map((count) => calls.start({ ...call, count }).then(() => log.push(`end ${count}`)));
  calls.run(new CheckedCall(0, 2).allReduce(new Float32Array(3), new Float32Array(3), 'sum', undefined));
  expect(log).toEqual(['begin 2', 'begin 1', 'begin 3']);
  await Promise.all(ended);
  expect(log.slice(3)).toEqual(['end 2', 'end 1']);
});

describe('a call that waits for news', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('fails after too long without progress, and names the straggler', async () => {
    const { calls, fail } = queue();
    void calls.start(call);
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS - 1);
    expect(fail).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1 + LATE_MS);
    expect(fail).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: 'TIMEOUT', ranks: [1] }));
  });

  it('fails with the error of another rank if that arrives while it looks for the straggler', async () => {
    const { engine, calls, fail } = queue();
    void calls.start(call);
    engine.late = () => {
      engine.check = () => {
        throw new RemoteError('RANK_DIED', 'rank 1 died', { rank: 1 });
      };
      return [];
    };
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS + LATE_MS);
    expect(fail).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: 'RANK_DIED', rank: 1 }));
  });

  it('is polled once more before it fails: data that arrived while the thread was busy count', async () => {
    const { state, calls, fail } = queue();
    const done = calls.start(call);
    state.isDone = true;
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS + LATE_MS);
    expect(fail).not.toHaveBeenCalled();
    await done;
  });

  it('restarts its timeout at each progress', async () => {
    const { state, calls, fail } = queue();
    void calls.start(call);
    state.getsFurther = true;
    for (let step = 0; step < 3; step++) {
      await vi.advanceTimersByTimeAsync(TIMEOUT_MS - 100);
      state.wake();
    }
    state.getsFurther = false;
    expect(fail).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS + LATE_MS);
    expect(fail).toHaveBeenCalledOnce();
  });

  it('does not count the time in which this process is stopped', async () => {
    const { calls, fail } = queue();
    void calls.start(call);
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS / 2);
    const now = performance.now.bind(performance);
    const stopped = vi.spyOn(performance, 'now').mockImplementation(() => now() + 100 * TIMEOUT_MS);
    try {
      await vi.advanceTimersByTimeAsync(TIMEOUT_MS / 2 - TIMEOUT_MS / 4 - LATE_MS);
      expect(fail).not.toHaveBeenCalled();
      await vi.advanceTimersByTimeAsync(3 * LATE_MS);
      expect(fail).toHaveBeenCalledOnce();
    } finally {
      stopped.mockRestore();
    }
  });

  it('leaves no deadline behind when it finishes during another wait', async () => {
    const { state, calls, fail } = queue();
    const done = calls.start(call);
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS - 100);
    state.isDone = true;
    calls.poll(1);
    await done;
    state.isDone = false;
    void calls.start(call);
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS - 100);
    expect(fail).not.toHaveBeenCalled();
  });
});

it.each(['start', 'startChain'] as const)(
  'a loop of calls that finish immediately lets the event loop turn (%s)',
  async (form) => {
    const { engine, calls } = queue();
    engine.begin = () => DONE;
    const turn = { hasBeen: false };
    setImmediate(() => (turn.hasBeen = true));
    // Without a turn, this takes some seconds.
    for (let n = 0; !turn.hasBeen && n < 1e6; n++) await calls[form](call);
    expect(turn.hasBeen).toBe(true);
  },
);
