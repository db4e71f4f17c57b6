import { Board } from '../../../../src/runtime/device/board.js';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Messenger, type Condition } from '../../../../src/runtime/messages/messenger.js';
import { Ending } from '../../../../src/runtime/failure/ending.js';
import { Progress } from '../../../../src/runtime/progress/progress.js';
import { int32 } from '../../../../src/runtime/device/types.js';
import { ranks, type Rank } from '../algorithms/ranks-in-one-thread.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const idle = { check: () => undefined, doing: () => undefined };

function messenger({ p2p, segment }: Rank, progress = new Progress(undefined), ending = new Ending()): Messenger {
  return new Messenger({
    recorder: Board.ofOwn().show({ id: '0.0', name: undefined, rank: 0, nRanks: 2 }),
    rank: 0,
    pointToPoint: p2p,
    progress,
    parkedRanks: segment.parkedRanks,
    spins: 20,
    limits: { timeoutMs: 600_000, warnAfterMs: 30_000 },
    warn: () => undefined,
    collectives: idle,
    fail: (error) => error,
    ending,
  });
}

test('a wait that is ended after its rank has left fails like one that is ended before', () => {
  const [a] = ranks(2) as [Rank, Rank];
  const messages = messenger(a);
  let hasLeft = false;
  let outcome: Error | undefined;
  const condition: Condition = {
    isMet: () => {
      if (hasLeft) throw new Error('left');
      return false;
    },
    awaited: () => [1],
    polled: false,
    overSockets: false,
    wakeOn: () => undefined,
    text: 'a wait',
    settled: (error) => (outcome = error),
  };
  messages.waitFor(condition);
  hasLeft = true;
  messages.endWait(condition, () => new Error('in vain'));
  expect(outcome?.message).toBe('in vain');
  expect(messages.isPending).toBe(false);
});

test('a wait that begins after the communicator failed fails immediately, such as the flush of a closed window', () => {
  const [a] = ranks(2) as [Rank, Rank];
  const ending = new Ending();
  const messages = messenger(a, new Progress(undefined), ending);
  messages.abort(ending.end(new Error('rank 1 did not call')));
  const waitFor = (isMet: boolean): string => {
    let outcome = 'waits';
    const settled = (): void => void (outcome = 'met');
    messages.waitFor({
      isMet: () => isMet,
      awaited: () => [1],
      polled: false,
      overSockets: true,
      wakeOn: () => undefined,
      text: 'a wait',
      settled,
    });
    return outcome;
  };
  expect(waitFor(true)).toBe('met');
  expect(() => waitFor(false)).toThrow('rank 1 did not call');
  expect(messages.isPending).toBe(false);
});

test('a message that begins during a long wait for another one is polled immediately', async () => {
  const [a, b] = ranks(2) as [Rank, Rank];
  const messages = messenger(a);
  void messages.start(false, 1, new Int32Array(1), int32);
  // Until it sleeps: that timer never runs.
  for (let turn = 0; vi.getTimerCount() === 0; turn++) {
    if (turn > 100_000) throw new Error('it never sleeps');
    vi.advanceTimersByTime(1);
    await new Promise(setImmediate);
  }
  const sent = messages.start(true, 1, a.segment.alloc(Int32Array, 100_000), int32);
  b.p2p.add(false, 0, new Int32Array(100_000), int32, { settled: () => undefined });
  b.p2p.progress();
  expect(b.p2p.inFlight.pending).toBe(0);
  await sent;
});

test('consecutive blocking waits in one turn of the event loop progress all that was started', () => {
  const progress = new Progress(undefined);
  const pairs = [ranks(2), ranks(2)] as [Rank, Rank][];
  const messengers = pairs.map(([a]) => messenger(a, progress));
  for (const round of ['first', 'second']) {
    let received = 0;
    for (const one of messengers) {
      one.pointToPoint.add(false, 1, new Int32Array(1), int32, { settled: () => received++ });
      one.kick();
    }
    for (const [, b] of pairs) {
      b.p2p.add(true, 0, new Int32Array(1), int32, { settled: () => undefined });
      b.p2p.progress();
    }
    let turns = 0;
    messengers[0]?.waitUntil(() => {
      if (++turns > 10_000) throw new Error(`the ${round} wait never ends`);
      return received === 2;
    });
    expect(received).toBe(2);
  }
});
