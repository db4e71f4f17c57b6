import { describe, expect, it } from 'vitest';
import { type KnownProcesses, readLine } from '../../../../src/planner/log/lines/line.js';
import { readMessage, readTransport } from '../../../../src/planner/log/lines/message.js';
import { readLines } from './read.js';

describe('a line of NCCL', () => {
  const noProcess: KnownProcesses = {
    hasHost: () => false,
    hasHosts: () => false,
    hostLike: () => undefined,
    isSeenAgain: () => false,
  };

  it.each([
    ['INFO', '[1] NCCL INFO Bootstrap: Using eth0', undefined],
    ['WARN', '[1] init.cc:327 (initTransportsRank) NCCL WARN Bootstrap: Using eth0', 'init.cc:327'],
    // Level ATTN of 2.32.3 is less than a warning.
    ['INFO', '[1] init.cc:327 (initTransportsRank) NCCL ATTN Bootstrap: Using eth0', 'init.cc:327'],
    ['INFO', '[1] init.cc:327 NCCL ATTN Bootstrap: Using eth0', 'init.cc:327'],
  ])('is of level %s: %s', (level, text, source) => {
    expect(readLine(`node1:12:34 ${text}`, noProcess).lines).toMatchObject([
      { host: 'node1', pid: 12, tid: 34, cudaDev: 1, level, source, message: 'Bootstrap: Using eth0', torn: false },
    ]);
  });
});

