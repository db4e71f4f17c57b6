import { closeSync, writeSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { collectGarbage } from '../../../../src/runtime/device/collect-garbage.js';
import { loadLibc } from '../../../../src/runtime/device/libc.js';
import { Segment } from '../../../../src/runtime/device/segment.js';
import { createMemory } from '../../../../src/runtime/device/shared-memory.js';
import { Team } from '../../../../src/runtime/device/team.js';
import { Progress, type Waitable } from '../../../../src/runtime/progress/progress.js';

type Changes = Partial<{ -readonly [P in keyof Waitable]: Waitable[P] }>;

/** Waits until `isDone`; `changes` replace what it does otherwise. */
function waitable(isDone: () => boolean, changes: Changes = {}): Waitable & { failure: unknown } {
  const one = {
    polled: true,
    spins: 0,
    parkAfterMs: 0,
    checkEveryMs: Infinity,
    isPending: true,
    failure: undefined as unknown,
    poll: (): boolean => {
      if (!isDone()) return false;
      one.isPending = false;
      return true;
    },
    check: (): void => undefined,
    fail: (error: unknown): void => {
      one.failure = error;
      one.isPending = false;
    },
    wakeOn: (): void => undefined,
    ...changes,
  };
  return one;
}

function libc(): Extract<ReturnType<typeof loadLibc>, { libc: unknown }>['libc'] {
  const { libc, reason } = loadLibc();
  if (libc === undefined) throw new Error(reason);
  return libc;
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('in the event loop', () => {
  beforeEach(() => {
    // No wait ends by its own timer.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('a rank of the same host wakes a parked thread that waits for it, and no other rank does', async () => {
    const memory = createMemory(1024);
    const [parked, other, third] = [0, 1, 2].map((rank) => Team.ofAll(Segment.ofThreads(memory, rank, 3)));
    const progress = new Progress(libc());
    let isDone = false;
    let looks = 0;
    const isThere = (): boolean => {
      looks++;
      return isDone;
    };
    progress.add(waitable(isThere, { wakeOn: (sources) => sources.addMember(parked!, 1) }));
    await turn();
    const before = looks;
    third!.segment.parkedRanks.wake();
    for (let turns = 0; turns < 20; turns++) await turn();
    expect(looks).toBe(before);
    isDone = true;
    other!.segment.parkedRanks.wake();
    while (looks === before) await turn();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('a wait that has ended keeps no memory of the ranks that it waited for', async () => {
    const progress = new Progress(libc());
    const memory = await (async () => {
      const shared = createMemory(1024);
      const [parked, other] = [0, 1].map((rank) => Team.ofAll(Segment.ofThreads(shared, rank, 2)));
      let isDone = false;
      const one = waitable(() => isDone, { wakeOn: (sources) => sources.addMember(parked!, 1) });
      progress.add(one);
      await turn();
      isDone = true;
      other!.segment.parkedRanks.wake();
      while (one.isPending) await turn();
      return new WeakRef(shared);
    })();
    await turn();
    collectGarbage();
    expect(memory.deref()).toBeUndefined();
    progress.poll();
  });

  it('a thread that has waited for long can be woken again after a wake in vain', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const memory = createMemory(1024);
    const [parked, other] = [0, 1].map((rank) => Team.ofAll(Segment.ofThreads(memory, rank, 2)));
    const progress = new Progress(libc());
    let isDone = false;
    let looks = 0;
    const isThere = (): boolean => {
      looks++;
      return isDone;
    };
    const one = waitable(isThere, { wakeOn: (sources) => sources.addMember(parked!, 1) });
    progress.add(one);
    await turn();
    for (let seconds = 0; seconds < 2; seconds++) {
      vi.advanceTimersByTime(1000);
      await turn();
    }
    const before = looks;
    other!.segment.parkedRanks.wake();
    while (looks === before) await turn();
    isDone = true;
    other!.segment.parkedRanks.wake();
    for (let turns = 0; turns < 1000 && one.isPending; turns++) await turn();
    expect(one.isPending).toBe(false);
  });

  it('an error while wake sources are collected ends its operation', async () => {
    const progress = new Progress(libc());
    const broken = waitable(() => false, {
      wakeOn: () => {
        throw new Error('broken');
      },
    });
    progress.add(broken);
    await turn();
    expect([broken.failure, broken.isPending]).toEqual([new Error('broken'), false]);
    vi.runAllTimers();
    await turn();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('news between the last poll and parking is not missed', async () => {
    const memory = createMemory(1024);
    const [parked, other] = [0, 1].map((rank) => Team.ofAll(Segment.ofThreads(memory, rank, 2)));
    const progress = new Progress(libc());
    let isDone = false;
    const one = waitable(() => isDone, {
      wakeOn: (sources) => {
        sources.addMember(parked!, 1);
        isDone = true;
        other!.segment.parkedRanks.wake();
      },
    });
    progress.add(one);
    await turn();
    expect(one.isPending).toBe(false);
  });

  it('a descriptor wakes a parked thread', async () => {
    const { readEnd, writeEnd } = libc().pipe();
    const progress = new Progress(libc());
    let bytes = 0;
    const one = waitable(() => (bytes += Math.max(0, libc().readFd(readEnd))) > 0, {
      wakeOn: (sources) => sources.addFd(readEnd, true, false),
    });
    progress.add(one);
    await turn();
    expect(one.isPending).toBe(true);
    libc().writeFd(writeEnd);
    while (one.isPending) await turn();
    libc().close(readEnd);
    libc().close(writeEnd);
  });
});

describe('blocking', () => {
  it('an error while wake sources are collected ends its operation', () => {
    const progress = new Progress(libc());
    const broken = waitable(() => false, {
      wakeOn: () => {
        throw new Error('broken');
      },
    });
    const other = waitable(() => !broken.isPending);
    progress.enlist(other);
    progress.runUntil(broken, () => !broken.isPending);
    expect([broken.failure, other.failure]).toEqual([new Error('broken'), undefined]);
  });

  it('all operations in flight progress during a wait for one of them', () => {
    const progress = new Progress(libc());
    const order: string[] = [];
    const other = waitable(() => order.push('other') > 0);
    progress.enlist(other);
    progress.runUntil(
      waitable(() => !other.isPending && order.push('own') > 0),
      () => order.includes('own'),
    );
    expect(order).toEqual(['other', 'own']);
  });

  it('an error ends its operation and no other', () => {
    const progress = new Progress(libc());
    const broken = waitable(() => {
      throw new Error('broken');
    });
    progress.enlist(broken);
    let looks = 0;
    const own = waitable(() => ++looks > 2);
    progress.runUntil(own, () => !own.isPending);
    expect(broken.failure).toEqual(new Error('broken'));
    expect(own.failure).toBeUndefined();
  });

  it('an operation that always progresses does not stop the checks of others', () => {
    let nowMs = 1;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => (nowMs += 1));
    try {
      const progress = new Progress(libc());
      let checks = 0;
      progress.enlist(
        waitable(() => false, {
          check: () => {
            checks++;
          },
        }),
      );
      const busy = waitable(() => false, { parkAfterMs: 10, poll: () => true });
      progress.runUntil(busy, () => checks > 3);
      expect(checks).toBe(4);
    } finally {
      clock.mockRestore();
    }
  });

  it('an operation without a wake source does not keep others from being woken', () => {
    let nowMs = 1;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => (nowMs += 1000));
    const real = libc();
    const sleep = vi.spyOn(real, 'sleep');
    const { readEnd, writeEnd } = real.pipe();
    try {
      const progress = new Progress(real);
      progress.enlist(waitable(() => false, { polled: false }));
      const looks: number[] = [];
      const own = waitable(() => looks.push(nowMs) > 40, {
        wakeOn: (sources) => {
          // News that arrive after the wait has begun.
          if (looks.length === 10) writeSync(writeEnd, 'x');
          sources.addFd(readEnd, true, false);
        },
      });
      progress.runUntil(own, () => !own.isPending);
      expect(sleep.mock.calls.filter(([us]) => us > 0)).toEqual([]);
    } finally {
      closeSync(readEnd);
      closeSync(writeEnd);
      sleep.mockRestore();
      clock.mockRestore();
    }
  });

  it('an operation without a wake source is polled at intervals', () => {
    const progress = new Progress(undefined);
    let looks = 0;
    const own = waitable(() => ++looks > 100, { wakeOn: (sources) => sources.pollToo() });
    progress.runUntil(own, () => !own.isPending);
    expect(looks).toBe(101);
  });
});
