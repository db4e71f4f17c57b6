import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { GraphId, Pattern } from '../../../../src/planner/graph/graph.js';
import type { AlignedGraphs } from '../../../../src/planner/graph/merge/align.js';
import { countChannels } from '../../../../src/planner/graph/merge/channel-count.js';
import { contradictions, refuseContradictions } from '../../../../src/planner/graph/merge/contradictions.js';
import { nvlsLinks } from '../../../../src/planner/graph/merge/links.js';
import { type Merged, mergeHosts } from '../../../../src/planner/graph/merge/merge.js';
import { parametersFromEnvironment } from '../../../../src/planner/parameters.js';
import { plan } from '../../../../src/planner/plan/plan.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import { CpuArch } from '../../../../src/planner/topology/system.js';
import { PathType } from '../../../../src/planner/topology/types.js';
import { graph, host } from './made-hosts.js';

const parametersOf = (environment: Record<string, string>) => parametersFromEnvironment(environment).parameters;

describe('number of channels', () => {
  const made = (environment: Record<string, string>, { hosts = 1, channels = 3, compCap = 80, bwIntra = 12 } = {}) => {
    const ways = Array.from({ length: channels }, () => [0, 1]);
    const run = { host: host(ways, { graphs: { ring: graph(ways, { bwIntra }) }, rank: { compCap } }), count: hosts };
    return mergeHosts([run], parametersOf(environment));
  };

  it.each([
    ['doubled', {}, {}, 6],
    ['doubled again from Hopper on with fast links between hosts', {}, { hosts: 2, compCap: 90, bwIntra: 48 }, 12],
    ['not on one host', {}, { hosts: 1, compCap: 90, bwIntra: 48 }, 6],
    ['not with slow links', {}, { hosts: 2, compCap: 90, bwIntra: 45 }, 6],
    ['not from 16 on', {}, { hosts: 2, compCap: 90, bwIntra: 48, channels: 8 }, 16],
    ['at most NCCL_MAX_NCHANNELS', { NCCL_MAX_NCHANNELS: '4' }, {}, 4],
    ['which wins over NCCL_MAX_NRINGS', { NCCL_MAX_NCHANNELS: '5', NCCL_MAX_NRINGS: '2' }, {}, 5],
    ['and is at least 1', { NCCL_MAX_NCHANNELS: '-5' }, {}, 1],
    ['at most NCCL_MAX_CTAS', { NCCL_MAX_CTAS: '2' }, {}, 2],
    ['which counts only above 0', { NCCL_MAX_CTAS: '0' }, {}, 6],
    ['at most what arguments have room for', { NCCL_WORK_ARGS_BYTES: '80' }, {}, 3],
    ['which is no limit below the header', { NCCL_WORK_ARGS_BYTES: '31' }, {}, 6],
    ['at least NCCL_MIN_NCHANNELS', { NCCL_MIN_NCHANNELS: '20' }, {}, 20],
    ['up to 64', { NCCL_MIN_NCHANNELS: '100' }, {}, 64],
    ['at least NCCL_MIN_CTAS', { NCCL_MIN_CTAS: '7' }, {}, 7],
    ['which NCCL_MAX_CTAS lowers', { NCCL_MIN_CTAS: '9', NCCL_MAX_CTAS: '2' }, {}, 2],
    ['doubled with GPUDirect-TCPX between hosts', { NCCL_NET: 'GPUDirectTCPX_v7' }, { hosts: 2 }, 12],
    ['on top of fast links', { NCCL_NET: 'GPUDirectTCPX_v7' }, { hosts: 2, compCap: 90, bwIntra: 48, channels: 2 }, 16],
    ['not on one host', { NCCL_NET: 'GPUDirectTCPX_v7' }, {}, 6],
    ['not with its successor', { NCCL_NET: 'FasTrak_TCPXO' }, { hosts: 2 }, 6],
    ['not from 16 on', { NCCL_NET: 'GPUDirectTCPX_v7' }, { hosts: 2, channels: 8 }, 16],
    [
      'not with NCCL_UNPACK_DOUBLE_NCHANNELS=0',
      { NCCL_NET: 'GPUDirectTCPX_v7', NCCL_UNPACK_DOUBLE_NCHANNELS: '0' },
      { hosts: 2 },
      6,
    ],
  ])('%s', (_, environment, facts, expected) => {
    expect(made(environment, facts).nChannels).toBe(expected);
  });

  it('of a communicator that shares the resources of another: no more than that has, whatever is asked', () => {
    const ways = (count: number) => Array.from({ length: count }, () => [0, 1]);
    const merged = (channels: number, environment: Record<string, string>, parent?: Merged) => {
      const run = { host: host(ways(channels), { graphs: { ring: graph(ways(channels), { bwIntra: 12 }) } }), count: 2 };
      return mergeHosts([run], parametersOf(environment), undefined, parent);
    };
    const small = merged(2, { NCCL_MAX_P2P_NCHANNELS: '2', NCCL_P2P_NET_CHUNKSIZE: '65536' });
    expect([small.nChannels, small.p2p.nChannels, small.p2p.chunkBytes]).toEqual([4, 2, 65536]);
    const child = merged(3, { NCCL_MIN_NCHANNELS: '32', NCCL_MIN_P2P_NCHANNELS: '16' }, small);
    expect([child.nChannels, child.p2p.nChannels, child.p2p.chunkBytes]).toEqual([4, 2, 65536]);
    expect(merged(1, {}, small).nChannels).toBe(2);
  });

  it('are those that NCCL 2.30.7 counts', () => {
    // The lines of connect.cc named in docs/notes/merge.md, compiled with stand-ins for the rest; -2 is unset, and 0 channels of
    // a parent are no parent.
    const [, ...rows] = readFileSync(new URL('channel-counts.csv', import.meta.url), 'utf8')
      .trim()
      .split('\n');
    const counted = rows.map((row) => {
      const [n, nNodes, local, minCompCap, bwIntra, unpack, doubles, min, max, minCtas, maxCtas, parent, collnet, chain] = row
        .split(',')
        .map(Number) as [number, number, number, number, number, ...number[]];
      const parameters = parametersOf({
        NCCL_UNPACK_DOUBLE_NCHANNELS: String(doubles),
        NCCL_MIN_CTAS: String(minCtas),
        NCCL_MAX_CTAS: String(maxCtas),
        ...(unpack === 1 ? { NCCL_NET: 'GPUDirectTCPX_v7' } : {}),
        ...(min === -2 ? {} : { NCCL_MIN_NCHANNELS: String(min) }),
        ...(max === -2 ? {} : { NCCL_MAX_NCHANNELS: String(max) }),
      });
      const graphs = { ring: { nChannels: n, bwIntra }, collnetChain: { bwIntra: chain, bwInter: 12 } } as AlignedGraphs;
      const facts = { nRanks: nNodes * local, nNodes, minCompCap, graphs, collnet: collnet === 1, nvlsChannels: 0 };
      const shared = parent === 0 ? {} : { parent: { nChannels: parent!, nvls: undefined } };
      const { collChannels } = countChannels({ ...facts, ...shared }, parameters);
      return [...row.split(',').slice(0, -1), collChannels].join(',');
    });
    expect(counted.length).toBe(160);
    expect(counted).toEqual(rows);
  });

  it.each([
    ['2.30.7', 24, 16, 256],
    ['2.29.7', 24, 16, 128],
  ])('of NVLink SHARP that is shared, in NCCL %s', (ncclVersion, parents, childs, chunkKiB) => {
    const { parameters } = parametersFromEnvironment(
      { NCCL_NVLS_NCHANNELS: '16', NCCL_NVLS_CHUNKSIZE: String(256 * 1024) },
      ncclVersion,
    );
    const parent = plan({ hosts: [{ machine: machine('dgx-h100'), count: 1 }] }, parameters);
    expect(parent.nvls?.nChannels).toBe(16);
    const asked = parametersFromEnvironment({ NCCL_NVLS_NCHANNELS: String(parents) }, ncclVersion).parameters;
    const child = plan({ hosts: [{ machine: machine('dgx-h100'), count: 1 }] }, asked, { parent });
    expect([child.nvls?.nChannels, child.nvls?.chunkBytes]).toEqual([childs, chunkKiB * 1024]);
  });

  it('channels beyond those of the graphs repeat them from the first', () => {
    const { treeOfChannel, ringOfChannel } = made({ NCCL_MAX_NCHANNELS: '4', NCCL_MIN_NCHANNELS: '10' });
    expect([...treeOfChannel]).toEqual([0, 1, 2, 3, 0, 1, 2, 3, 0, 1]);
    expect([...ringOfChannel]).toEqual([0, 1, 2, 0, 0, 1, 2, 0, 0, 1]);
  });
});

