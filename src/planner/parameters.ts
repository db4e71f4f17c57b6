import { ncclVariables, outsideThePlan } from './nccl-variables.js';
import { isWholeInteger, parseBigInteger } from './topology/c-numbers.js';
import { PathType, pathTypeNames, PATH_TYPE_PORT } from './topology/types.js';
import { didYouMean } from '../suggest.js';
import { missingUntil } from './versions/variables.js';
import { defaultVersion } from './versions/version.js';
import {
  channels,
  ctas,
  fewestChannels,
  from,
  mostChannels,
  onlyOne,
  outsideRange,
  type Range,
  within,
  zeroOrOne,
} from './variable-ranges.js';
import type { Windows } from './windows.js';

/** NCCL's number for a field of a communicator's configuration that is not set. */
const NOT_SET = -2147483648;

/**
 * All settings of the planner, one line each: the field's name, NCCL's variable, the reader of its text, its value when unset,
 * and its effect. A new setting is a line here.
 */
const settings = {
  // Direct paths between GPUs.
  p2pLevel: level(
    'NCCL_P2P_LEVEL',
    'farthest path over which GPUs use peer-to-peer copies: a path type, or the older numbers 0 to 5; unset: PXB, or SYS on AMD CPUs with at most two GPUs',
  ),
  p2pDisable: integer('NCCL_P2P_DISABLE', 0, '1 turns peer-to-peer copies off; it wins over NCCL_P2P_LEVEL', onlyOne),
  ignoreDisabledP2p: integer(
    'NCCL_IGNORE_DISABLED_P2P',
    0,
    'where the driver refuses peer-to-peer: 0 fails for GPUs joined by NVLink, 1 goes through the CPU, 2 does not ask the driver',
    within(0, 2, 'NCCL takes it as 1'),
  ),
  p2pReadEnable: unless(
    -2,
    'NCCL_P2P_READ_ENABLE',
    'peer-to-peer copies read (1) or write (0); unset: read between GPUs of sm 80 joined by NVLink, else write',
    zeroOrOne,
  ),
  p2pUseCudaMemcpy: integer(
    'NCCL_P2P_USE_CUDA_MEMCPY',
    0,
    '1 copies between peers with copy engines: writes, and never by way of another GPU',
    zeroOrOne,
  ),
  shmDisable: integer('NCCL_SHM_DISABLE', 0, '1 turns shared memory between ranks of a host off', onlyOne),
  netDisableIntra: integer(
    'NCCL_NET_DISABLE_INTRA',
    0,
    '1 never uses the network inside a host, even where it is faster',
    onlyOne,
  ),
  nvbDisable: integer('NCCL_NVB_DISABLE', 0, '1 allows no path over NVLink by way of another GPU', zeroOrOne),

  // NICs of a GPU, and access to its memory.
  netGdrLevel: level(
    'NCCL_NET_GDR_LEVEL',
    'farthest GPU-NIC path over which the NIC reads and writes GPU memory: a path type, or the older numbers 0 to 5; unset: P2C, or PXB when NCCL_NET_GDR_C2C=0',
  ),
  netGdrRead: integer(
    'NCCL_NET_GDR_READ',
    -2,
    'GPU Direct RDMA for sends: 0 never, 1 always, below 0: always from sm 80 on, before that only with NVLink',
    within(-Infinity, 1, 'NCCL takes it as 1'),
  ),
  netGdrC2c: integerOrUnset(
    'NCCL_NET_GDR_C2C',
    '1 allows GPU Direct RDMA for NICs below a CPU that the GPU reaches over C2C; unset: 1, before 2.27.3 0',
    zeroOrOne,
  ),
  netGdrMloPart: integer('NCCL_NET_GDR_MLOPART', 0, '1 allows GPU Direct RDMA for parts of a split GPU', zeroOrOne),
  pxnDisable: integer(
    'NCCL_PXN_DISABLE',
    0,
    '1 never reaches a NIC by way of another GPU',
    within(0, 1, 'NCCL makes detours by way of other GPUs, as with 0, but does not connect for them in advance'),
  ),
  pxnC2c: integerOrUnset(
    'NCCL_PXN_C2C',
    '1 allows that also where the other GPU reaches the NIC over C2C; unset: 1, before 2.28.3 0',
    zeroOrOne,
  ),
  netDevicesPolicy: devicesPolicy(
    'NCCL_NETDEVS_POLICY',
    'how many of its nearest NICs a GPU uses: AUTO shares them out, ALL, or MAX:n',
  ),
  scatterStartNet: integer(
    'NCCL_TOPO_SCATTER_START_NET',
    0,
    '1 lets GPUs that share NICs start with different ones by their number among these GPUs, as Blackwell does next to a ConnectX-8',
  ),
  ibMergeNics: integer('NCCL_IB_MERGE_NICS', 1, '0 keeps the ports of a card apart', zeroOrOne),
  netMergeLevel: mergeLevel(
    'NCCL_NET_MERGE_LEVEL',
    'NICs at most this far apart become one virtual NIC: LOC (none), PORT, PIX, PXB, P2C, PXN, PHB or SYS',
  ),
  netForceMerge: text('NCCL_NET_FORCE_MERGE', 'groups of NICs to make one virtual NIC each: names by comma, groups by semicolon'),
  netMergePolicy: choice('NCCL_NET_MERGE_POLICY', ['ALL', 'RAIL'], 'ALL', 'RAIL merges only NICs of the same rail'),

  // Search.
  crossNic: integer(
    'NCCL_CROSS_NIC',
    2,
    'rings that leave a host by another NIC than they enter: 0 never, 1 allowed, 2 where it costs nothing',
    within(0, 2, 'NCCL searches as with 0'),
  ),
  mnnvlScatterNets: integer(
    'NCCL_MNNVL_SCATTER_NETS_ENABLE',
    1,
    '1 spreads the channels of a rack over the NICs of all its hosts, 0 takes those of one host after the other',
    zeroOrOne,
  ),
  mnnvlRailPerHost: integer(
    'NCCL_MNNVL_RAIL_PER_HOST',
    0,
    '1 takes NICs with the same PCI id in different hosts of a rack for the same rail',
    zeroOrOne,
  ),
  nvlsEnable: integer(
    'NCCL_NVLS_ENABLE',
    2,
    'NVLink SHARP: 0 off, 1 on, 2 where the hardware has it',
    within(0, 2, 'NCCL takes it as 1'),
  ),
  splitMloPart: integer(
    'NCCL_TOPO_SPLIT_MLOPART',
    1,
    '1 gives each part of a split GPU hardware of its own in the graph',
    zeroOrOne,
  ),

  // Network devices that differ between ranks.
  ignoreNetMismatch: integer(
    'NCCL_IGNORE_NET_MISMATCH',
    1,
    '0 refuses ranks whose hosts have different numbers of network devices',
    zeroOrOne,
  ),
  ignoreCollnetMismatch: integer(
    'NCCL_IGNORE_COLLNET_MISMATCH',
    0,
    '1 accepts ranks whose hosts have different numbers of devices for reduction in the network',
    zeroOrOne,
  ),

  // Numbers of channels.
  minRings: unless(-2, 'NCCL_MIN_NRINGS', 'older name of NCCL_MIN_NCHANNELS, which wins', fewestChannels),
  maxRings: unless(-2, 'NCCL_MAX_NRINGS', 'older name of NCCL_MAX_NCHANNELS, which wins', mostChannels),
  minChannels: unless(-2, 'NCCL_MIN_NCHANNELS', 'fewest channels: where the search gives fewer, they are copied', fewestChannels),
  maxChannels: unless(-2, 'NCCL_MAX_NCHANNELS', 'most channels: only the first ones are used', mostChannels),
  minCtas: unless(
    NOT_SET,
    'NCCL_MIN_CTAS',
    'fewest channels, as the configuration of a communicator asks for them; unset: 1',
    ctas,
  ),
  maxCtas: unless(NOT_SET, 'NCCL_MAX_CTAS', 'most channels, as the configuration of a communicator allows them; unset: 64', ctas),
  unpackDoubleChannels: integer(
    'NCCL_UNPACK_DOUBLE_NCHANNELS',
    1,
    '0 does not double the channels between nodes where NCCL_NET is GPUDirect-TCPX',
    zeroOrOne,
  ),
  workArgsBytes: integer(
    'NCCL_WORK_ARGS_BYTES',
    Number.MAX_SAFE_INTEGER,
    'size of the arguments of a kernel, which bounds the number of channels',
    from(1, 'NCCL does not check it'),
  ),

  // Reduction in the network and in the NVSwitch.
  collnetEnable: integer(
    'NCCL_COLLNET_ENABLE',
    0,
    '1 reduces in the network (SHARP) where its plugin can',
    within(0, 1, 'NCCL takes it as 0'),
  ),
  collnetNodeThreshold: integer(
    'NCCL_COLLNET_NODE_THRESHOLD',
    2,
    'fewest hosts for which the network reduces',
    from(1, 'NCCL takes it as 1'),
  ),
  nvlsChannels: unless(NOT_SET, 'NCCL_NVLS_NCHANNELS', 'channels for NVLink SHARP; unset: 16, from sm 100 on 24 or 32', ctas),
  nvlsChunkBytes: unless(
    NOT_SET,
    'NCCL_NVLS_CHUNKSIZE',
    'chunk of NVLink SHARP; unset: 128 KiB, on some clusters of sm 100 more',
  ),
  nvlsTreeMaxChunkBytes: unless(-2, 'NCCL_NVLSTREE_MAX_CHUNKSIZE', 'largest chunk of NVLink SHARP with trees between hosts'),

  // Buffers.
  bufferBytes: unless(-2, 'NCCL_BUFFSIZE', 'buffer of protocol Simple by connection and channel; unset: 4 MiB'),
  llBufferBytes: unless(-2, 'NCCL_LL_BUFFSIZE', 'the same of protocol LL; unset: 512 KiB'),
  ll128BufferBytes: unless(-2, 'NCCL_LL128_BUFFSIZE', 'the same of protocol LL128; unset: 4,915,200 bytes'),

  // Algorithm and protocol.
  algorithms: text('NCCL_ALGO', 'algorithms to choose from, as ring,tree;allreduce:^ring; unset: all'),
  protocols: text(
    'NCCL_PROTO',
    'protocols to choose from, as ^LL128;allreduce:LL,simple; unset: all, LL128 only where it is safe',
  ),
  ll128C2c: integer(
    'NCCL_LL128_C2C',
    1,
    '1 allows LL128 from sm 90 on also where GPUs reach NICs over C2C or by way of other GPUs',
    zeroOrOne,
  ),
  patEnable: integer(
    'NCCL_PAT_ENABLE',
    2,
    'algorithm PAT: 0 off, 1 on, 2 with one rank a node',
    within(0, 2, 'NCCL takes it as 1'),
  ),
  netOverheadNs: unless(
    -2,
    'NCCL_NET_OVERHEAD',
    'what posting to the network is taken to cost, ns; unset: 1000, or 2000 on AMD CPUs',
    from(0, 'NCCL takes it, and so believes in less time than none'),
  ),
  maxThreads: threads('NCCL_NTHREADS', 64, 512, 'threads of a channel with LL and Simple, a multiple of 32 from 64 to 512'),
  ll128Threads: threads('NCCL_LL128_NTHREADS', 160, 640, 'threads of a channel with LL128, a multiple of 32 from 160 to 640'),
  threadThresholds: text(
    'NCCL_THREAD_THRESHOLDS',
    'bytes a thread from which on all threads and channels are used: six numbers, for Tree with LL, LL128, Simple, then Ring',
  ),

  // Send and receive.
  minP2pChannels: integer('NCCL_MIN_P2P_NCHANNELS', 1, 'fewest channels for send and receive', channels),
  maxP2pChannels: integer('NCCL_MAX_P2P_NCHANNELS', 64, 'most channels for send and receive', channels),
  p2pMaxPeers: unless(
    NOT_SET,
    'NCCL_P2P_MAX_PEERS',
    'how many peers a rank is expected to exchange with at the same time; unset: all',
    from(1, 'NCCL ignores it'),
  ),
  channelsPerNetPeer: unless(
    NOT_SET,
    'NCCL_NCHANNELS_PER_NET_PEER',
    'channels to a peer on another host; unset: by bandwidth of the NICs',
    from(1, 'NCCL ignores it'),
  ),
  p2pPerChannelNetGBps: integer(
    'NCCL_P2P_PER_CHANNEL_NET_BW',
    14,
    'bandwidth that one channel to another host is taken to carry, GB/s',
  ),
  p2pNetChunkBytes: integer('NCCL_P2P_NET_CHUNKSIZE', 1 << 17, 'chunk of send and receive where there are several hosts'),
  p2pPciChunkBytes: integer('NCCL_P2P_PCI_CHUNKSIZE', 1 << 17, 'the same on one host over PCI'),
  p2pNvlChunkBytes: integer('NCCL_P2P_NVL_CHUNKSIZE', 1 << 19, 'the same on one host over NVLink'),
  p2pScheduleGroupSize: integer(
    'NCCL_P2P_SCHEDULE_GROUP_SIZE',
    8,
    'ranks of a host that are scheduled together in exchanges with all others',
  ),

  // Symmetric windows and copy engines.
  windowEnable: integer('NCCL_WIN_ENABLE', 1, '0 switches symmetric windows off', zeroOrOne),
  ctaPolicy: ctaPolicy(
    'NCCL_CTA_POLICY',
    'ZERO or 2 moves calls on symmetric windows by copy engines; plans do not depend on EFFICIENCY or 1',
  ),
  ginEnable: integer('NCCL_GIN_ENABLE', 1, '0 lets no GPU drive its NIC, which symmetric kernels between nodes need', zeroOrOne),
  symmetricKernel: text(
    'NCCL_SYM_KERNEL',
    'the one symmetric kernel to use, by its exact name; since 2.31.2 a list like NCCL_ALGO, and then all that it does not name are off',
  ),
  symmetricCtas: integer(
    'NCCL_SYM_CTAS',
    0,
    'number of CTAs of a symmetric kernel, 64 at most; 0 leaves it to the model',
    from(0, 'NCCL takes it as 0'),
  ),
  symmetricWithoutWindows: integer(
    'NCCL_SYM_NOWIN_ENABLE',
    0,
    '1 uses symmetric LL kernels for buffers without windows, too',
    zeroOrOne,
  ),
  symmetricRails: integer('NCCL_SYM_GIN_KERNELS_ENABLE', 1, '0 switches symmetric kernels between nodes off', zeroOrOne),
  symmetricRailChunkBytes: integer(
    'NCCL_SYM_RS_GIN_CHUNK_SIZE',
    -1,
    'chunk of symmetric ReduceScatter between nodes, a power of two from 128 bytes to 1 GiB; unset: 128 KiB',
  ),
  symmetricTma: integerOrUnset(
    'NCCL_SYM_TMA_ENABLE',
    '1 uses symmetric kernels that copy by TMA, from sm 100 on; unset: 1, before 2.31.2 0',
    zeroOrOne,
  ),
  copyEngineThreshold: integerOrUnset(
    'NCCL_SYM_CE_THRESHOLD',
    'elements a rank above which AllGather on windows uses copy engines, from sm 100 on; unset: 8 Mi, since 2.31.2 32 Mi where TMA copies without multicast',
    from(0, 'NCCL takes it, so that all calls use copy engines'),
  ),
} as const;

