import { describe, expect, it } from 'vitest';
import { ConnectionTable, type Move, type Worker } from '../../../../src/planner/schedule/schedule.js';
import { runClock } from '../../../../src/planner/simulate/clock.js';
import type { Timing } from '../../../../src/planner/simulate/timing.js';

/** Ten bytes a µs, without any other cost. */
function timingOf(count: number): Timing {
  const all = (value: number) => new Float64Array(count).fill(value);
  return {
    writeRate: all(10),
    readRate: all(10),
    wireRate: all(Infinity),
    sharedRate: all(Infinity),
    stepUs: all(0),
    sendUs: all(0),
    latencyUs: all(0),
    creditUs: all(0),
    copyRate: new Float64Array(4).fill(10),
    copySliceUs: 0,
    sliceUs: 0,
    rendezvousUs: 0,
    rendezvousBytes: Infinity,
    operandCost: 0,
    sumCost: 0,
    cutsThrough: false,
    slots: 8,
    slicing: { slices: 1, leastBytes: 0 },
  };
}

const copy = (bytes: number, batch: number): Move => ({ receive: [], input: 0, send: [], output: 0, bytes, batch });
const worker = (rank: number, ...moves: Move[]): Worker => ({ rank, channel: 0, moves: () => moves });

describe('batches of a thread block', () => {
  it('begin when all workers of the block are done with the previous one; other blocks do not wait', () => {
    const workers = [
      worker(0, copy(10, 0), copy(10, 1)),
      worker(0, copy(100, 0), copy(10, 1)),
      worker(0, copy(30, 0)),
      worker(1, copy(10, 0), copy(10, 1)),
    ];
    expect([...runClock(workers, [], timingOf(0)).endUs]).toEqual([11, 11, 3, 2]);
  });

  it('may have numbers that some workers skip', () => {
    const workers = [worker(0, copy(10, 0), copy(10, 2)), worker(0, copy(20, 1), copy(10, 2)), worker(0, copy(50, 0))];
    expect([...runClock(workers, [], timingOf(0)).endUs]).toEqual([8, 8, 5]);
  });

  it('that wait for each other over connections are a deadlock', () => {
    const table = new ConnectionTable();
    const there = table.add(0, 1, 0);
    const back = table.add(1, 0, 0);
    const receive = (connection: number, batch: number): Move => ({ ...copy(10, batch), receive: [connection], input: -1 });
    const send = (connection: number, batch: number): Move => ({ ...copy(10, batch), send: [connection], output: -1 });
    const workers = [
      worker(0, receive(back, 0)),
      worker(0, send(there, 1)),
      worker(1, receive(there, 0)),
      worker(1, send(back, 1)),
    ];
    expect(() => runClock(workers, table.all, timingOf(2))).toThrow(/deadlocks/);
  });
});

it('a worker that shares its thread block with others reads what it receives at its part of the rate', () => {
  const table = new ConnectionTable();
  const there = table.add(0, 1, 0);
  const workers = [
    worker(0, { ...copy(10, 0), send: [there], output: -1 }),
    worker(1, { ...copy(10, 0), receive: [there], input: -1 }),
  ];
  const readBy = (rate: number) =>
    runClock(workers, table.all, { ...timingOf(1), readRate: new Float64Array([rate]) }).endUs[1] ?? 0;
  expect(readBy(10)).toBe(2);
  expect(readBy(2)).toBe(6);
});
