import type { AnyToolOutput } from '../../readers/formats.js';
import type { CallDifference } from './calls.js';
import type { NetDevice, SearchResult, Transport } from '../lines/events.js';
import type { LogPlace } from '../lines/line.js';
import type { ApartHit, RuleHit } from '../matching/rule-matcher.js';
import type { LoggedMachine } from './system-block.js';
import type { CatchableLine, Death } from '../deaths/tracker.js';
import type { LoggedRun, MeasuredTable } from './table.js';
import type { KnownRanks } from './known-ranks.js';
import type { Progress, Timeout } from './watchdog.js';
import type { WholeFiles } from './whole-files.js';

/** Everything that was read from the files about a job: the input of the checks and the summary. */
export interface LogModel extends WholeFiles {
  /** Names of the files, by {@link LogPlace.file}. */
  readonly files: readonly string[];
  readonly lines: { readonly all: number; readonly nccl: number };
  readonly communicators: readonly LoggedCommunicator[];
  readonly processes: readonly LoggedProcess[];
  /** Rules that lines matched. */
  readonly hits: readonly RuleHit[];
  /** Rules that lines of the kernel matched which are of another time or host than the job. */
  readonly apart: readonly ApartHit[];
  /** Warnings without a rule, and calls that returned an error. */
  readonly warnings: readonly LoggedWarning[];
  /** Machines that NCCL printed, one a host. */
  readonly machines: readonly LoggedMachine[];
  /** Collectives that PyTorch's watchdog gave up on. */
  readonly timeouts: readonly Timeout[];
  /** The work before the first of them: a progress bar that was not at its end, or a line about what one rank does alone. */
  readonly progress: Progress | undefined;
  /** Communicators whose ranks called different collectives. */
  readonly calls: readonly CallDifference[];
  readonly tables: readonly MeasuredTable[];
  /** Runs of nccl-tests, in their order. */
  readonly runs: readonly LoggedRun[];
  /** Reported ends of processes, in their order. */
  readonly deaths: readonly Death[];
  /** Ranks that marks of lines, names of files and launchers name. */
  readonly knownRanks: KnownRanks;
  /** Outputs of tools, in their order. */
  readonly tools: readonly AnyToolOutput[];
  /** Lines of rules whose failures programs catch. */
  readonly catchable: readonly CatchableLine[];
  /** Lines in which a launcher or program says that it ended without an error. */
  readonly successes: readonly LogPlace[];
  /** Incomplete lines of NCCL, by host; `''` if the host is unknown. */
  readonly cutLines: ReadonlyMap<string, { readonly count: number; readonly first: LogPlace }>;
  /** The file whose last line has no end and is NCCL's. */
  readonly unfinishedLine: LogPlace | undefined;
  /** Number of details dropped at limits of memory. */
  readonly left: { readonly communicators: number; readonly details: number; readonly processes: number };
}

/** A process of the job, from its own lines. */
export interface LoggedProcess {
  readonly host: string;
  readonly pid: number;
  readonly first: LogPlace;
  readonly last: LogPlace;
  /** Its first line about a communicator. */
  readonly began: LogPlace | undefined;
  /** The line in which it destroyed a communicator, if it made none after that. */
  readonly ended: LogPlace | undefined;
  readonly version: { readonly text: string; readonly place: LogPlace } | undefined;
  /** Settings of NCCL that it reported. */
  readonly environment: ReadonlyMap<string, { readonly value: string; readonly place: LogPlace }>;
  /** Devices by network, from `NET/IB : Using …`; empty where none was found. */
  readonly devices: ReadonlyMap<string, { readonly devices: readonly NetDevice[]; readonly place: LogPlace }>;
  /** The interface on which it meets the other ranks: `Bootstrap: Using eth0:10.0.0.1<0>`. */
  readonly bootstrap: { readonly name: string; readonly address: string; readonly place: LogPlace } | undefined;
  /** `Using network IB`. */
  readonly network: { readonly name: string; readonly place: LogPlace } | undefined;
  /** True if network devices were merged to larger ones: their numbers are not those of `devices`. */
  readonly mergedNics: boolean;
  /** Versions of the interface of network plugins: the newest that NCCL did not find, and the one that it loaded. */
  readonly pluginSought: number | undefined;
  readonly plugin: { readonly name: string; readonly version: number; readonly place: LogPlace } | undefined;
  /** Name and release that the network plugin writes: `aws-ofi-nccl 1.9.1`. */
  readonly pluginRelease: { readonly text: string; readonly place: LogPlace } | undefined;
  /** The file of the network plugin, empty where NCCL found none. */
  readonly pluginPath: { readonly path: string; readonly place: LogPlace } | undefined;
  /** NCCL's lines about P2P that it could not use. */
  readonly noP2p: { readonly text: string; readonly place: LogPlace } | undefined;
}