type SettingName = keyof typeof settings;

/** Every setting of the planner. Get one from {@link parametersFromEnvironment} or {@link defaultParameters}. */
export type Parameters = {
  readonly [Name in SettingName]: (typeof settings)[Name] extends Setting<infer Value> ? Value : never;
} & {
  /** The version of NCCL whose decisions are made: one of `coveredVersions`. */
  readonly ncclVersion: string;
  /** Buffers of calls in symmetric windows, which other kernels serve. */
  readonly windows: Windows;
  /** True if GPUs put together what the network received, as with Google's GPUDirect-TCPX (`NCCL_NET`), but not -TCPXO. */
  readonly unpacksOnGpu: boolean;
};

/** The path type that a level variable asks for, or undefined when it leaves the choice to NCCL. */
type Level = PathType | undefined;

/** Number of its nearest NICs that a GPU may use. */
type NetDevicesPolicy = { readonly kind: 'auto' } | { readonly kind: 'all' } | { readonly kind: 'max'; readonly count: number };

/** One line of {@link settings}. */
interface Setting<Value> {
  /** The name of the variable. */
  readonly variable: string;
  readonly whenUnset: Value;
  readonly doc: string;
  /** NCCL's value for this text; `complain` receives notes about the text for the user. */
  read(text: string, complain: (problem: string) => void): Value;
}

