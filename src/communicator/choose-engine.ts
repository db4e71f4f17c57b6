import type { Bootstrap } from '../bootstrap/bootstrap.js';
import type { BootstrapEnvironment } from '../bootstrap/environment.js';
import { chooseInterface, systemInterfaces } from '../bootstrap/interfaces.js';
import type { UniqueId } from '../bootstrap/unique-id.js';
import type { Algorithm } from '../collectives/call.js';
import { HEADER_BYTES, HEADER_WORDS } from '../collectives/exchange.js';
import { LOW_LATENCY_FIFO } from '../collectives/ring.js';
import type { Libc } from '../device/libc.js';
import { Team } from '../device/team.js';
import { InvalidUsageError, TimeoutError } from '../errors.js';
import { connectPeers } from '../transport/peers.js';
import { connectRing } from '../transport/ring.js';
import { ShmTransport } from '../transport/shm.js';
import { SocketTransport } from '../transport/socket.js';
import type { FifoSize, Transport } from '../transport/transport.js';
import type { Facts } from './agree.js';
import { carriesOut, defaultTable } from './choose-algorithm.js';
import { CompositeEngine } from './composite-engine.js';
import { DirectEngine } from './direct-engine.js';
import type { Engine } from './engine.js';
import { observersOf, type Told } from './feedback.js';
import { fifoOf, NetworkEngine, wantedEnds } from './network-engine.js';
import { NvlsEngine } from './nvls-engine.js';
import { ObservedEngine } from './observed-engine.js';
import type { RuntimeSettings } from './options.js';
import { tableOf, timesFor } from './profile.js';
import { ThreadEngine } from './thread-engine.js';

/** Up to this size an operation among ranks that have a core each takes one phase; measured (npm run bench). */
const SMALL_BYTES = 256;
/** Where ranks outnumber cores a phase costs a change of process on each core, so one phase pays for longer. */
const SMALL_BYTES_CROWDED = 4096;
/** Up to which size all-reduces by *direct* take one phase; other calls by takesOnePhase(). */
export function smallBytesOf(nLocalRanks: number, nCores: number): number {
  return nLocalRanks > nCores ? SMALL_BYTES_CROWDED : SMALL_BYTES;
}

/** Up to this size a ring's calls take the protocol LL, beyond it its copies cost more than it saves (docs/algorithms.md). */
const LOW_LATENCY_BYTES = 256;
/** How long connections may take that are made when they are first needed. */
const CONNECT_TIMEOUT_MS = 60_000;

/** What the choice follows from; alike on all ranks but for what is each rank's own. */
export interface Circumstances {
  readonly bootstrap: Bootstrap;
  /** Whether all ranks of this host share memory. */
  readonly shared: boolean;
  readonly team: Team;
  readonly facts: readonly Facts[];
  readonly libc: Libc | undefined;
  readonly nCores: number;
  readonly settings: RuntimeSettings;
  readonly network: BootstrapEnvironment;
  readonly id: UniqueId;
  /** Ends set-ups that take too long. */
  readonly signal: AbortSignal;
  /** Threads that carry out calls beside the rank's own. */
  readonly nThreads: number;
  /** What carries out every call that it can. */
  readonly forced: Algorithm | undefined;
}

/**
 * The engine of a communicator, with the algorithms that its calls may take: where all ranks share one segment, those
 * that work on it; elsewhere those over connections, through the segment between ranks of one host and through sockets
 * between others. One of them may be forced.
 *
 * @throws InvalidUsageError `UNSUPPORTED` when direct or nvls is forced but the ranks do not share a segment
 */