/** Progress of a rank in init, by the last line that it wrote. */
export const Stage = { BEGUN: 0, TOPOLOGY: 1, CHANNELS: 2, CONNECTING: 3, CONNECTED: 4, DONE: 5 } as const;
export type Stage = (typeof Stage)[keyof typeof Stage];

/** A communicator, from the lines of its ranks. */
export interface LoggedCommunicator {
  /** `commId`, or a generated name for versions and splits without one. */
  readonly id: string;
  /** Number of ranks; a lower bound if the log has no beginning. */
  readonly nRanks: number;
  readonly nRanksKnown: boolean;
  /** From `nNodes`, since 2.19; undefined where no rank printed it. */
  readonly nNodes: number | undefined;
  /** Ranks with a line, by rank. */
  readonly ranks: ReadonlyMap<number, LoggedRank>;
  /** True if it was split off another communicator. */
  readonly isSplit: boolean;
}

/** A rank of a communicator; `started` and `completed` are the places of its lines `Init START` and `Init COMPLETE`. */
export interface LoggedRank {
  readonly rank: number;
  readonly process: LoggedProcess;
  readonly cudaDev: number;
  readonly nvmlDev: number | undefined;
  readonly busId: string | undefined;
  readonly started: LogPlace | undefined;
  readonly completed: LogPlace | undefined;
  readonly last: LogPlace;
  readonly stage: Stage;
  readonly initSeconds: number | undefined;
  /** `Channel 00/16 : 0 1 …`, which rank 0 writes: by channel. */
  readonly ringOrders: ReadonlyMap<number, RingOrder>;
  /** By channel, previous and next rank: -1 where not known. */
  readonly ring: Int32Array;
  /** By channel, three children and parent: -1 for none, {@link UNKNOWN} where not known. */
  readonly trees: Int32Array;
  /** Lines of `Ring` and `Trees`. */
  readonly ringPlace: LogPlace | undefined;
  readonly treesPlace: LogPlace | undefined;
  readonly links: readonly LoggedLink[];
  readonly searches: ReadonlyMap<string, { readonly result: SearchResult; readonly place: LogPlace }>;
  readonly channelCounts:
    { readonly coll: number; readonly nvls: number | undefined; readonly p2p: number; readonly place: LogPlace } | undefined;
  readonly nvlsHeads: ReadonlyMap<number, { readonly ranks: readonly number[]; readonly place: LogPlace }>;
  /** True if its host has NVLink, as far as the log shows. */
  readonly nvlink: boolean;
  readonly nvls: { readonly available: boolean; readonly place: LogPlace } | undefined;
  readonly ringNetwork: { readonly gdr: boolean; readonly pxn: boolean; readonly place: LogPlace } | undefined;
  readonly choices: ReadonlyMap<string, { readonly algorithm: string; readonly protocol: string; readonly channels: number }>;
}

/** In {@link LoggedRank.trees}: no line about this channel. */
export const UNKNOWN = -2;
/** Numbers a channel in {@link LoggedRank.trees}. */
export const TREE_STRIDE = 4;

export interface RingOrder {
  readonly nChannels: number;
  readonly ranks: readonly number[];
  /** True if ranks are missing at the end: NCCL cuts long lines itself. */
  readonly cut: boolean;
  readonly place: LogPlace;
}

/** A rank's connection to another, with the number of its channels. */
export interface LoggedLink {
  readonly peer: number;
  readonly end: 'send' | 'receive';
  readonly transport: Transport;
  readonly channels: number;
  /** Bits of these channels, 0 to 31 and 32 to 63. */
  readonly low: number;
  readonly high: number;
  readonly place: LogPlace;
}

/** Warnings without a rule that are equal apart from numbers and names. */
export interface LoggedWarning {
  /** The text of the first. */
  readonly text: string;
  readonly source: string | undefined;
  readonly count: number;
  /** True if a call of the same thread returned an error right after the first. */
  readonly failed: boolean;
  /** True if the process that wrote it last reported a connection afterwards. */
  readonly wentOn: boolean;
  readonly places: readonly LogPlace[];
  readonly ranks: readonly string[];
  /** Messages of the same thread before and after the first. */
  readonly before: readonly string[];
  readonly after: readonly string[];
}