/** A note about the environment for the user. */
export interface EnvironmentNote {
  readonly variable: string;
  readonly message: string;
  /** True if NCCL takes another value than the text says. */
  readonly isMisread?: true;
}

/** The settings when no variable is set, for {@link defaultVersion}. */
export const defaultParameters: Parameters = Object.freeze({
  ...Object.fromEntries(Object.entries(settings).map(([name, setting]) => [name, setting.whenUnset])),
  ncclVersion: defaultVersion,
  windows: 'none',
  unpacksOnGpu: false,
}) as Parameters;

/** The settings as a table: for help and documentation. */
export const parameterTable: readonly { readonly field: SettingName; readonly variable: string; readonly doc: string }[] = (
  Object.keys(settings) as SettingName[]
).map((field) => ({ field, variable: settings[field].variable, doc: settings[field].doc }));

/** True if a plan depends on this variable of NCCL. */
export function isPlanned(variable: string): boolean {
  return variable === 'NCCL_GRAPH_FILE' || parameterTable.some((setting) => setting.variable === variable);
}

/**
 * The parameters of an environment, read as NCCL reads it: integers in decimal, hexadecimal or octal, text after the number
 * ignored, an empty value as unset. Notes are about unknown names that begin with `NCCL_`, variables that plans cannot take into
 * account, and values that NCCL reads in an unexpected way; nothing is refused.
 *
 * @param of the version of NCCL, or other parameters whose version and windows hold
 */
