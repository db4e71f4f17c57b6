import type { Merged } from '../graph/merge/merge.js';
import { collectiveSchedule, type Exchange, messagesSchedule, type PairsWay, pairsWay } from '../schedule/from-plan.js';
import { FIFO_STEPS, programFifos } from '../schedule/fifo.js';
import type { Schedule, ScheduledCall, ScheduledCollective } from '../schedule/schedule.js';
import type { Choice } from '../tuning/choose.js';
import { type Collective, collectives, type Protocol } from '../tuning/names.js';
import type { Tuning } from '../tuning/tune.js';
import type { ChannelKind } from './routes.js';

/** Properties of a call that its schedule and times depend on. */
export interface CallPlan {
  /** Calls with the same key use the same connections in the same way. */
  readonly key: string;
  /** Number of connections that a worker serves in turn; one of them is busy. */
  readonly inTurn: number;
  readonly choice: Choice | undefined;
  readonly protocol: Protocol;
  readonly nChannels: number;
  readonly chunkBytes: number;
  readonly kind: ChannelKind;
  /** Messages between pairs of ranks, as NCCL carries them out. */
  readonly isPairs: boolean;
  /** Ranks that a rank sends to or receives from one by one; 0 for collectives over channels. */
  readonly peers: number;
  /** NVLink SHARP. */
  readonly isSwitch: boolean;
  /** Blocks write into the memory of other ranks and raise counters there, without FIFOs. */
  readonly isOneSided: boolean;
  /** Slices of a chunk. */
  readonly slices: number;
  /** Slices that a connection holds. */
  readonly slots: number;
  /** Bytes of the call that one round of chunks on all channels moves. */
  readonly periodBytes: number;
  /** @param channels whose workers are wanted, where the others can be left out; connections are those of all */
  readonly schedule: (call: ScheduledCall, channels?: ReadonlySet<number>) => Schedule;
  /** True if every host does the same. */
  readonly mayFold: boolean;
  /** True if hosts form trees. */
  readonly isTree: boolean;
}

/** Slots of a connection to a memory: practically unlimited. */
const MEMORY_SLOTS = 256;

/** Plan of a collective that NCCL carries out by `choice`. */
export function planOfCollective(merged: Merged, { input }: Tuning, collective: Collective, choice: Choice): CallPlan {
  const { algorithm, protocol, nChannels, nThreads, chunkBytes } = choice;
  const isSwitch = algorithm === 'NVLS' || algorithm === 'NVLSTree';
  const nHeads = isSwitch ? (input.nvls?.nHeads ?? 1) : algorithm === 'CollNetDirect' ? (merged.collnet?.headCount ?? 1) : 1;
  const isShared = collective === 'AllGather' || collective === 'ReduceScatter';
  const goesAround = algorithm === 'Ring' && (isShared || collective === 'AllReduce');
  const parts = isShared || goesAround ? merged.nodes.nRanks : nHeads;
  const slices = goesAround && protocol === 'Simple' ? 2 : 1;
  return {
    key: `${algorithm} ${protocol} ${nChannels} ${nThreads} ${chunkBytes} ${collective}`,
    inTurn: nHeads,
    choice,
    protocol,
    nChannels,
    chunkBytes,
    kind: algorithm === 'Ring' ? 'ring' : isSwitch ? 'pairs' : 'tree',
    isPairs: false,
    peers: 0,
    isSwitch,
    isOneSided: false,
    slices,
    slots: FIFO_STEPS / slices,
    periodBytes: nChannels * chunkBytes * parts,
    schedule: (sized) => collectiveSchedule(merged, sized, choice),
    mayFold: algorithm === 'Ring' || algorithm === 'PAT',
    isTree: algorithm === 'Tree' || algorithm === 'NVLSTree',
  };
}

/** Plan of messages between pairs. @param foldedRanks the first ranks, whose messages stand for all; undefined for all ranks */
export function planOfPairs(merged: Merged, call: ScheduledCall, foldedRanks: number | undefined): CallPlan {
  const { nRanks } = merged.nodes;
  const way = pairsWay(merged, call);
  const isCircle = call.collective === 'SendRecv';
  const senders = foldedRanks === undefined ? undefined : Array.from({ length: foldedRanks }, (_, rank) => rank);
  return {
    ...planOfWay(way),
    key: `pairs ${call.collective} ${way.protocol} ${way.channelsPerMessage}`,
    peers: isCircle ? 1 : nRanks - 1,
    periodBytes: way.channelsPerMessage * way.chunkBytes * (isCircle ? 1 : nRanks),
    schedule: (sized, channels) => messagesSchedule(merged, sized, way, senders, channels),
    mayFold: true,
  };
}

/** Plan of messages of different sizes; its calls have the size of the largest message. */
export function planOfExchange({ way, largestBytes, peers, schedule }: Exchange): CallPlan {
  return {
    ...planOfWay(way),
    key: '',
    peers,
    periodBytes: way.channelsPerMessage * way.chunkBytes,
    schedule: ({ bytes }) => schedule(bytes / largestBytes),
    mayFold: false,
  };
}

function planOfWay(way: PairsWay): Omit<CallPlan, 'key' | 'peers' | 'periodBytes' | 'schedule' | 'mayFold'> {
  return {
    inTurn: 1,
    choice: undefined,
    protocol: way.protocol,
    nChannels: way.nChannels,
    chunkBytes: way.chunkBytes,
    kind: 'pairs',
    isPairs: true,
    isSwitch: false,
    isOneSided: false,
    slices: 1,
    slots: FIFO_STEPS,
    isTree: false,
  };
}

/** Plan of a schedule that NCCL does not have, such as a program's. */
export function planOfSchedule(made: Schedule, protocol: Protocol): CallPlan {
  const isOneSided = made.workers.some(({ serves }) => serves !== undefined);
  const { slices, messages } = isOneSided ? { slices: 1, messages: MEMORY_SLOTS } : programFifos[protocol];
  return {
    key: '',
    inTurn: 1,
    choice: undefined,
    protocol,
    nChannels: 1 + made.workers.reduce((most, { channel }) => Math.max(most, channel), 0),
    chunkBytes: 0,
    kind: 'pairs',
    isPairs: false,
    peers: 0,
    isSwitch: false,
    isOneSided,
    slices,
    slots: messages * slices,
    periodBytes: Infinity,
    schedule: () => made,
    mayFold: false,
    isTree: false,
  };
}

/** True for the collectives that NCCL has algorithms for; the others are messages between pairs. */
export function isCollective(name: ScheduledCollective): name is Collective {
  return (collectives as readonly string[]).includes(name);
}

/** True if a rank has another part in the call than the others. */
export function isLopsided(collective: ScheduledCollective): boolean {
  return collective === 'Broadcast' || collective === 'Reduce' || collective === 'Gather' || collective === 'Scatter';
}

/** Rounds the data of each rank to whole bytes. */
export function wholeParts(collective: ScheduledCollective, bytes: number, nRanks: number): number {
  const isWhole =
    collective === 'AllReduce' || collective === 'Broadcast' || collective === 'Reduce' || collective === 'SendRecv';
  return isWhole ? bytes : Math.max(1, Math.round(bytes / nRanks)) * nRanks;
}

/** Bytes on a link by bytes of data: LL sends a flag with every four bytes, LL128 one in 128. */
export function wireBytes(protocol: Protocol): number {
  return { LL: 2, LL128: 128 / 120, Simple: 1 }[protocol];
}
