import type { ScheduledCollective } from '../../schedule/schedule.js';
import type { NcclAlgorithm, Protocol } from '../../tuning/names.js';
import type { Counterfactual } from '../counterfactual/counterfactual.js';

/** Subject of a question: each has an answer of its own. */
export type Ask =
  | 'bandwidth'
  | 'judge'
  | 'exceeds'
  | 'scaling'
  | 'time'
  | 'choice'
  | 'flips'
  | 'use'
  | 'limits'
  | 'channels'
  | 'rings'
  | 'nodes'
  | 'nic'
  | 'connection'
  | 'gdr'
  | 'pxn'
  | 'rails'
  | 'variable'
  | 'change'
  | 'upgrade'
  | 'help'
  | 'hang'
  | 'observe'
  | 'control'
  | 'fact'
  | 'calls'
  | 'aware'
  | 'meaning'
  | 'unclear';

/** A parsed question: its subject, and all that the words name. Ranks are those of the communicator. */
export interface Question {
  readonly asks: Ask;
  /** The call that is asked about; undefined if none is named. */
  readonly collective: ScheduledCollective | undefined;
  /** Sizes as nccl-tests counts them, bytes. */
  readonly sizes: readonly number[];
  /** Algorithms and protocols, in the order in which they are named. */
  readonly ways: readonly PartialWay[];
  /** True for `why no …`, `not`, `without`. */
  readonly isNegated: boolean;
  /** True for `disable`, `turn off`, `avoid`. */
  readonly isOff: boolean;
  /** A bandwidth or a time that was measured. */
  readonly measured: Measured | undefined;
  /** A number that the question expects: channels, nodes. */
  readonly count: number | undefined;
  /** Ranks, NIC, ring or channel by number. */
  readonly ranks: readonly number[];
  readonly nic: number | undefined;
  readonly channel: number | undefined;
  /** Features and terms that the question names. */
  readonly terms: readonly Term[];
  /** Variables of NCCL, with the value that they are to have; null for unset, undefined if the question names no value. */
  readonly variables: readonly VariableInQuestion[];
  /** Changes of the cluster to compare with what it is. */
  readonly changes: readonly Counterfactual[];
  /** The cluster that the question is about, where it is not the one that is given. */
  readonly setting: readonly Counterfactual[];
  /** Parts of NCCL that the question wants to set. */
  readonly controls: readonly Controlled[];
  readonly facts: readonly Fact[];
  /** All calls that the question names, in order. */
  readonly collectives: readonly ScheduledCollective[];
  /** The least number of nodes or GPUs in `more than 2 nodes`. */
  readonly beyond: { readonly of: 'nodes' | 'gpus'; readonly least: number } | undefined;
  /** Numbers of GPUs that are compared. */
  readonly gpuCounts: readonly number[];
  /** Layouts that are compared: GPUs of each host, and hosts. */
  readonly layouts: readonly { readonly gpus: number; readonly nodes: number }[];
  /** Versions of NCCL, in the order in which they are named. */
  readonly versions: readonly string[];
  /** Figures that the question gives for several layouts or algorithms. */
  readonly variants: readonly Variant[];
  /** Figures that the question gives for several calls. */
  readonly figuresOfCalls: readonly FigureOfCall[];
  /** All that the question states by number or name: an answer gives account of what it did not use. */
  readonly mentions: readonly Mention[];
  /** Words that say something, and those of them that nothing reads. */
  readonly content: readonly string[];
  readonly unread: readonly string[];
  /** The question as it was written. */
  readonly text: string;
}

/** A measured bandwidth, and what the question names beside it in distinction from others. */
export interface Variant {
  readonly value: number;
  /** The layout or algorithm as a change of the cluster. */
  readonly state: Counterfactual;
}

/** A measured bandwidth of one of several calls. */
export interface FigureOfCall {
  readonly value: number;
  readonly collective: ScheduledCollective;
}

/** Kinds of things that a question states. */
export type Part =
  'figure' | 'nominal' | 'size' | 'call' | 'way' | 'count' | 'hardware' | 'id' | 'number' | 'software' | 'interface' | 'word';