export function parametersFromEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  of: string | Pick<Parameters, 'ncclVersion' | 'windows'> = defaultVersion,
): { readonly parameters: Parameters; readonly notes: readonly EnvironmentNote[] } {
  const { ncclVersion, windows } = typeof of === 'string' ? { ncclVersion: of, windows: defaultParameters.windows } : of;
  const unpacksOnGpu = /TCPX(?!O)/i.test(environment['NCCL_NET'] ?? '');
  const values: Record<string, unknown> = { ...defaultParameters, ncclVersion, windows, unpacksOnGpu };
  const notes: EnvironmentNote[] = [];
  const byVariable = new Map(parameterTable.map(({ variable, field }) => [variable, field]));
  for (const [variable, value] of Object.entries(environment)) {
    if (value === undefined || !variable.startsWith('NCCL_')) continue;
    const field = byVariable.get(variable);
    const since = missingUntil(variable, ncclVersion);
    if (since !== undefined) {
      notes.push({
        variable,
        message: `NCCL ${ncclVersion} has no variable ${variable}, which came with ${since}: it is ignored`,
      });
    } else if (field !== undefined) {
      values[field] = settings[field].read(value, (message) => notes.push({ variable, message, isMisread: true }));
    } else if (!ncclVariables.has(variable)) {
      notes.push({ variable, message: `NCCL has no variable ${variable}${didYouMean(variable, ncclVariables)}` });
    } else if (value !== '' && outsideThePlan.has(variable) && !(variable === 'NCCL_NET' && unpacksOnGpu)) {
      notes.push({ variable, message: `${variable} is not part of a plan: ${outsideThePlan.get(variable) ?? ''}` });
    }
  }
  return { parameters: values as Parameters, notes };
}

