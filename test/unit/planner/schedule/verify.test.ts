import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  applyOverrides,
  choose,
  defaultParameters,
  machine,
  parametersFromEnvironment,
  type Plan,
  plan,
  tune,
} from '../../../../src/planner/index.js';
import { doubleTree } from '../../../../src/planner/graph/merge/double-tree.js';
import { collnetChainSchedule, collnetDirectSchedule } from '../../../../src/planner/schedule/collnet.js';
import { collectiveSchedule, messagesSchedule, pairsWay } from '../../../../src/planner/schedule/from-plan.js';
import { hierarchicalSchedule } from '../../../../src/planner/schedule/hierarchical.js';
import { nvlsSchedule } from '../../../../src/planner/schedule/nvls.js';
import { pairWorkSchedule } from '../../../../src/planner/schedule/pair-work.js';
import { patRoundsSchedule } from '../../../../src/planner/schedule/pat-rounds.js';
import { patSchedule } from '../../../../src/planner/schedule/pat.js';
import { ncclRingCut, ringSchedule } from '../../../../src/planner/schedule/ring.js';
import type { Schedule, ScheduledCollective, VerifiableCall } from '../../../../src/planner/schedule/schedule.js';
import { type Tree, treeSchedule } from '../../../../src/planner/schedule/tree.js';
import { verifySchedule } from '../../../../src/planner/schedule/verify.js';
import { isThorough, runs } from '../../../runs.js';

/** fast-check prints the seed of a failure. */
const cases = { numRuns: runs(20, 60) };
const sizes = {
  nChannels: fc.integer({ min: 1, max: 3 }),
  chunkBytes: fc.integer({ min: 1, max: 5 }).map((grains) => 16 * grains),
  slots: fc.integer({ min: 1, max: 8 }),
};

function shuffled(count: number, seed: number): number[] {
  return Array.from({ length: count }, (_, index) => index).sort((a, b) => Math.sin(seed + a * 7.3) - Math.sin(seed + b * 7.3));
}

/** Ranks of hosts of different sizes, in order. */
const unevenHosts = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 8 }).map((counts) => {
  let next = 0;
  return counts.map((count) => Array.from({ length: count }, () => next++));
});

const rankCounts = Array.from({ length: 63 }, (_, index) => [index + 2]).filter(
  ([count = 0]) => isThorough || count <= 11 || count === 32 || count === 64,
);

