import { describe, expect, it } from 'vitest';
import { findingsOf } from './read.js';

const init = (pid: number, rank: number) =>
  `node1:${pid}:${pid} [${rank}] NCCL INFO ncclCommInitRank comm 0xa${pid} rank ${rank} nranks 2 cudaDev ${rank} nvmlDev ${rank} busId ${rank}000 commId 0x77 - Init COMPLETE`;
const call = (pid: number, device: number, opCount: number, operation: string, count: number, address = `0xa${pid}`) =>
  `node1:${pid}:${pid} [${device}] NCCL INFO ${operation}: opCount ${opCount.toString(16)} sendbuff 0x7f01 recvbuff 0x7f02 count ${count} datatype 7 op 0 root 0 comm ${address} [nranks=2] stream 0x5501`;
const differences = (lines: readonly string[]) => findingsOf(lines).filter(({ code }) => code === 'calls-differ');

describe('collectives in a log', () => {
  it('that differ between ranks are named with both ranks and their calls', () => {
    const [found] = differences([
      init(10, 0),
      init(11, 1),
      call(10, 0, 0, 'AllReduce', 8),
      call(10, 0, 1, 'AllGather', 4),
      call(11, 1, 0, 'AllReduce', 8),
      call(11, 1, 1, 'AllReduce', 1),
    ]);
    expect(found?.problem).toBe(
      'ranks call different collectives as number 1: AllGather of 4 float32 on node1:10 device 0, but AllReduce of 1 float32 on node1:11 device 1',
    );
    expect(found?.places.map(({ line }) => line)).toEqual([4, 6]);
  });

  it('of one group share a number and are compared in their order', () => {
    const group = (pid: number, device: number, counts: readonly number[]) =>
      counts.map((count) => call(pid, device, 3, 'AllReduce', count));
    expect(differences([...group(10, 0, [1, 2]), ...group(11, 1, [1, 2])])).toEqual([]);
    expect(differences([...group(10, 0, [1, 2]), ...group(11, 1, [2, 1])])).toHaveLength(1);
  });

  it('are not compared if messages are counted too', () => {
    expect(differences([call(10, 0, 0, 'Send', 5), call(10, 0, 1, 'AllReduce', 8), call(11, 1, 1, 'AllReduce', 9)])).toEqual([]);
  });

  it('are not compared if a process has two communicators of that size that the log does not distinguish', () => {
    expect(
      differences([
        call(10, 0, 0, 'AllReduce', 8, '0xb1'),
        call(10, 0, 0, 'AllReduce', 9, '0xb2'),
        call(11, 1, 0, 'AllReduce', 9, '0xb3'),
      ]),
    ).toEqual([]);
  });
});
