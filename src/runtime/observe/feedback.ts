import { createHash } from '#platform/crypto';
import { join, parse } from '#platform/paths';
import type { Bootstrap } from '../bootstrap/bootstrap.js';
import type { ChosenInterface } from '../bootstrap/interfaces.js';
import { nodeOf } from '../bootstrap/peer-info.js';
import { version } from '../../version.js';
import type { Channels } from '../algorithms/connections/channels.js';
import { algorithmsIn, rangesText, type AlgorithmTable } from '../algorithms/choose-algorithm.js';
import { fileNamed } from './append-file.js';
import { connectionLines, ringLines, treesLine } from './channel-lines.js';
import { DebugLog } from './debug-log.js';
import type { DebugSettings } from './debug-settings.js';
import type { Observer } from './observed-engine.js';
import { TraceFile } from './trace-file.js';
import { hostname } from '../platform/platform.js';
import { defined } from '../../defined.js';

/** The settings that the log and the trace follow or print; resources/options.ts describes each. */
interface ObservedSettings {
  readonly debug: DebugSettings;
  readonly tracePath: string | undefined;
  readonly unknown: readonly { readonly text: string }[];
  readonly variables: Readonly<Record<string, string>>;
  readonly protocol: string | undefined;
}

/** Facts about a new communicator, for the log and the trace. */
export interface FeedbackContext {
  readonly bootstrap: Bootstrap;
  readonly settings: ObservedSettings;
  readonly table: AlgorithmTable;
  /** Channels over connections, if there are any, the transport to the next rank of each ring, and this host's graphs. */
  readonly ring:
    { readonly channels: Channels; readonly transports: readonly string[]; readonly lines: readonly string[] } | undefined;
  /** Network between ranks that share no memory, in words; undefined if all share memory. A function, for it reads files. */
  readonly net: () => string | undefined;
  /** True if all ranks of this host share memory. */
  readonly shared: boolean;
  /** Name of the communicator, from the program. */
  readonly name: string | undefined;
  /** Way of ordinary arrays to the others of this host, or undefined if no memory is shared. */
  readonly ordinary: string | undefined;
  /** Way in which float16 are summed; a function, because the answer takes a millisecond. */
  readonly float16Sums: () => string;
  /** Network interface that this rank listens on. */
  readonly listensOn: () => ChosenInterface;
  /** Lines on the interfaces that carry data, and on the others; none if all ranks share memory. */
  readonly nics: () => readonly string[];
  /** Memory that the ranks of one init() share. */
  readonly secret: Uint8Array;
}

/** Number of communicators of this process so far, and this process in the first one: its rank, and the number of its host. */
let made = 0;
let firstRank = 0;
let firstHost = 0;

/**
 * Distance between the track numbers of two communicators in a trace. The number of a host is avoided, because viewers call
 * the thread with its process's number the main one, and 0, because some use it for a process's own number.
 */
const TRACKS = 100_000;

/** Makes the observers that TCCL_TRACE and TCCL_DEBUG ask for. The log begins with a description of the communicator. */
export function observersOf(context: FeedbackContext): Observer[] {
  const { bootstrap, settings } = context;
  const number = made++;
  if (number === 0) {
    firstRank = bootstrap.rank;
    firstHost = nodeOf(bootstrap.peers, bootstrap.rank).node;
  }
  const observers: Observer[] = [];
  if (settings.debug.level !== 'NONE') observers.push(startLog(context, number));
  if (settings.tracePath !== undefined) {
    observers.push(
      new TraceFile(traceFile(settings.tracePath), {
        isFirst: number === 0 && bootstrap.localRank === 0,
        host: firstHost,
        id: firstRank + TRACKS * (number + 1),
        name:
          number === 0
            ? `rank ${bootstrap.rank}`
            : `rank ${firstRank}, ${bootstrap.rank} of ${context.name ?? `communicator ${number}`}`,
      }),
    );
  }
  return observers;
}