describe('a message of NCCL', () => {
  it.each([
    ['2.8', 'comm 0x7fde18000fb0 rank 3 nranks 16 cudaDev 3 busId 5d000 - Init COMPLETE', 'init-complete', {}],
    [
      '2.16',
      'comm 0x55bc31870680 rank 0 nranks 32 cudaDev 0 busId 170 commId 0x837dd0976e1b4338 - Init COMPLETE',
      'init-complete',
      { commId: '0x837dd0976e1b4338' },
    ],
    [
      '2.18',
      'comm 0x5648da365f80 rank 22 nranks 32 cudaDev 6 nvmlDev 6 busId 1d0 commId 0x837dd0976e1b4338 - Init START',
      'init-start',
      { rank: 22, busId: '1d0' },
    ],
    [
      '2.21',
      'ncclCommInitRank comm 0x562b5cc5cba0 rank 4 nranks 16 cudaDev 4 nvmlDev 4 busId 901c0 commId 0x9c65e97761265de2 - Init START',
      'init-start',
      { nRanks: 16 },
    ],
    [
      '2.22, split',
      'ncclCommSplit comm 0x1a rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId 2000 parent 0x9b color 3 key 1 commId 0xab - Init START',
      'init-start',
      { parent: '0x9b', color: 3, commId: '0xab' },
    ],
    [
      '2.26, split',
      'ncclCommSplit comm 0x1a rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId 2000 parent 0x9b splitCount 1 color -1203 key 1- Init START',
      'init-start',
      { parent: '0x9b', color: -1203 },
    ],
    [
      '2.30, split',
      '[Rank 1] ncclCommSplit comm 0x1a rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId 2000 parent 0x9b childCount 2 color 7 key 1 - Init COMPLETE',
      'init-complete',
      { parent: '0x9b', color: 7 },
    ],
    [
      '2.30',
      '[Rank 3] ncclCommInitRankConfig comm 0x55d0 rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 5d000 commId 0x1f - Init COMPLETE',
      'init-complete',
      { rank: 3, nvmlDev: 3 },
    ],
  ])('of %s reports init', (_, message, kind, facts) => {
    expect(readMessage(message)).toMatchObject({ kind, ...facts });
  });

  it.each([
    ['P2P/direct pointer', { family: 'P2P', name: 'P2P/direct pointer' }],
    ['P2P/CUMEM/read', { family: 'P2P', name: 'P2P/CUMEM' }],
    ['P2P/IPC/CE', { family: 'P2P', name: 'P2P/IPC' }],
    ['P2P/MNNVL', { family: 'P2P', name: 'P2P/MNNVL' }],
    ['P2P/indirect/3[5d000]', { family: 'P2P', name: 'P2P/indirect', via: 3 }],
    ['SHM/direct', { family: 'SHM', name: 'SHM/direct' }],
    ['SHM/direct/CE', { family: 'SHM', name: 'SHM/direct' }],
    ['NET/Socket/0', { family: 'NET', name: 'NET/Socket', network: 'Socket', nic: 0, gdr: false }],
    ['NET/Socket/1 (eth1)', { family: 'NET', name: 'NET/Socket', network: 'Socket', nic: 1, gdr: false }],
    ['NET/IB/5/GDRDMA/Shared', { family: 'NET', name: 'NET/IB', network: 'IB', nic: 5, gdr: true }],
    ['NET/IB/3(5)/GDRDMA', { family: 'NET', name: 'NET/IB', network: 'IB', nic: 3, via: 5, gdr: true }],
    ['NET/IB/3/GDRDMA(PCI)', { family: 'NET', name: 'NET/IB', network: 'IB', nic: 3, gdr: true }],
    ['NET/AWS Libfabric/2/GDRDMA', { family: 'NET', name: 'NET/AWS Libfabric', network: 'AWS Libfabric', nic: 2, gdr: true }],
    ['NET/IBext_v8/0', { family: 'NET', name: 'NET/IBext_v8', network: 'IBext_v8', nic: 0, gdr: false }],
    ['COLLNET/SHARP/0/GDRDMA', { family: 'COLLNET', name: 'COLLNET/SHARP', network: 'SHARP', nic: 0, gdr: true }],
  ])('has the transport %s', (text, transport) => {
    expect(readTransport(text)).toEqual(transport);
  });

  it.each(['P2', 'P2P/', 'NET/IB/', 'NET/S', 'NET/Socket/0 (eth', 'SHM/direct/direct/direct', ''])(
    'has no transport %j',
    (text) => {
      expect(readTransport(text)).toBeUndefined();
    },
  );

  it.each([
    [
      'Channel 00/24 : 0 1 2 3 4 5 6 7',
      { kind: 'ring-order', channel: 0, nChannels: 24, ranks: [0, 1, 2, 3, 4, 5, 6, 7], cut: false },
    ],
    ['Channel 03/04 :    0   1', { kind: 'ring-order', channel: 3, nChannels: 4, ranks: [0, 1], cut: false }],
    ['Channel 00/16 :   0   7   6   1...', { kind: 'ring-order', ranks: [0, 7, 6], cut: true }],
    [
      'Channel 01 : 3[ca000] -> 2[c7000] [send] via NET/IB/2/GDRDMA',
      { kind: 'connection', channel: 1, from: 3, to: 2, end: 'send' },
    ],
    ['Channel 01/0 : 2[c7000] -> 0[87000] [receive] via NET/IB/5', { kind: 'connection', end: 'receive' }],
    // As the source of 2.31 prints it.
    [
      'Channel 00/0 : 0[0] -> 1[0] [receive] via NET/IB/0/GDRDMA(PCI)/Shared/flush=C2c',
      { kind: 'connection', end: 'receive', transport: { family: 'NET', network: 'IB', gdr: true } },
    ],
    ['Channel 00/0 : 0[0] -> 1[0] [receive] via NET/IB/0/GDRDMA/flush=', { kind: 'cut' }],
    [
      'Input: { .comm = 0x55e0, .tuningMask = 111, .func = AllReduce, .redOp = 0, .devRedop = 0, .dataType = 7, .nBytes = 1048576, .numPipesOps = 1, .count = 262144, .countMax = 262144, .nWorks = 1, .winRegType = 0, .regBuff = 0 }',
      { kind: 'tuning-input', collective: 'AllReduce', bytes: 1_048_576 },
    ],
    [
      'Best tuning { .id = 5, .valid = 1, timeUs = 23.400000,  .algo = RING, .proto = SIMPLE, .symKernelId = Unknown, nChannels = 16, maxChannels = 16, nWarps = 16, forced = 0 }',
      { kind: 'tuned', algorithm: 'RING', protocol: 'SIMPLE', channels: 16 },
    ],
    [
      'Best tuning { .id = 23, .valid = 1, timeUs = 9.100000,  .algo = Unknown, .proto = Unknown, .symKernelId = AllReduce_RSxLDMC_AGxSTMC, nChannels = 8, maxChannels = 8, nWarps = 16, forced = 0 }',
      { kind: 'tuned', algorithm: 'AllReduce_RSxLDMC_AGxSTMC', protocol: '', channels: 8 },
    ],
    // The form of a later file.
    [
      'Best tuning { .id = 40, .valid = 1, timeUs = 80.000000, .algo = Unknown, .proto = Unknown, .symKernelId = Unknown, .ceMethodId = AllGather_MC, nChannels = 0, maxChannels = 0, nWarps = 0, forced = 0 }',
      { kind: 'tuned', algorithm: 'copy engines AllGather_MC', protocol: '', channels: 0 },
    ],
    [
      'Channel 07 : 2[6] -> 3[7] via SHM/direct/direct',
      { kind: 'connection', channel: 7, end: 'send', transport: { family: 'SHM' } },
    ],
    ['Ring 02 : 2 -> 0 -> 1', { kind: 'ring', channel: 2, prev: 2, rank: 0, next: 1 }],
    [
      'Trees [0] 1/2/-1->0->-1 [1] -1/-1/-1->0->1',
      {
        kind: 'trees',
        rank: 0,
        links: [
          { channel: 0, down: [1, 2, -1], up: -1 },
          { channel: 1, down: [-1, -1, -1], up: 1 },
        ],
      },
    ],
    ['Tree 1 : 1 -> 3 -> 2/-1/-1', { kind: 'other' }],
    [
      'Pattern 4, crossNic 0, nChannels 12, bw 30.000000/30.000000, type NVL/PIX, sameChannels 1',
      { kind: 'search', result: { pattern: 4, nChannels: 12, bwInter: 30, typeInter: 'PIX', sameChannels: true } },
    ],
    [
      'Pattern 4, crossNic 0, nChannels 4, speed 1.200000/1.200000, type SYS/SYS, sameChannels 0',
      { kind: 'search', result: { bwIntra: 1.2, sameChannels: false } },
    ],
    ['NVLS Head  3:  6 14', { kind: 'nvls-head', head: 3, ranks: [6, 14] }],
    [
      '2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, 1 p2p channels per peer',
      { kind: 'channel-counts', coll: 2, nvls: 0, p2p: 2 },
    ],
    [
      '24 coll channels, 32 p2p channels, 32 p2p channels per peer',
      { kind: 'channel-counts', coll: 24, nvls: undefined, p2p: 32 },
    ],
    ['NCCL version 2.19.3+cuda12.2', { kind: 'version', version: '2.19.3+cuda12.2' }],
    ['NCCL_IB_HCA set by environment to mlx5_0,mlx5_1.', { kind: 'environment', name: 'NCCL_IB_HCA', value: 'mlx5_0,mlx5_1' }],
    ['NCCL_P2P_LEVEL set by environment to LOC', { kind: 'environment', value: 'LOC' }],
    ['NCCL_SOCKET_IFNAME set to eth0', { kind: 'environment', value: 'eth0' }],
    [
      'NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB ens16f1:10.0.0.1<0>',
      {
        kind: 'devices',
        network: 'IB',
        devices: [
          { number: 0, name: 'mlx5_0' },
          { number: 1, name: 'mlx5_1' },
        ],
      },
    ],
    ['NET/IB : No device found.', { kind: 'devices', network: 'IB', devices: [] }],
    ['Connected all rings, use ring PXN 1 GDR 0', { kind: 'connected', what: 'rings', pxn: true, gdr: false }],
    ['Connected all rings', { kind: 'connected', what: 'rings' }],
    [
      'Init timings - ncclCommInitRank: rank 0 nranks 8 total 1.25 (kernels 0.20, alloc 0.4, bootstrap 0.1',
      { kind: 'init-timing', rank: 0, seconds: 1.25 },
    ],
    ['Init timings: rank 0 nranks 8 total 0.50 (kernels 0.20', { kind: 'init-timing', seconds: 0.5 }],
    [
      'AllReduce: 1048576 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..15}',
      { kind: 'choice', collective: 'AllReduce', bytes: 1_048_576, algorithm: 'RING', channels: 16 },
    ],
    ['NVLS multicast support is not available on dev 0', { kind: 'nvls-support', available: false }],
    ['NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)', { kind: 'nvls-support', available: true }],
    ['GPU/0-18000 :GPU/0-18000 (0/5000.0/LOC) GPU/0-2a000 (2/370.8/NVL) NVS/0-0 (1/370.8/NVL)', { kind: 'nvlink' }],
    ['GPU/100000 :GPU/100000 (0/5000.000000/LOC) GPU/200000 (2/360.000000/NVL)', { kind: 'nvlink' }],
    ['comm 0x55 rank 1 nRanks 16 nNodes 2 localRanks 8 localRank 1 MNNVL 0', { kind: 'nodes', rank: 1, nRanks: 16, nNodes: 2 }],
    ['transport/net.cc:1302 -> 6', { kind: 'returned', where: 'transport/net.cc:1302', result: 6 }],
    ['comm 0x55 rank 0 nranks 2 cudaDev 0 busId f000 - Destroy COMPLETE', { kind: 'ended', address: '0x55' }],
    ['Channel 00/02 : 0[0] -> 1', { kind: 'cut' }],
    ['Trees [0] 1/-1', { kind: 'cut' }],
    ['P2P Chunksize set to 524288', { kind: 'other' }],
  ])('%j is understood', (message, event) => {
    expect(readMessage(message)).toMatchObject(event);
  });
});

