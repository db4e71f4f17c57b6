import { describe, expect, it } from 'vitest';
import { interleaved, madeLog, planMachines, randomFrom } from './made-log.js';
import { codes, findingsOf, readLines } from './read.js';

const heads = (host: string, pid: number, rank: number, messages: readonly string[]) =>
  messages.map((message) => `${host}:${pid}:${pid + 90} [${rank % 2}] NCCL INFO ${message}`);

/** Lines of real machines, from public issues. */
describe('lines of real machines', () => {
  // NVIDIA/nccl#2397, NCCL 2.30.4: two hosts with two GPUs without NVLink, dual-port NICs merged.
  const trees = [
    'Trees [0] 1/2/-1->0->-1 [1] 1/-1/-1->0->2',
    'Trees [0] -1/-1/-1->1->0 [1] -1/-1/-1->1->0',
    'Trees [0] 3/-1/-1->2->0 [1] 3/0/-1->2->-1',
    'Trees [0] -1/-1/-1->3->2 [1] -1/-1/-1->3->2',
  ];
  const shrunk = trees.flatMap((tree, rank) =>
    heads(`n${Math.floor(rank / 2)}`, 70 + (rank % 2), rank, [
      `[Rank ${rank}] ncclCommInitRank comm 0x5${rank} rank ${rank} nranks 4 cudaDev ${rank % 2} nvmlDev ${rank % 2} busId ${(rank % 2) + 1}000 commId 0xfeed - Init START`,
      ...(rank === 0 ? ['Channel 00/02 : 0 1 2 3', 'Channel 01/02 : 0 1 2 3'] : []),
      tree,
      ...(rank % 2 === 0
        ? [`Channel 00 : ${rank}[0] -> ${rank + 1}[1] via SHM/direct/direct`]
        : [`Channel 00/0 : ${rank}[1] -> ${(rank + 1) % 4}[0] [send] via NET/IB/2/GDRDMA`]),
      'threadThresholds 8/8/64 | 32/8/64 | 512 | 512',
      '2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, 1 p2p channels per peer',
      `[Rank ${rank}] ncclCommInitRank comm 0x5${rank} rank ${rank} nranks 4 cudaDev ${rank % 2} nvmlDev ${rank % 2} busId ${(rank % 2) + 1}000 commId 0xfeed - Init COMPLETE`,
    ]),
  );

  it('of four GPUs on two hosts are consistent; shared memory is right without NVLink', () => {
    expect(codes(findingsOf(shrunk))).toEqual([]);
    const [communicator] = readLines(shrunk).communicators;
    expect([...communicator!.ranks.get(2)!.trees]).toEqual([3, -1, -1, 0, 3, 0, -1, -1]);
  });

  it('of a hang in that communicator name the rank that stopped first', () => {
    const hung = shrunk.filter((line) => !line.includes('COMPLETE') && !(line.startsWith('n1:71') && !line.includes('START')));
    expect(findingsOf(hung)[0]).toMatchObject({
      code: 'init-unfinished',
      severity: 'error',
      cause: expect.stringMatching(/^rank 3 had begun|^rank 3 /) as string,
    });
  });

  // NVIDIA/nccl#1153, of 2.18 or 2.19: the paths of an H100 machine.
  it('of NVLink paths make shared memory a finding', () => {
    const path =
      'GPU/100000 :GPU/100000 (0/5000.000000/LOC) GPU/200000 (2/360.000000/NVL) NVS/0 (1/360.000000/NVL) CPU/0 (2/48.000000/PHB)';
    const lines = shrunk.flatMap((line) =>
      line.startsWith('n0:70') && line.includes('Trees') ? [...heads('n0', 70, 0, [path]), line] : [line],
    );
    expect(codes(findingsOf(lines))).toEqual(['shm-despite-nvlink error']);
  });

  // NVIDIA/nccl#671, of 2.10: one process with four GPUs, bus ids in brackets.
  it('of one process with several GPUs are assigned to ranks by thread', () => {
    const lines = [0, 1, 2, 3].flatMap((rank) => [
      `como:60725:${60748 + rank} [${rank}] NCCL INFO Trees [0] ${rank < 3 ? rank + 1 : -1}/-1/-1->${rank}->${rank - 1}`,
      `como:60725:${60748 + rank} [${rank}] NCCL INFO Channel 00 : ${rank}[${6 + rank}000] -> ${(rank + 1) % 4}[${6 + ((rank + 1) % 4)}000] via P2P/direct pointer`,
      `como:60725:${60748 + rank} [${rank}] NCCL INFO comm 0x7f${rank} rank ${rank} nranks 4 cudaDev ${rank} busId ${6 + rank}000 - Init COMPLETE`,
    ]);
    const { communicators } = readLines(
      interleaved(
        [0, 1, 2, 3].map((rank) => lines.slice(rank * 3, rank * 3 + 3)),
        randomFrom(4),
      ),
    );
    expect(communicators).toHaveLength(1);
    expect(
      [...communicators[0]!.ranks.values()].map(({ links }) => links.map(({ peer, transport }) => `${peer} ${transport.name}`)),
    ).toEqual([['1 P2P/direct pointer'], ['2 P2P/direct pointer'], ['3 P2P/direct pointer'], ['0 P2P/direct pointer']]);
    expect(codes(findingsOf(lines))).toEqual([]);
  });

  // NVIDIA/nccl-tests#188: two hosts with the same name; each connection that crosses them is right.
  it('of hosts with the same name give no findings about connections within a host', () => {
    const lines = shrunk.map((line) => line.replace(/^n(\d):7(\d):16(\d)/, 'user:$17$2:9$1$2'));
    expect(codes(findingsOf(lines))).toEqual([]);
  });

  it('that connect at run time, by threads of their own, are assigned to the existing communicator', () => {
    const made = madeLog(planMachines('dgx-h100', 2)).map((lines) => {
      const late = lines.filter((line) => line.includes(' via ') || line.includes('Connected'));
      return [...lines.filter((line) => !late.includes(line)), ...late.map((line) => line.replace(/:(\d+) \[/, ':7$1 ['))];
    });
    const lines = interleaved(made, randomFrom(8));
    const { communicators } = readLines(lines);
    expect(communicators).toHaveLength(1);
    expect([...communicators[0]!.ranks.values()].every(({ links }) => links.length > 0)).toBe(true);
    expect(codes(findingsOf(lines))).toEqual([]);
  });
});