describe('contradictions', () => {
  const unset = '; unset one of them';
  it.each([
    [
      { NCCL_MIN_NCHANNELS: '8', NCCL_MAX_NRINGS: '4' },
      `NCCL_MIN_NCHANNELS=8 is above NCCL_MAX_NRINGS=4: NCCL would take at most 4 channels, then copy them until there are 8${unset}`,
    ],
    [
      { NCCL_MIN_NRINGS: '8', NCCL_MAX_CTAS: '1' },
      `NCCL_MIN_NRINGS=8 is above NCCL_MAX_CTAS=1: NCCL would take at most 1 channel, then copy them until there are 8${unset}`,
    ],
    [{ NCCL_MIN_CTAS: '8', NCCL_MAX_CTAS: '4' }, `NCCL_MIN_CTAS=8 is above NCCL_MAX_CTAS=4: NCCL would set both to 4${unset}`],
    [
      { NCCL_MIN_CTAS: '8', NCCL_MAX_NCHANNELS: '4' },
      `NCCL_MIN_CTAS=8 is above NCCL_MAX_NCHANNELS=4: NCCL would take at most 4 channels, then copy them until there are 8${unset}`,
    ],
    [
      { NCCL_MIN_P2P_NCHANNELS: '8', NCCL_MAX_P2P_NCHANNELS: '4' },
      `NCCL_MIN_P2P_NCHANNELS=8 is above NCCL_MAX_P2P_NCHANNELS=4: NCCL would use 8 channels for send and receive${unset}`,
    ],
    [
      { NCCL_MAX_P2P_NCHANNELS: '0' },
      'NCCL_MAX_P2P_NCHANNELS=0 leaves no channel: NCCL would use 1 channel for send and receive; set it to 1 or more, or unset it',
    ],
    [
      { NCCL_P2P_SCHEDULE_GROUP_SIZE: '0' },
      'NCCL_P2P_SCHEDULE_GROUP_SIZE=0 is below 1, and NCCL would divide by it; set it to 1 or more, or unset it',
    ],
    [
      { NCCL_P2P_PER_CHANNEL_NET_BW: '0' },
      'NCCL_P2P_PER_CHANNEL_NET_BW=0 is below 1, and NCCL would divide by it; set it to 1 or more, or unset it',
    ],
  ])('%o', (environment, message) => {
    expect(contradictions(parametersOf(environment))).toEqual([message]);
  });

  it('are reported all together', () => {
    const all = parametersOf({ NCCL_MIN_NCHANNELS: '8', NCCL_MAX_NCHANNELS: '4', NCCL_P2P_SCHEDULE_GROUP_SIZE: '0' });
    expect(() => {
      refuseContradictions(all);
    }).toThrow(/NCCL_MIN_NCHANNELS=8 .*; unset one of them\. NCCL_P2P_SCHEDULE_GROUP_SIZE=0 is below 1/);
  });

  it('exclude limits that agree, and limits that NCCL ignores', () => {
    expect(contradictions(parametersOf({ NCCL_MIN_NCHANNELS: '4', NCCL_MAX_NCHANNELS: '4' }))).toEqual([]);
    expect(contradictions(parametersOf({ NCCL_MIN_CTAS: '4', NCCL_MAX_CTAS: '-1' }))).toEqual([]);
    expect(contradictions(parametersOf({ NCCL_MIN_NCHANNELS: '100', NCCL_MAX_NCHANNELS: '64' }))).toEqual([]);
  });
});

