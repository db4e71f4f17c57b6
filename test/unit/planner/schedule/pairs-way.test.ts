import { describe, expect, it } from 'vitest';
import { machine, pairsWay, parametersFromEnvironment, plan } from '../../../../src/planner/index.js';

const KiB = 1024;
const wayOf = (version: string, bytes: number, hosts = 1) =>
  pairsWay(plan({ hosts: [{ machine: machine('dgx-h100'), count: hosts }] }, parametersFromEnvironment({}, version).parameters), {
    collective: 'SendRecv',
    bytes,
    root: 0,
  });

describe('messages between pairs', () => {
  it('take LL up to 16 KiB a channel of the peer from 2.22 to 2.28, and a channel of the message since', () => {
    const largest = (version: string) =>
      [8, 16, 64, 256, 512, 1024].filter((size) => wayOf(version, size * KiB).protocol === 'LL').at(-1);
    // All-to-all of eight H100 grows without a jump up to 4 MiB with 2.28.9, and jumps beyond 128 KiB with 2.29.2.
    expect(['2.21.5', '2.28.9', '2.29.2', '2.30.7'].map(largest)).toEqual([16, 512, 16, 16]);
  });

  it('count the channels of LL by its own smaller steps where LL is decided first', () => {
    expect(wayOf('2.28.9', 32 * KiB)).toMatchObject({ protocol: 'LL', channelsPerMessage: 4, chunkBytes: 32 * KiB });
    expect(wayOf('2.30.7', 32 * KiB)).toMatchObject({ protocol: 'Simple', channelsPerMessage: 1, chunkBytes: 512 * KiB });
  });

  it('have smaller chunks over the network if they are small', () => {
    expect([64, 512, 4096].map((size) => wayOf('2.30.7', size * KiB, 2).chunkBytes / KiB)).toEqual([32, 64, 128]);
  });
});