export async function chooseEngine(circumstances: Circumstances): Promise<CompositeEngine> {
  const { bootstrap, team, facts, libc, nCores, settings, nThreads, forced } = circumstances;
  const { localRanks, nRanks } = bootstrap;
  const oneSegment = localRanks.length === nRanks && facts.every((fact) => fact.sharedWithHost);
  if ((forced === 'direct' || forced === 'nvls') && !oneSegment) {
    const reason = facts.find((fact) => !fact.sharedWithHost)?.reason ?? 'they are on several hosts';
    throw new InvalidUsageError('UNSUPPORTED', `the algorithm ${forced} (TCCL_ALGO) needs memory that all ranks share, but these do not: ${reason}`);
  }
  if (settings.protocol === 'll' && !oneSegment) {
    throw new InvalidUsageError('UNSUPPORTED', 'TCCL_PROTO=ll needs memory that all ranks share: over sockets there is no such protocol; leave it unset');
  }
  if (nThreads > 0 && !(oneSegment && (forced ?? 'direct') === 'direct')) {
    const reason = oneSegment ? `${forced ?? ''} is not the direct algorithm, the only one that they carry out` : 'these ranks do not all share memory, in which they work';
    throw new InvalidUsageError('UNSUPPORTED', `engine threads cannot be had: ${reason}; leave engine: 'thread' out`);
  }
  const usual = defaultTable({ nRanks, oneSegment, forced: nThreads > 0 ? 'direct' : forced });
  const profile = forced === undefined && nThreads === 0 ? facts[0]?.profile : undefined;
  const times = profile === undefined ? undefined : timesFor(profile, nRanks, nCores);
  const table = times === undefined ? usual : tableOf(
    times, usual,
    (algorithm, kind) => (oneSegment || (algorithm !== 'direct' && algorithm !== 'nvls')) && carriesOut(algorithm, kind, nRanks),
  );
  const used = [...new Set(Object.values(table).flatMap((ranges) => ranges.map(({ algorithm }) => algorithm)))];
  const overNetwork = used.filter((algorithm) => algorithm !== 'direct' && algorithm !== 'nvls');
  const engines: Partial<Record<Algorithm, Engine>> = {};
  let ring: Told['ring'];
  if (used.includes('direct')) {
    const smallBytes = smallBytesOf(localRanks.length, nCores);
    engines.direct = nThreads === 0 ? new DirectEngine(team, localRanks, libc, smallBytes) : await ThreadEngine.start({
      teams: [team, ...(await moreTeams(bootstrap, team, nThreads - 1))], localRanks, libc, smallBytes,
      spins: localRanks.length * nThreads > nCores ? 20 : 4000,
    });
  }
  if (used.includes('nvls')) engines.nvls = await NvlsEngine.open(bootstrap, team, libc);
  if (overNetwork.length > 0) {
    const order = ringOrder(bootstrap);
    const network = await openNetwork(circumstances, order);
    ring = { order, transport: network.transport };
    // Blocking calls, which only shared memory allows, cannot make connections.
    if (oneSegment) for (const algorithm of overNetwork) await network.open(algorithm);
    if (oneSegment && settings.protocol !== 'simple') await addLowLatency(circumstances, order, network);
    for (const algorithm of overNetwork) engines[algorithm] = network;
  }
  const observers = observersOf({ bootstrap, settings, table, ring, shared: circumstances.shared, ordinary: wayOfOrdinaryArrays(circumstances), float16Sums: () => wayOfFloat16Sums(circumstances), secret: circumstances.id.secret });
  return observers.length === 0 ? new CompositeEngine(table, engines) : new ObservedEngine(table, engines, observers);
}

/** For the log: why arrays outside the segment take two copies where they do. */
function wayOfOrdinaryArrays({ bootstrap, shared, team, settings }: Circumstances): string | undefined {
  if (!shared || bootstrap.localRanks.length === 1) return undefined;
  const { peerMemory } = team.segment;
  if (peerMemory?.isOpen === true) return 'read where they are by process_vm_readv';
  const reason = settings.peerMemory ? (peerMemory?.refusal ?? 'another rank cannot read there') : 'TCCL_CMA_DISABLE=1';
  return `copied through the memory in common (${reason})`;
}

function wayOfFloat16Sums({ team: { segment: { machineCode } }, settings }: Circumstances): string {
  const reason = machineCode === undefined ? (settings.machineCode ? 'the C library cannot be called' : 'TCCL_MACHINE_CODE_DISABLE=1') : machineCode.refusal;
  return reason === undefined ? 'by machine code' : `by WebAssembly (${reason})`;
}