describe('schedules count every input once in every output', () => {
  it('rings, for 2 to 64 ranks in any order', () => {
    const collectives: ScheduledCollective[] = ['AllReduce', 'AllGather', 'ReduceScatter', 'Broadcast', 'Reduce'];
    fc.assert(
      fc.property(
        fc.integer({ min: 2, max: 64 }),
        fc.constantFrom(...collectives),
        fc.nat(),
        fc.integer({ min: 1, max: 40 }),
        fc.record(sizes),
        (nRanks, collective, seed, each, { nChannels, chunkBytes, slots }) => {
          const rings = Array.from({ length: nChannels }, (_, channel) => shuffled(nRanks, seed + channel));
          const call = { collective, bytes: nRanks * each, root: seed % nRanks };
          // With one slot all ranks would wait for room at the next one.
          const input = { rings, cut: ncclRingCut(chunkBytes) };
          expect(verifySchedule(ringSchedule(call, input), Math.max(2, slots), seed)).toBeUndefined();
        },
      ),
      cases,
    );
  });

  it.each(rankCounts)('rings of ranks that meet in every call: %i ranks', (nRanks) => {
    const rings = [shuffled(nRanks, 5), shuffled(nRanks, 6)];
    for (const collective of ['AllReduce', 'AllGather', 'ReduceScatter', 'Broadcast', 'Reduce'] as const) {
      for (const each of [0, 1 + Math.ceil(100 / nRanks)]) {
        const slicesPerChunk = 1 + (nRanks % 2);
        const call = { collective, bytes: nRanks * each, root: nRanks - 1 };
        const cut = { sliceBytes: 4, slicesPerChunk, grainBytes: 4, meets: true };
        const fault = verifySchedule(ringSchedule(call, { rings, cut }), 2 * slicesPerChunk);
        expect([collective, each, fault]).toEqual([collective, each, undefined]);
      }
    }
  });

  it('trees between hosts of any sizes', () => {
    fc.assert(
      fc.property(
        unevenHosts,
        fc.constantFrom<ScheduledCollective>('AllReduce', 'Broadcast', 'Reduce'),
        fc.nat(),
        fc.integer({ min: 1, max: 500 }),
        fc.record(sizes),
        (hosts, collective, root, bytes, { nChannels, chunkBytes, slots }) => {
          const nRanks = hosts.flat().length;
          const trees = Array.from({ length: nChannels }, (_, channel) => treeOf(hosts, channel % 2));
          const schedule = treeSchedule({ collective, bytes, root: root % nRanks }, { nRanks, trees, chunkBytes });
          expect(verifySchedule(schedule, slots)).toBeUndefined();
        },
      ),
      cases,
    );
  });

  it.each([[1], ...rankCounts])('double trees of ranks: %i ranks', (nRanks) => {
    const trees = [0, 1].map((which) =>
      treeOf(
        shuffled(nRanks, 3).map((rank) => [rank]),
        which,
      ),
    );
    for (const collective of ['AllReduce', 'Broadcast', 'Reduce'] as const) {
      const schedule = treeSchedule({ collective, bytes: 100, root: nRanks >> 1 }, { nRanks, trees, chunkBytes: 32 });
      expect([collective, verifySchedule(schedule, 1)]).toEqual([collective, undefined]);
    }
  });

  it.each(rankCounts)('PAT in rounds of messages: %i ranks', (nRanks) => {
    for (const collective of ['AllGather', 'ReduceScatter'] as const) {
      for (const each of [1, 5]) {
        const call = { collective, bytes: nRanks * each, root: 0 };
        expect([collective, verifySchedule(patRoundsSchedule(call, nRanks, 4), 1)]).toEqual([collective, undefined]);
      }
    }
  });

  it.each(rankCounts)('pairs of ranks, all at the same time: %i ranks', (nRanks) => {
    const verified = (collective: VerifiableCall['collective'], bytes: number, isInPlace = false) => {
      const call = { collective, bytes, root: nRanks - 1 } as VerifiableCall;
      return [collective, verifySchedule(pairWorkSchedule(call, nRanks, 4, isInPlace), 1)];
    };
    for (const collective of ['AllToAll', 'Gather', 'Scatter'] as const)
      expect(verified(collective, 5 * nRanks)).toEqual([collective, undefined]);
    // The search for races takes the square of the number of workers.
    if (nRanks <= 16) expect(verified('AllToAll', 5 * nRanks, true)).toEqual(['AllToAll', undefined]);
    for (const collective of ['Scan', 'ExclusiveScan'] as const)
      expect(verified(collective, 20)).toEqual([collective, undefined]);
  });

  it('PAT, for 1 to 64 ranks', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 64 }),
        fc.constantFrom<ScheduledCollective>('AllGather', 'ReduceScatter'),
        fc.integer({ min: 1, max: 60 }),
        fc.record(sizes),
        (nRanks, collective, each, { nChannels, chunkBytes, slots }) => {
          expect(
            verifySchedule(patSchedule({ collective, bytes: each * nRanks, root: 0 }, nRanks, nChannels, chunkBytes), slots),
          ).toBeUndefined();
        },
      ),
      cases,
    );
  });

  it('hierarchical: rings of hosts for each share, and an exchange between hosts, on hosts of any sizes', () => {
    fc.assert(
      fc.property(
        unevenHosts,
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 0, max: 900 }),
        fc.integer({ min: 1, max: 3 }),
        fc.record(sizes),
        (hosts, count, bytes, slicesPerChunk, { chunkBytes, slots }) => {
          const nRanks = hosts.flat().length;
          const shares = {
            count: Math.min(count, Math.max(...hosts.map(({ length }) => length))),
            sliceBytes: chunkBytes,
            slicesPerChunk,
            grainBytes: 16,
          };
          const small = { collective: 'AllReduce', bytes, root: 0 } as const;
          expect(verifySchedule(hierarchicalSchedule(small, { hosts }), slots)).toBeUndefined();
          for (const collective of ['AllReduce', 'ReduceScatter', 'AllGather', 'Broadcast', 'Reduce'] as const) {
            const isInBlocks = collective === 'ReduceScatter' || collective === 'AllGather';
            const size = isInBlocks ? nRanks * Math.ceil(bytes / nRanks) : bytes;
            const call = { collective, bytes: size, root: bytes % nRanks };
            // With less room, owners that have filled all slots would wait for each other.
            const fault = verifySchedule(hierarchicalSchedule(call, { hosts, shares }), 2 * slicesPerChunk + slots - 1);
            expect([collective, fault]).toEqual([collective, undefined]);
          }
        },
      ),
      cases,
    );
  });

  // The last host has one to five ranks.
  it.each([[1], ...rankCounts])('hierarchical: %i ranks on hosts of five', (nRanks) => {
    const ranks = Array.from({ length: nRanks }, (_, rank) => rank);
    const hosts = Array.from({ length: Math.ceil(nRanks / 5) }, (_, host) => ranks.slice(5 * host, 5 * host + 5));
    const shares = { count: Math.min(5, nRanks), sliceBytes: 16, slicesPerChunk: 2, grainBytes: 16 };
    expect(verifySchedule(hierarchicalSchedule({ collective: 'AllReduce', bytes: 700, root: 0 }, { hosts }), 1)).toBeUndefined();
    for (const collective of ['AllReduce', 'ReduceScatter', 'AllGather', 'Broadcast', 'Reduce'] as const) {
      const call = { collective, bytes: 20 * nRanks, root: nRanks - 1 };
      expect([collective, verifySchedule(hierarchicalSchedule(call, { hosts, shares }), 4)]).toEqual([collective, undefined]);
    }
  });

  it('NVLink SHARP: one host, trees between hosts, and a network that reduces', () => {
    fc.assert(
      fc.property(
        unevenHosts,
        fc.boolean(),
        fc.integer({ min: 1, max: 900 }),
        fc.record(sizes),
        (nodes, network, bytes, { nChannels, chunkBytes, slots }) => {
          const nHeads = Math.min(...nodes.map(({ length }) => length));
          const schedule = nvlsSchedule(
            { collective: 'AllReduce', bytes, root: 0 },
            {
              nRanks: nodes.flat().length,
              nodes,
              heads: nodes.map((ranks) => ranks.slice(0, nHeads)),
              nChannels,
              chunkBytes,
              tree: network ? undefined : (channel, node) => doubleTree(nodes.length, node)[channel % 2 === 0 ? 0 : 1],
            },
          );
          expect(verifySchedule(schedule, slots)).toBeUndefined();
        },
      ),
      cases,
    );
  });

  it('all-gather and reduce-scatter by NVLink SHARP', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 2, max: 16 }),
        fc.constantFrom<ScheduledCollective>('AllGather', 'ReduceScatter'),
        fc.integer({ min: 1, max: 90 }),
        fc.record(sizes),
        (nRanks, collective, each, { nChannels, chunkBytes, slots }) => {
          const ranks = shuffled(nRanks, 0).sort((a, b) => a - b);
          const schedule = nvlsSchedule(
            { collective, bytes: each * nRanks, root: 0 },
            { nRanks, nodes: [ranks], heads: [ranks], nChannels, chunkBytes, tree: undefined },
          );
          expect(verifySchedule(schedule, slots)).toBeUndefined();
        },
      ),
      cases,
    );
  });

  it('CollNet, by chains and direct', () => {
    fc.assert(
      fc.property(
        unevenHosts,
        fc.integer({ min: 1, max: 500 }),
        fc.record(sizes),
        (hosts, bytes, { nChannels, chunkBytes, slots }) => {
          const nRanks = hosts.flat().length;
          const call = { collective: 'AllReduce', bytes, root: 0 } as const;
          const nHeads = Math.min(...hosts.map(({ length }) => length));
          expect(
            verifySchedule(
              collnetChainSchedule(call, { nRanks, chains: Array.from({ length: nChannels }, () => hosts), chunkBytes }),
              slots,
            ),
          ).toBeUndefined();
          expect(
            verifySchedule(
              collnetDirectSchedule(call, {
                nRanks,
                nodes: hosts.map((ranks) => ({ ranks, heads: ranks.slice(0, nHeads) })),
                nChannels,
                chunkBytes,
              }),
              slots,
            ),
          ).toBeUndefined();
        },
      ),
      cases,
    );
  });

  it('all-gather and reduce-scatter by CollNet direct', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 6 }),
        fc.constantFrom<ScheduledCollective>('AllGather', 'ReduceScatter'),
        fc.integer({ min: 1, max: 90 }),
        fc.record(sizes),
        (nNodes, perNode, collective, each, { nChannels, chunkBytes, slots }) => {
          const nRanks = nNodes * perNode;
          const nodes = Array.from({ length: nNodes }, (_, node) => {
            const ranks = Array.from({ length: perNode }, (_, local) => node * perNode + local);
            return { ranks, heads: ranks };
          });
          const call = { collective, bytes: each * nRanks, root: 0 };
          expect(verifySchedule(collnetDirectSchedule(call, { nRanks, nodes, nChannels, chunkBytes }), slots)).toBeUndefined();
        },
      ),
      cases,
    );
  });

  const clusters: readonly (readonly number[])[] = [[1], [2], [8], [3, 1], [8, 8], [1, 1, 1, 1, 1]];
  it.each(clusters.map((gpus) => [gpus]))('messages between pairs, on hosts of %j GPUs', (gpus) => {
    const made = planOf(gpus);
    const { nRanks } = made.nodes;
    for (const collective of ['AllToAll', 'SendRecv', 'Gather', 'Scatter'] as const) {
      for (const bytes of [nRanks, 40 * nRanks]) {
        const call = { collective, bytes, root: nRanks - 1 };
        const schedule = messagesSchedule(made, call, { ...pairsWay(made, call), channelsPerMessage: 2, chunkBytes: 16 });
        expect(verifySchedule(schedule, 1), `${collective} of ${bytes} bytes`).toBeUndefined();
      }
    }
  });

  it.each(clusters.filter((gpus) => gpus.length > 1 || (gpus[0] ?? 0) > 1).map((gpus) => [gpus]))(
    'all possible choices of NCCL, on hosts of %j GPUs',
    (gpus) => {
      for (const algorithm of ['Ring', 'Tree', 'NVLS', 'NVLSTree', 'PAT']) {
        // Channels do not depend on these variables.
        const { parameters } = parametersFromEnvironment({ NCCL_ALGO: algorithm, NCCL_PAT_ENABLE: '1' });
        const made = planOf(gpus);
        const tuning = tune(made, parameters);
        for (const collective of ['AllReduce', 'AllGather', 'ReduceScatter', 'Broadcast', 'Reduce'] as const) {
          const bytes = 48 * made.nodes.nRanks;
          const choice = choose(tuning, collective, bytes);
          if (choice === undefined) continue;
          const schedule = collectiveSchedule(
            made,
            { collective, bytes, root: 0 },
            { ...choice, nChannels: Math.min(3, choice.nChannels), chunkBytes: 32 },
          );
          expect(verifySchedule(schedule, 2), `${algorithm} ${collective}`).toBeUndefined();
        }
      }
    },
  );
});