/** An integer, read as NCCL's parameters are: base by prefix, empty or out of 64 bits means unset. */
function integer(variable: string, whenUnset: number, doc: string, range?: Range): Setting<number> {
  const setting = unless(whenUnset, variable, doc, range);
  return { ...setting, whenUnset, read: (value, complain) => setting.read(value, complain) ?? whenUnset };
}

/** An integer whose value when unset is a rule of the version. */
function integerOrUnset(variable: string, doc: string, range: Range): Setting<number | undefined> {
  return unless(undefined, variable, doc, range);
}

/** An integer for which NCCL may have a number that means unset; its range says when a note is due. */
function unless(unsetNumber: number | undefined, variable: string, doc: string, range?: Range): Setting<number | undefined> {
  return {
    variable,
    doc,
    whenUnset: undefined,
    read(value, complain) {
      const number = readInteger(variable, value, complain);
      if (number === undefined || number === unsetNumber) return undefined;
      const problem = range === undefined ? undefined : outsideRange(variable, value, number, range);
      if (problem !== undefined) complain(problem);
      return number;
    },
  };
}

/** A number of threads: whole warps of 32, within limits; 0 and negative numbers mean unset. */
function threads(variable: string, fewest: number, most: number, doc: string): Setting<number | undefined> {
  return {
    variable,
    doc,
    whenUnset: undefined,
    read(value, complain) {
      const asked = readInteger(variable, value, complain);
      if (asked === undefined || asked <= 0) return undefined;
      const taken = asked % 32 === 0 ? Math.max(fewest, Math.min(most, asked)) : most;
      if (taken !== asked)
        complain(`${variable}=${value} is not a multiple of 32 from ${fewest} to ${most}, so NCCL takes ${taken}`);
      return taken;
    },
  };
}