/** Teams of the same members as `team`, in memory of the first. */
async function moreTeams(bootstrap: Bootstrap, { segment, members }: Team, count: number): Promise<Team[]> {
  if (count === 0) return [];
  const mine = bootstrap.localRank === 0 ? Array.from({ length: count }, () => Team.reserve(segment, members.length)) : [];
  const told = await bootstrap.broadcast(new TextEncoder().encode(JSON.stringify(mine.map(({ address }) => address))), bootstrap.localRanks[0] ?? 0, 'host');
  return (JSON.parse(new TextDecoder().decode(told)) as number[]).map((address, index) => new Team(segment, address, members, mine[index]));
}

/** Host by host, so that data enter and leave each host once. */
function ringOrder({ peers }: Bootstrap): number[] {
  const hosts = [...new Set(peers.map((peer) => peer.hostHash))];
  return hosts.flatMap((hash) => peers.filter((peer) => peer.hostHash === hash).map((peer) => peer.rank));
}

/** A ring, and what makes other connections. */
async function openNetwork(circumstances: Circumstances, order: readonly number[]): Promise<NetworkEngine> {
  const { bootstrap, shared, team, libc, signal } = circumstances;
  const { rank, nRanks, localRanks } = bootstrap;
  /** Does something with transports whose connections have a size. */
  const over = async <T>(size: FifoSize, make: (transportFor: (peer: number) => Transport) => Promise<T>): Promise<T> => {
    const shm = new ShmTransport({ size, team, localRanks });
    const socket = socketTransport(circumstances, size);
    try {
      return await make((peer) => (shared && localRanks.includes(peer) ? shm : socket));
    } finally {
      socket.close();
      shm.close();
    }
  };
  const ring = await over(fifoOf('ring', nRanks), (transportFor) => connectRing(bootstrap, order, transportFor, signal));
  return new NetworkEngine(team, libc, ring, (algorithm) => {
    const { sendTo, receiveFrom } = wantedEnds(algorithm, order, rank);
    return over(fifoOf(algorithm, nRanks), (transportFor) => connectPeers(bootstrap, sendTo, receiveFrom, transportFor, connectSignal()));
  });
}

/** A second ring, of the protocol LL. */
async function addLowLatency({ bootstrap, team, settings, signal }: Circumstances, order: readonly number[], network: NetworkEngine): Promise<void> {
  const header = { headerBytes: HEADER_BYTES, headerWords: HEADER_WORDS };
  const transport = new ShmTransport({ size: LOW_LATENCY_FIFO, team, localRanks: bootstrap.localRanks, lowLatency: header });
  network.useLowLatency(await connectRing(bootstrap, order, () => transport, signal), settings.protocol === 'll' ? Infinity : LOW_LATENCY_BYTES);
}

/** Ends connecting that takes too long, once init is over. */
function connectSignal(): AbortSignal {
  const late = new AbortController();
  const seconds = CONNECT_TIMEOUT_MS / 1000;
  setTimeout(() => late.abort(new TimeoutError('TIMEOUT', `the ranks did not connect with each other for data within ${seconds} s`)), CONNECT_TIMEOUT_MS).unref();
  return late.signal;
}

/** Connects this rank with ranks that it shares no memory with. */
export function socketTransport({ bootstrap, team, network, id }: Pick<Circumstances, 'bootstrap' | 'team' | 'network' | 'id'>, size: FifoSize): SocketTransport {
  const { rank, nRanks, localRanks } = bootstrap;
  // Between ranks of one host, data are nobody else's business.
  const host =
    localRanks.length === nRanks && network.family !== 6
      ? '127.0.0.1'
      : chooseInterface(systemInterfaces(), { ...network, root: { host: id.root.host, origin: id.origin } }).host;
  return new SocketTransport({ size, segment: team.segment, rank, host, secret: id.secret });
}