describe('a rank of NCCL 2.31', () => {
  it('chose what `Best tuning` says for the call of the `Input` before it', () => {
    const line = (text: string) => `node1:12:34 [0] NCCL INFO ${text}`;
    const asked = (bytes: number) =>
      line(`Input: { .comm = 0x1a, .tuningMask = 1, .func = AllReduce, .redOp = 0, .nBytes = ${bytes}, .numPipesOps = 1 }`);
    const best = (way: string) =>
      line(`Best tuning { .id = 5, .valid = 1, timeUs = 9.0,  ${way}, nChannels = 4, maxChannels = 4, nWarps = 16, forced = 0 }`);
    const model = readLines([
      line('ncclCommInitRank comm 0x1a rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1000 commId 0xab - Init START'),
      line('ncclCommInitRank comm 0x1a rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1000 commId 0xab - Init COMPLETE'),
      asked(8),
      best('.algo = RING, .proto = LL, .symKernelId = Unknown'),
      // An answer whose question was cut off.
      best('.algo = TREE, .proto = LL, .symKernelId = Unknown'),
      asked(1024),
      best('.algo = Unknown, .proto = Unknown, .symKernelId = AllReduce_AGxLL_R'),
    ]);
    const choices = [...(model.communicators[0]?.ranks.get(0)?.choices ?? [])];
    expect(choices).toMatchObject([
      ['AllReduce 8', { algorithm: 'RING', protocol: 'LL', channels: 4 }],
      ['AllReduce 1024', { algorithm: 'AllReduce_AGxLL_R', protocol: '', channels: 4 }],
    ]);
  });
});
