import type { Bootstrap } from '../bootstrap/bootstrap.js';
import { connect } from '../bootstrap/connect.js';
import { readBootstrapEnvironment, type BootstrapEnvironment } from '../bootstrap/environment.js';
import { listenAt, startRoot, type Root } from '../bootstrap/root.js';
import { UniqueId } from '../bootstrap/unique-id.js';
import { allowedCores, coresOfAll } from '../device/cores.js';
import { loadLibc } from '../device/libc.js';
import { rankStates } from '../device/segment.js';
import { InvalidUsageError } from '../errors.js';
import type { Environment } from '../launch/environment.js';
import { passThroughLauncher } from '../launch/exchange.js';
import { findPlace } from '../launch/place.js';
import { threadPlace, type ThreadPlace } from '../launch/thread-place.js';
import { Communicator } from './communicator.js';
import { DirectEngine } from './direct-engine.js';
import type { Engine } from './engine.js';
import { joinSegment, type Joined } from './join-segment.js';
import { runtimeSettings, type RuntimeSettings } from './options.js';

/** Up to this size an operation among ranks that have a core each takes one phase; measured (npm run bench). */
const SMALL_BYTES = 256;
/** Where ranks outnumber cores a phase costs a change of process on each core, so one phase pays for longer. */
const SMALL_BYTES_CROWDED = 8192;

const DEFAULT_INIT_TIMEOUT_MS = 60_000;

/** What init() takes; a launcher's environment gives all of it. */
export interface InitOptions {
  /** This rank; with `nRanks` and `commId` for programs that start ranks by themselves. */
  readonly rank?: number;
  readonly nRanks?: number;
  /** What getUniqueId() gave to one of the ranks (or its text), or `host:port` where rank 0 can be reached. */
  readonly commId?: UniqueId | string;
  /** What the rank computes on, unique on its host. Left out: a number of its own. */
  readonly device?: string;
  /** How long to wait for the other ranks to come, in milliseconds. Default 60,000. */
  readonly timeoutMs?: number;
  /** Gives up waiting for the other ranks. */
  readonly signal?: AbortSignal;
  /** Where variables are read from. Default `process.env`. */
  readonly env?: Environment;
  /** Told, on rank 0, what works but not as well as it could. Default: one line on standard error. */
  readonly onWarning?: (message: string) => void;
}

/**
 * Joins the communicator of all ranks and resolves when all have come. Without options it finds its place by itself:
 * as a thread of spawnRanks(), or from the environment that `tccl run`, mpirun, mpiexec, srun or torchrun gives
 * (docs/launch.md). A process that nothing started as a rank is rank 0 of 1.
 *
 * @throws InvalidUsageError `ENVIRONMENT`, `RANK_UNKNOWN`, `RANK_COUNT_MISMATCH`, `RANK_DUPLICATE`, `DEVICE_DUPLICATE`,
 *   `VERSION_MISMATCH` (every rank gets the same); TimeoutError `RANK_MISSING` with the ranks that did not come;
 *   SystemError `NETWORK`, `OUT_OF_MEMORY`.
 */
export async function init(options: InitOptions = {}): Promise<Communicator> {
  const env = options.env ?? process.env;
  const settings = runtimeSettings(env);
  const network = readBootstrapEnvironment(env);
  const place = placeOf(options, env);
  const bootstrap = await meet(place, options, network);
  let joined: Joined | undefined;
  try {
    joined = await joinSegment(bootstrap, place.memory, settings.sharedMemory);
    const facts = await agree(bootstrap, settings, joined);
    const communicator = new Communicator({
      bootstrap,
      segment: joined.segment,
      libc: libcIfAny(),
      engine: chooseEngine(bootstrap, joined, settings, facts),
      nCores: coresOfAll(bootstrap.localRanks.map((rank) => facts[rank]?.cores ?? [])),
      timeoutMs: settings.timeoutMs,
    });
    warn(bootstrap, facts, options);
    joined.segment.setState(rankStates.ready);
    // Nobody may look for the dead before all are marked as living.
    await bootstrap.barrier();
    return communicator;
  } catch (error) {
    joined?.segment.close();
    bootstrap.abort(error as Error);
    throw error;
  }
}

/** A place, with the id where init() was given one as such. */
type GivenPlace = ThreadPlace & { readonly id?: UniqueId };