describe('the verifier names the fault of a schedule', () => {
  const call = { collective: 'AllReduce', bytes: 4, root: 0 } as const;
  const connections = [
    { from: 0, to: 1, channel: 0, via: 'direct', phase: 0 },
    { from: 1, to: 0, channel: 0, via: 'direct', phase: 0 },
  ] as const;
  const worker = (
    rank: number,
    ...moves: { receive?: number[]; input?: number; send?: number[]; output?: number; bytes?: number }[]
  ) => ({
    rank,
    channel: 0,
    moves: () => moves.map((move) => ({ receive: [], input: -1, send: [], output: -1, bytes: 4, ...move })),
  });
  const made = (...workers: Schedule['workers'][number][]): Schedule => ({ call, nRanks: 2, connections, workers });

  it('a deadlock, with the waiting workers', () => {
    const schedule = made(worker(0, { receive: [1], input: 0, output: 0 }), worker(1, { receive: [0], input: 0, output: 0 }));
    expect(verifySchedule(schedule, 8)).toBe(
      'deadlock: rank 0, channel 0 waits in move 0 for a message from rank 1; rank 1, channel 0 waits in move 0 for a message from rank 0',
    );
  });

  it('an input that is counted twice', () => {
    const schedule = made(
      worker(0, { input: 0, send: [0] }, { receive: [1], input: 0, output: 0 }),
      worker(1, { receive: [0], input: 0, send: [1], output: 0 }),
    );
    expect(verifySchedule(schedule, 8)).toBe(
      'byte 0 of the output of rank 0 is not made of each input once: that of rank 0 is counted twice',
    );
  });

  it('an output that stays empty, and one that is written twice', () => {
    expect(verifySchedule(made(worker(0, { input: 0, send: [0] }), worker(1, { receive: [0], input: 0, output: 0 })), 8)).toBe(
      'byte 0 of the output of rank 0 is never written',
    );
    expect(verifySchedule(made(worker(0, { input: 0, output: 0 }, { input: 0, output: 0 })), 8)).toBe(
      'rank 0, channel 0, move 1: byte 0 of the output is written a second time',
    );
  });

  it("ranges of a message that do not fill it, and an exclusive scan that includes the rank's input", () => {
    const range = { input: 0, output: -1, bytes: 2 };
    const short = { ...worker(0), moves: () => [{ receive: [], input: -1, send: [0], output: -1, bytes: 4, ranges: [range] }] };
    expect(verifySchedule(made(short), 8)).toBe('rank 0, channel 0, move 0: its ranges have 2 bytes, its messages 4');
    const scan = made(worker(0, { input: 0, send: [0] }), worker(1, { receive: [0], input: 0, output: 0 }));
    expect(verifySchedule({ ...scan, call: { ...call, collective: 'ExclusiveScan' } }, 8)).toBe(
      'byte 0 of the output of rank 1 is not made of each input once: that of rank 1 does not belong there',
    );
  });

  it('messages of different lengths, ranges outside of a buffer, messages without a receiver', () => {
    expect(verifySchedule(made(worker(0, { input: 0, send: [0] }), worker(1, { receive: [0], bytes: 2 })), 8)).toBe(
      'rank 1, channel 0, move 0: it wants 2 bytes from rank 0, which sent 4',
    );
    expect(verifySchedule(made(worker(0, { input: 1, send: [0] })), 8)).toBe(
      'rank 0, channel 0, move 0: bytes 1 to 5 are outside of an input of 4 bytes',
    );
    expect(verifySchedule(made(worker(0, { input: 0, send: [0] })), 8)).toBe(
      'a message from rank 0 to rank 1 on channel 0 is never received',
    );
  });
});

function hostsOf(gpus: readonly number[]) {
  return gpus.map((count) => ({ machine: applyOverrides(machine('dgx-h100'), { gpus: count }), count: 1 }));
}

const plans = new Map<string, Plan>();

/** Searching the channels takes longest here. */
function planOf(gpus: readonly number[]): Plan {
  const made = plans.get(gpus.join()) ?? plan({ hosts: hostsOf(gpus) }, defaultParameters);
  plans.set(gpus.join(), made);
  return made;
}

/** Chains within hosts under a double tree of hosts. */
function treeOf(hosts: readonly (readonly number[])[], which: number): Tree {
  const up = new Map<number, number>();
  hosts.forEach((ranks, host) => {
    const { parent } = doubleTree(hosts.length, host)[which === 0 ? 0 : 1];
    ranks.forEach((rank, position) => up.set(rank, position > 0 ? ranks[position - 1]! : parent < 0 ? -1 : hosts[parent]![0]!));
  });
  return {
    up: (rank: number) => up.get(rank) ?? -1,
    down: (rank: number) => [...up].filter(([, parent]) => parent === rank).map(([child]) => child),
  };
}
