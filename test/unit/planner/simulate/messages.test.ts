import { describe, expect, it } from 'vitest';
import { defaultParameters, machine, prepareCluster, simulatorOf } from '../../../../src/planner/index.js';
import type { PairMessage } from '../../../../src/planner/schedule/pairs.js';

const simulatorOn = (count: number) =>
  simulatorOf(prepareCluster({ hosts: [{ machine: machine('dgx-h100'), count }] }, defaultParameters), defaultParameters);
const oneHost = simulatorOn(1);
const twoHosts = simulatorOn(2);

/** Messages of all ranks to all, with as many bytes as `bytesOf` says. */
const allToAll = (nRanks: number, bytesOf: (from: number, to: number) => number): PairMessage[] =>
  Array.from({ length: nRanks * nRanks }, (_, pair) => {
    const [from, to] = [Math.floor(pair / nRanks), pair % nRanks];
    return { from, to, bytes: bytesOf(from, to) };
  });

describe('messages between ranks', () => {
  it.each([
    ['one host', oneHost, 2 ** 14],
    ['one host', oneHost, 2 ** 27],
    ['two hosts', twoHosts, 2 ** 20],
    ['two hosts', twoHosts, 2 ** 26],
  ])('of equal sizes between all take as long as an all-to-all: %s, %#', (_, simulator, bytes) => {
    const { nRanks } = simulator;
    const whole = simulator.simulate('AllToAll', bytes, { unfolded: true });
    const { timeUs = 0, protocol } = simulator.simulateMessages(allToAll(nRanks, () => bytes / nRanks)) ?? {};
    expect(protocol).toBe(whole?.protocol);
    expect(timeUs / (whole?.timeUs ?? 0)).toBeCloseTo(1, 2);
  });

  it.each([2 ** 12, 2 ** 22, 2 ** 30])('around a circle take as long as nccl-tests’ sendrecv of %d bytes', (bytes) => {
    const circle = Array.from({ length: 8 }, (_, from) => ({ from, to: (from + 1) % 8, bytes }));
    expect((oneHost.simulateMessages(circle)?.timeUs ?? 0) / (oneHost.simulate('SendRecv', bytes)?.timeUs ?? 0)).toBeCloseTo(
      1,
      2,
    );
  });

  it('of different sizes take as long as the fullest rank needs', () => {
    const even = oneHost.simulateMessages(allToAll(8, () => 2 ** 23))?.timeUs ?? 0;
    // The same bytes in total, of which rank 0 gets half.
    const uneven = oneHost.simulateMessages(allToAll(8, (_, to) => (to === 0 ? 2 ** 25 : 2 ** 25 / 7)))?.timeUs ?? 0;
    expect(uneven / even).toBeGreaterThan(3);
    expect(uneven / even).toBeLessThan(4.5);
  });

  it('of the same two ranks are put together, and none is no call', () => {
    const one = oneHost.simulateMessages([{ from: 0, to: 5, bytes: 2 ** 20 }]);
    const two = oneHost.simulateMessages([1, 2].map(() => ({ from: 0, to: 5, bytes: 2 ** 19 })));
    expect(two).toEqual(one);
    expect(oneHost.simulateMessages([{ from: 0, to: 0, bytes: 8 }])).toBeUndefined();
    expect(oneHost.simulateMessages([{ from: 0, to: 1, bytes: 0 }])).toBeUndefined();
  });

  it('to a rank that is not there are refused', () => {
    expect(() => oneHost.simulateMessages([{ from: 0, to: 8, bytes: 8 }])).toThrow('a message from rank 0 to rank 8 of 8 ranks');
  });
});