describe('NVLink SHARP', () => {
  const KiB = 1024;
  interface Facts {
    readonly compCap?: number;
    readonly minNetGBps?: number;
    readonly ranks?: number;
    readonly typeInter?: PathType;
  }
  const made = (
    hosts: number,
    { compCap = 100, minNetGBps = 48, ranks = 8, typeInter = PathType.PIX }: Facts = {},
    environment: Record<string, string> = {},
  ) => {
    const way = Array.from({ length: ranks }, (_, rank) => rank);
    const nvls = graph(
      way.map((head) => [head, ...way.slice(1)]),
      { id: GraphId.NVLS, pattern: Pattern.NVLS, typeInter },
    );
    return mergeHosts(
      [{ host: host([way], { nvls: true, graphs: { nvls }, rank: { compCap, minNetGBps } }), count: hosts }],
      parametersOf(environment),
    ).nvls;
  };

  it.each([
    ['Hopper', 2, { compCap: 90 }, [16, 128, 128]],
    ['Hopper on four hosts', 4, { compCap: 90 }, [16, 128, 64]],
    ['Blackwell on one host', 1, {}, [24, 128, 128]],
    ['two hosts, near NICs', 2, {}, [32, 128, 64]],
    ['two hosts, far NICs', 2, { typeInter: PathType.PXN }, [32, 128, 128]],
    ['two hosts, few ranks', 2, { ranks: 4 }, [32, 256, 256]],
    ['two hosts, many ranks', 2, { ranks: 16 }, [32, 128, 64]],
    ['two hosts, 800 Gb/s', 2, { minNetGBps: 96 }, [32, 128, 128]],
    ['three hosts, 800 Gb/s', 3, { minNetGBps: 96 }, [24, 256, 256]],
    ['three hosts, 800 Gb/s, many ranks', 3, { minNetGBps: 96, ranks: 16 }, [32, 128, 128]],
    ['three hosts, 800 Gb/s, 32 ranks', 3, { minNetGBps: 96, ranks: 32 }, [32, 128, 64]],
    ['three hosts, near NICs', 3, {}, [24, 128, 64]],
    ['three hosts, far NICs', 3, { typeInter: PathType.PHB }, [24, 128, 128]],
    ['three hosts, slow NICs', 3, { minNetGBps: 25 }, [32, 128, 128]],
    ['four hosts, slow NICs', 4, { minNetGBps: 25 }, [32, 128, 64]],
  ])('channels and chunks: %s', (_, hosts, facts, [nChannels, chunk, treeMaxChunk]) => {
    expect(made(hosts, facts)).toMatchObject({
      nChannels,
      chunkBytes: (chunk ?? 0) * KiB,
      treeMaxChunkBytes: (treeMaxChunk ?? 0) * KiB,
    });
  });

  it('each rank counts by its own GPU: an older one leaves channels at zero that rank 0 counts', () => {
    const way = [0, 1];
    const nvls = graph(
      [
        [0, 1],
        [1, 0],
      ],
      { id: GraphId.NVLS, pattern: Pattern.NVLS, typeInter: PathType.PIX },
    );
    const hosts = [100, 90].map((compCap) => ({
      host: host([way], { nvls: true, graphs: { nvls }, rank: { compCap } }),
      count: 1,
    }));
    const merged = mergeHosts(hosts, parametersOf({}));
    expect(merged.nvls).toMatchObject({ nChannels: 32, nChannelsBeforeBlackwell: 16 });
    expect(nvlsLinks(merged, 16, 1)).toMatchObject({ headRank: 1, down: 6 });
    expect(nvlsLinks(merged, 15, 3)).toMatchObject({ headRank: 1, down: 6 });
    expect(nvlsLinks(merged, 16, 3)).toEqual({ headRank: 0, up: [0, 0], down: 0, out: 0, treeUp: 0, treeDown: [0, 0, 0] });
    expect(mergeHosts([...hosts].reverse(), parametersOf({})).nvls).toMatchObject({ nChannels: 16 });
  });

  it('parameters come first', () => {
    const environment = {
      NCCL_NVLS_NCHANNELS: '9',
      NCCL_NVLS_CHUNKSIZE: '1000',
      NCCL_NVLSTREE_MAX_CHUNKSIZE: '77',
      NCCL_MAX_CTAS: '5',
    };
    expect(made(2, {}, environment)).toMatchObject({ nChannels: 5, chunkBytes: 1000, treeMaxChunkBytes: 77 });
  });
});