/**
 * Ranks of each host write one file, even if hosts share a file system: all hosts except that of rank 0 put their name before
 * the file's ending, unless the pattern contains `%h`.
 */
function traceFile(pattern: string): string {
  const path = fileNamed(pattern);
  if (firstHost === 0 || /(?<!%)(%%)*%h/.test(pattern)) return path;
  const { dir, name, ext } = parse(path);
  return join(dir, `${name}.${hostname()}${ext}`);
}

function startLog(
  { bootstrap, settings, table, ring, net, shared, name: given, ordinary, float16Sums, listensOn, nics, secret }: FeedbackContext,
  number: number,
): DebugLog {
  const { rank, nRanks, localRank, localRanks, peers } = bootstrap;
  const address = `0x${(firstRank * 4096 + number + 1).toString(16)}`;
  const log = new DebugLog(settings.debug, { address, rank, nRanks, device: localRank });
  if (number === 0 && rank === 0) log.version(`TCCL version ${version}`);
  if (number === 0) {
    for (const { text } of settings.unknown) log.warn(text);
    for (const [name, text] of Object.entries(settings.variables)) log.info('ENV', `${name} set by environment to ${text}.`);
    const { name, host } = listensOn();
    log.info('INIT', `Bootstrap: Using ${name}:${host}<0>`);
  }
  const used = algorithmsIn(table);
  if (settings.protocol !== undefined && !used.includes('ring')) {
    log.warn(
      `TCCL_PROTO=${settings.protocol} has no effect: it affects rings, and no call here uses one; TCCL_ALGO=ring forces one`,
    );
  }
  const { nNodes } = nodeOf(peers, rank);
  const comm = `comm ${address} rank ${rank}`;
  if (given !== undefined) log.info('INIT', `${comm} is called ${JSON.stringify(given)}`);
  log.info(
    'INIT',
    `${comm} nRanks ${nRanks} nNodes ${nNodes} localRanks ${localRanks.length} localRank ${localRank}, ` +
      (shared ? 'one memory for the ranks of this host' : 'no shared memory'),
  );
  if (ordinary !== undefined) log.info('INIT', `${comm} ordinary arrays: ${ordinary}`);
  log.info('INIT', `${comm} float16 sums: ${float16Sums()}`);
  if (ring === undefined) {
    log.info('GRAPH', `${nRanks} heads, each reduces its share for all : ${peers.map((peer) => peer.rank).join(' ')}`);
  } else {
    const { channels, transports } = ring;
    const network = net();
    if (network !== undefined) {
      log.info('NET', `Using network ${network}`);
      if (localRank === 0) for (const line of nics()) log.info('NET', line);
    }
    for (const line of ring.lines) log.info('GRAPH', line);
    if (rank === 0) {
      if (channels.unplanned !== undefined) log.info('GRAPH', `Channels are not planned: ${channels.unplanned}`);
      for (const line of ringLines(channels)) log.info('GRAPH', line);
    }
    log.info('GRAPH', treesLine(channels, rank));
    for (const line of connectionLines(channels, rank, (number) => defined(transports[number]))) log.info('NET', line);
  }
  log.info(
    'INIT',
    `${comm} nranks ${nRanks} cudaDev ${localRank} busId ${localRank.toString(16)} commId 0x${commIdOf(secret, bootstrap)} - Init COMPLETE`,
  );
  if (rank === 0) for (const [kind, ranges] of Object.entries(table)) log.info('TUNING', `${kind}: ${rangesText(ranges)}`);
  return log;
}

/**
 * An id that is the same on all ranks of a communicator, and differs for other ranks or another init(). Reveals nothing of
 * the secret.
 */
function commIdOf(secret: Uint8Array, { peers }: Bootstrap): string {
  const members = peers.map(({ hostHash, processHash, device }) => [hostHash, processHash, device]);
  return createHash('sha256').update(secret).update(JSON.stringify(members)).digest('hex').slice(0, 16);
}
