import { expect, it } from 'vitest';
import { evenBlocks } from '../../../../src/planner/schedule/moves.js';
import { RelayMoves } from '../../../../src/planner/schedule/relay-moves.js';
import { RingMoves } from '../../../../src/planner/schedule/ring-moves.js';

const cut = { sliceBytes: 64, slicesPerChunk: 2, grainBytes: 16, meets: true };
const blocks = evenBlocks(4, 200, { offset: 0, bytes: 200 });

it.each<[string, (moves: RingMoves) => void]>([
  ['all-reduce', (moves) => moves.startAllReduce(5000, 0)],
  ['all-reduce of nothing', (moves) => moves.startAllReduce(0, 0)],
  ['broadcast', (moves) => moves.startBroadcast(700, 2, true, 0)],
  ['broadcast from the rank behind', (moves) => moves.startBroadcast(700, 0, true, 0)],
  ['reduce', (moves) => moves.startReduce(700, 1, 0)],
  ['all-gather', (moves) => moves.startAllGather(blocks, true)],
  ['reduce-scatter', (moves) => moves.startReduceScatter(blocks)],
  ['barrier', (moves) => moves.startBarrier()],
])('passes on as many messages of the same lengths as the other rank sends: %s', (_, start) => {
  const sender = new RingMoves([0, 1, 2, 3], 3, cut);
  const sent: number[] = [];
  start(sender);
  while (!sender.done) {
    if (sender.sends === 1) sent.push(sender.bytes);
    sender.next();
  }
  expect(sent.length).toBeGreaterThan(0);

  const other = new RingMoves([0, 1, 2, 3], 3, cut);
  const relay = new RelayMoves(other);
  start(other);
  const passed: number[] = [];
  relay.start();
  while (!relay.done) {
    expect(relay).toMatchObject({ receives: 1, sends: 1, own: -1, keep: -1, isPlain: true });
    passed.push(relay.bytes);
    relay.next();
  }
  expect(passed).toEqual(sent);
});