describe('send and receive', () => {
  interface Facts {
    readonly rank?: { readonly compCap?: number; readonly p2pChannelsPerPeer?: number };
    readonly cpuArch?: number;
    readonly allNvLink?: boolean;
    readonly ranks?: number;
  }
  const made = (
    hosts: number,
    environment: Record<string, string> = {},
    { rank = {}, cpuArch = CpuArch.X86, allNvLink = true, ranks = 4 }: Facts = {},
  ) => {
    const way = Array.from({ length: ranks }, (_, index) => index);
    return mergeHosts([{ host: host([way, way, way], { rank, cpuArch, allNvLink }), count: hosts }], parametersOf(environment))
      .p2p;
  };

  it('channels are powers of two', () => {
    expect(made(1)).toMatchObject({ nChannels: 8, channelsPerPeer: 2 });
    expect(made(1, { NCCL_MAX_P2P_NCHANNELS: '3' })).toMatchObject({ nChannels: 4, channelsPerPeer: 2 });
    expect(made(1, { NCCL_MIN_P2P_NCHANNELS: '9' })).toMatchObject({ nChannels: 16 });
  });

  it('of several hosts share channels among all peers', () => {
    expect(made(8, {}, { rank: { p2pChannelsPerPeer: 4 } })).toMatchObject({ nChannels: 8, channelsPerPeer: 2 });
    expect(made(100, {}, { rank: { p2pChannelsPerPeer: 4 } })).toMatchObject({ nChannels: 8, channelsPerPeer: 1 });
    expect(made(100, { NCCL_P2P_MAX_PEERS: '8' }, { rank: { p2pChannelsPerPeer: 4 } })).toMatchObject({
      channelsPerPeer: 4,
      maxPeers: 8,
    });
    expect(made(8, { NCCL_NCHANNELS_PER_NET_PEER: '4' }, { rank: { p2pChannelsPerPeer: 4 } })).toMatchObject({
      channelsPerPeer: 4,
    });
  });

  it('have chunks by the connection of the ranks', () => {
    expect(made(1).chunkBytes).toBe(512 * 1024);
    expect(made(1, {}, { allNvLink: false }).chunkBytes).toBe(128 * 1024);
    expect(made(2).chunkBytes).toBe(128 * 1024);
    expect(made(2, {}, { cpuArch: CpuArch.ARM, rank: { compCap: 100 } }).chunkBytes).toBe(256 * 1024);
    expect(made(1, { NCCL_BUFFSIZE: '1000000' }).chunkBytes).toBe(125_000);
  });

  it('are scheduled in groups that divide all nodes', () => {
    expect(made(1, {}, { ranks: 12 }).scheduleGroupSize).toBe(12);
    expect(made(2, {}, { ranks: 12 }).scheduleGroupSize).toBe(4);
    expect(made(2, { NCCL_P2P_SCHEDULE_GROUP_SIZE: '6' }, { ranks: 12 }).scheduleGroupSize).toBe(6);
  });
});