/** A thing that a question states, as it was written; with the change that would make a cluster so. */
export interface Mention {
  readonly part: Part;
  readonly text: string;
  readonly state?: Counterfactual;
}

/** An algorithm, a protocol or both, as a question names them. */
export interface PartialWay {
  readonly algorithm?: NcclAlgorithm;
  readonly protocol?: Protocol;
}

/** A measurement that a question quotes. */
export interface Measured {
  readonly kind: 'busbw' | 'algbw' | 'bandwidth' | 'time';
  /** GB/s, or µs. */
  readonly value: number;
}

/** A variable of NCCL that a question names: with a value, unset (null), or without one (undefined). */
export interface VariableInQuestion {
  readonly name: string;
  readonly value: string | null | undefined;
}

/** Features of NCCL, parts of machines and figures that questions are about. */
export const terms = [
  'busbw',
  'algbw',
  'channel',
  'ring',
  'tree',
  'nvls',
  'nvlstree',
  'collnet',
  'pat',
  'll',
  'll128',
  'simple',
  'pxn',
  'gdr',
  'p2p',
  'shm',
  'rail',
  'nvlink',
  'nvswitch',
  'pcie',
  'nics',
  'sockets',
  'chunk',
  'path',
] as const;
/** A feature, part or figure that a question is about. */
export type Term = (typeof terms)[number];

/** Things that variables of NCCL set, beside algorithms, protocols and features that have names. */
export type Controlled =
  | 'interface'
  | 'queuePairs'
  | 'trafficClass'
  | 'gid'
  | 'timeout'
  | 'relaxedOrdering'
  | 'adaptiveRouting'
  | 'merge'
  | 'topologyFile'
  | 'ringOrder'
  | 'sockets'
  | 'infiniband'
  | 'threads'
  | 'buffer'
  | 'peerChannels'
  | 'memory'
  | 'cpuAffinity'
  | 'plugin'
  | 'registration'
  | 'rackNvlink'
  | 'log'
  | 'subset';

/** Facts about NCCL and about figures of nccl-tests, which hold for any plan. */
export type Fact =
  | 'factor'
  | 'factorOfNvls'
  | 'zero'
  | 'units'
  | 'direction'
  | 'algbwVersus'
  | 'sizeColumn'
  | 'inPlace'
  | 'wrongColumn'
  | 'oneRank'
  | 'firstCall'
  | 'deterministic'
  | 'bothNetworks'
  | 'twoCommunicators'
  | 'mixedGpus'
  | 'ethernet'
  | 'memory'
  | 'pairsDiffer'
  | 'sizeGrows'
  | 'algorithmNeeds'
  | 'flatRings'
  | 'switchLevels'
  | LinkFact
  | SystemFact;

/** Facts about trees, lines of logs, drivers, containers and networks. */
export type SystemFact =
  | 'singleTree'
  | 'treeInNode'
  | 'logTrees'
  | 'logWays'
  | 'virtualMachine'
  | 'shmSize'
  | 'acs'
  | 'geforce'
  | 'pcieRate'
  | 'idleLink'
  | 'peerOverCpu'
  | 'pathNames'
  | 'callWays'
  | 'roce'
  | 'socketsUsed'
  | 'chunks'
  | 'smallLatency'
  | 'proxyThreads'
  | 'unequalHosts'
  | 'overlap'
  | 'sharedGpu'
  | 'openPorts'
  | 'frontend'
  | 'parallelism'
  | 'lostRank'
  | 'peerMemory'
  | 'perRail'
  | 'mtu'
  | 'search'
  | 'subnets'
  | 'farNetwork'
  | 'bufferSizes'
  | 'copyEngines'
  | 'perCall'
  | 'geforceRdma'
  | 'rackNeeds'
  | 'patNodes';

/** Facts about links, NICs, channels and their thread blocks. */
export type LinkFact =
  | 'severalRings'
  | 'linkPorts'
  | 'reversed'
  | 'severalNics'
  | 'payload'
  | 'withoutNvlink'
  | 'channelIsBlock'
  | 'fewerChannels'
  | 'bond'
  | 'queuePairs'
  | 'gpuOrder'
  | 'll128Safe'
  | 'graceLinks';