function placeOf({ rank, nRanks, commId }: InitOptions, env: Environment): GivenPlace {
  const id = commId instanceof UniqueId ? commId : undefined;
  if (rank === undefined && nRanks === undefined) {
    const place = threadPlace() ?? findPlace(env) ?? { launcher: 'none', rank: 0, nRanks: 1, localRank: 0, nLocalRanks: 1, commId: undefined };
    return { ...place, ...(typeof commId === 'string' ? { commId } : {}), ...(id === undefined ? {} : { id }) };
  }
  if (rank === undefined || nRanks === undefined) {
    throw new InvalidUsageError('RANK_UNKNOWN', 'init takes rank and nRanks together: give both, or neither under a launcher');
  }
  return {
    launcher: 'options', rank, nRanks, localRank: undefined, nLocalRanks: undefined,
    commId: typeof commId === 'string' ? commId : undefined,
    ...(id === undefined ? {} : { id }),
  };
}

/** Opens the root where this rank is to do so, and connects. */
async function meet(place: GivenPlace, options: InitOptions, network: BootstrapEnvironment): Promise<Bootstrap> {
  const { timeoutMs = DEFAULT_INIT_TIMEOUT_MS } = options;
  let root: Root | undefined;
  let id = place.id;
  if (id === undefined) {
    const openRoot = async () => {
      root = await startRoot({ interfaceName: network.interfaceName, family: network.family });
      return root.id.toString();
    };
    const { nRanks, rank, commId } = place;
    const text = commId ?? (nRanks === 1 ? await openRoot() : await passThroughLauncher(place, options.env ?? process.env, openRoot, { timeoutMs, signal: options.signal }));
    id = await UniqueId.read(text, network.commSecret);
    if (id.origin !== 'root' && rank === 0) root = await listenAt(text, network.commSecret);
  }
  try {
    return await connect({
      id,
      rank: place.rank,
      nRanks: place.nRanks,
      device: options.device,
      hostId: network.hostId,
      timeoutMs,
      interfaceName: network.interfaceName,
      family: network.family,
      signal: options.signal,
    });
  } finally {
    root?.close();
  }
}

function chooseEngine(bootstrap: Bootstrap, joined: Joined, settings: RuntimeSettings, facts: readonly Facts[]): Engine {
  const { localRanks, nRanks } = bootstrap;
  if (settings.algorithm === 'ring' || localRanks.length < nRanks || facts.some((fact) => !fact.sharedWithHost)) {
    throw new InvalidUsageError('UNSUPPORTED', 'these ranks do not share one memory');
  }
  const crowded = localRanks.length > coresOfAll(localRanks.map((rank) => facts[rank]?.cores ?? []));
  return new DirectEngine(joined.segment, localRanks, libcIfAny(), crowded ? SMALL_BYTES_CROWDED : SMALL_BYTES);
}

function warn(bootstrap: Bootstrap, facts: readonly Facts[], options: InitOptions): void {
  if (bootstrap.rank !== 0) return;
  const alone = facts.find((fact) => !fact.sharedWithHost);
  if (alone === undefined) return;
  const message = `ranks of one host do not share memory, so their data goes through sockets: ${alone.reason ?? 'unknown reason'}`;
  (options.onWarning ?? ((text: string) => void process.stderr.write(`tccl: ${text}\n`)))(message);
}

function libcIfAny() {
  const loaded = loadLibc();
  return 'libc' in loaded ? loaded.libc : undefined;
}

/** What every rank tells the others once its segment stands. */
interface Facts {
  readonly algorithm: string;
  readonly sharedWithHost: boolean;
  readonly reason?: string;
  readonly cores: readonly number[];
}

async function agree(bootstrap: Bootstrap, settings: RuntimeSettings, joined: Joined): Promise<Facts[]> {
  const mine: Facts = {
    algorithm: settings.algorithm ?? 'auto',
    sharedWithHost: joined.shared,
    cores: allowedCores(),
    ...(joined.reason === undefined ? {} : { reason: joined.reason }),
  };
  const all = await bootstrap.allGather(new TextEncoder().encode(JSON.stringify(mine)));
  const facts = all.map((bytes) => JSON.parse(new TextDecoder().decode(bytes)) as Facts);
  const other = facts.findIndex((fact) => fact.algorithm !== facts[0]?.algorithm);
  if (other >= 0) {
    throw new InvalidUsageError(
      'ENVIRONMENT',
      `TCCL_ALGO differs between ranks: ${facts[0]?.algorithm ?? ''} on rank 0, ${facts[other]?.algorithm ?? ''} on rank ${other}; set it alike for all`,
      { ranks: [0, other] },
    );
  }
  return facts;
}