function readInteger(variable: string, value: string, complain: (problem: string) => void): number | undefined {
  if (value === '') return undefined;
  const number = parseBigInteger(value, 0);
  if (BigInt.asIntN(64, number) !== number) {
    complain(`${variable}=${value} does not fit in 64 bits, so NCCL takes it as unset`);
    return undefined;
  }
  if (!isWholeInteger(value)) complain(`${variable}=${value} is not an integer: NCCL reads ${number}`);
  return Number(number);
}

/** Meanings of the numbers 0 to 5 of older releases; greater ones mean the last. */
const olderLevels = [PathType.LOC, PathType.PIX, PathType.PXB, PathType.PHB, PathType.SYS, PathType.SYS] as const;

/** A path type from LOC to SYS by its exact name, or one of the older numbers. */
function level(variable: string, doc: string): Setting<Level> {
  return {
    variable,
    whenUnset: undefined,
    doc,
    read(value, complain) {
      const names = pathTypeNames.slice(0, PathType.SYS + 1);
      const named = names.findIndex((name) => name === value);
      if (named >= 0) return named as PathType;
      if (/^[0-9]/.test(value)) {
        const number = Number(parseBigInteger(value, 0));
        return olderLevels[Math.min(number, olderLevels.length - 1)];
      }
      complain(`${variable}=${value} is not one of ${names.join(' ')}, so NCCL ignores it${didYouMean(value, names)}`);
      return undefined;
    },
  };
}

/** Merge levels by name; NCCL matches the beginning of the text, and takes LOC for any other. */
const mergeLevels: readonly (readonly [string, PathType])[] = [
  ['LOC', PathType.LOC],
  ['PORT', PATH_TYPE_PORT],
  ['PIX', PathType.PIX],
  ['PXB', PathType.PXB],
  ['P2C', PathType.P2C],
  ['PXN', PathType.PXN],
  ['PHB', PathType.PHB],
  ['SYS', PathType.SYS],
];

function mergeLevel(variable: string, doc: string): Setting<PathType> {
  return {
    variable,
    whenUnset: PATH_TYPE_PORT,
    doc,
    read(value, complain) {
      const found = mergeLevels.find(([name]) => value.startsWith(name));
      if (found !== undefined) return found[1];
      const names = mergeLevels.map(([name]) => name);
      complain(`${variable}=${value} is not one of ${names.join(' ')}, so NCCL merges nothing${didYouMean(value, names)}`);
      return PathType.LOC;
    },
  };
}

function devicesPolicy(variable: string, doc: string): Setting<NetDevicesPolicy> {
  return {
    variable,
    whenUnset: { kind: 'auto' },
    doc,
    read(value, complain) {
      const upper = value.toUpperCase();
      if (upper === 'AUTO') return { kind: 'auto' };
      if (upper === 'ALL') return { kind: 'all' };
      const count = upper.startsWith('MAX:') ? Number(parseBigInteger(value.slice(4), 10)) : 0;
      if (count > 0) return { kind: 'max', count };
      complain(`${variable}=${value} is not AUTO, ALL or MAX:n, so NCCL uses AUTO`);
      return { kind: 'auto' };
    },
  };
}

/** A digit, or since 2.29 names joined by bars; of them only ZERO affects plans. */
function ctaPolicy(variable: string, doc: string): Setting<'default' | 'zero'> {
  return {
    variable,
    whenUnset: 'default',
    doc,
    read(value, complain) {
      const names = value.split('|').filter((name) => name !== '');
      const known = ['DEFAULT', 'EFFICIENCY', 'ZERO'];
      const unknown = /^[0-9]/.test(value) ? !/^[0-2]/.test(value) : !names.every((name) => known.includes(name.toUpperCase()));
      if (unknown)
        complain(`${variable}=${value} is not 0 to 2 or one of ${known.join(' ')}, so NCCL ignores what it does not know`);
      return value.startsWith('2') || names.some((name) => name.toUpperCase() === 'ZERO') ? 'zero' : 'default';
    },
  };
}

function choice<const Names extends readonly string[]>(
  variable: string,
  names: Names,
  whenUnset: Names[number],
  doc: string,
): Setting<Names[number]> {
  return {
    variable,
    whenUnset,
    doc,
    read(value, complain) {
      const found = names.find((name) => name === value.toUpperCase());
      if (found === undefined) complain(`${variable}=${value} is not one of ${names.join(' ')}, so NCCL uses ${whenUnset}`);
      return found ?? whenUnset;
    },
  };
}

function text(variable: string, doc: string): Setting<string | undefined> {
  return { variable, whenUnset: undefined, doc, read: (value) => value };
}
