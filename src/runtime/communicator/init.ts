import type { Bootstrap } from '../bootstrap/bootstrap.js';
import { readBootstrapEnvironment } from '../bootstrap/environment.js';
import { setHeartbeat } from '../bootstrap/liveness.js';
import type { UniqueId } from '../bootstrap/unique-id.js';
import { homeCores, moveTo } from '../device/affinity.js';
import { loadLibc, type Libc } from '../device/libc.js';
import { MachineCode } from '../device/machine-code/machine-code.js';
import { rankStates } from '../device/rank-lines.js';
import { Team } from '../device/team.js';
import { TcclError } from '../../errors.js';
import type { Environment } from '../launch/environment.js';
import type { PlatformAbortSignal } from '../platform.js';
import { warn } from '../warn.js';
import { agree, type Facts } from './agree.js';
import { ledToCaller } from '../caller-stack.js';
import { Communicator } from './communicator.js';
import { checkOptions, type CommunicatorConfig } from './config.js';
import { joinSegment, type Joined } from './join-segment.js';
import { DEFAULT_INIT_TIMEOUT_MS, meet, placeOf } from './meet.js';
import { connectInTime } from '../algorithms/open-network.js';
import { runtimeSettings, type RuntimeSettings } from './options.js';
import { Origin, type CommunicatorParts } from './origin.js';
import { profileFor } from '../algorithms/profile.js';

/** What init() takes; a launcher's environment gives all of it. */
export interface InitOptions extends CommunicatorConfig {
  /** This rank; with `nRanks` and `commId` for programs that start ranks by themselves. */
  readonly rank?: number | undefined;
  /** How many ranks there are; goes with `rank`. */
  readonly nRanks?: number | undefined;
  /** What getUniqueId() gave to one of the ranks (or its text), or `host:port` where rank 0 can be reached. */
  readonly commId?: UniqueId | string | undefined;
  /** What the rank computes on, unique on its host. Left out: a number of its own. */
  readonly device?: string | undefined;
  /** How long to wait for the other ranks to come, in milliseconds in which this one runs (watch-clock.ts). Default 60,000. */
  readonly timeoutMs?: number | undefined;
  /** Gives up waiting for the other ranks. */
  readonly signal?: PlatformAbortSignal | undefined;
  /** Where variables are read from. Default `process.env`. */
  readonly env?: Environment | undefined;
  /** Told, on rank 0, what works but not as well as it could. Default: one line on standard error. */
  readonly onWarning?: ((message: string) => void) | undefined;
}

/**
 * Joins the communicator of all ranks and resolves when all have come. Without options it finds its place by itself:
 * as a thread of spawnRanks(), or from the environment that `tccl run`, mpirun, mpiexec, srun or torchrun gives
 * (docs/guides/launch.md). A process that nothing started as a rank is rank 0 of 1.
 *
 * @throws InvalidArgumentError `ARGUMENT_TYPE`, `ARGUMENT_RANGE`, `UNKNOWN_NAME`;
 *   InvalidUsageError `ENVIRONMENT`, `RANK_UNKNOWN`, `RANK_COUNT_MISMATCH`, `RANK_DUPLICATE`, `DEVICE_DUPLICATE`,
 *   `VERSION_MISMATCH` (every rank gets the same); TimeoutError `RANK_MISSING` with the ranks that did not come;
 *   SystemError `NETWORK`, `OUT_OF_MEMORY`.
 */
export function init(options: InitOptions = {}): Promise<Communicator> {
  return ledToCaller(join(options));
}

async function join(options: InitOptions): Promise<Communicator> {
  const config = checkOptions('init', options, ['rank', 'nRanks', 'commId', 'device', 'signal', 'env', 'onWarning']);
  const env = options.env ?? process.env;
  const settings = runtimeSettings(env);
  const network = readBootstrapEnvironment(env);
  setHeartbeat(settings.heartbeatMs);
  const place = placeOf(options, env);
  const { bootstrap, id } = await meet(place, options, network);
  let joined: Joined | undefined;
  let parts: CommunicatorParts | undefined;
  try {
    const loaded = loadLibc();
    const libc = 'libc' in loaded ? loaded.libc : undefined;
    const goHome = wayHome(bootstrap, libc, settings);
    const goBack = goHome();
    try {
      joined = await joinSegment(bootstrap, place.memory, settings);
    } finally {
      goBack();
    }
    const { segment, shared } = joined;
    segment.takeMemoryAt(goHome);
    if (settings.machineCode && libc !== undefined) segment.machineCode = new MachineCode(segment.memory, libc);
    const team = Team.ofAll(segment);
    const { profile, doubt } = bootstrap.rank === 0 ? profileFor(env) : {};
    const facts = await agree(bootstrap, settings, config, joined, profile);
    const origin = new Origin({ segment, shared, libc, settings, network, id, init, options });
    const { timeoutMs = DEFAULT_INIT_TIMEOUT_MS, signal } = options;
    parts = await connectInTime(timeoutMs, (late) =>
      origin.assemble(bootstrap, team, facts, config, signal === undefined ? late : AbortSignal.any([signal, late])),
    );
    tellOfDoubts(bootstrap, facts, doubt, options);
    segment.ranks.setState(rankStates.ready);
    // Nobody may look for the dead before all are marked as living.
    await bootstrap.barrier();
    return new Communicator(parts);
  } catch (error) {
    bootstrap.abort(error as Error);
    if (error instanceof TcclError) parts?.engine.abort(error);
    joined?.segment.close();
    throw error;
  }
}

/** Moves this thread to the NUMA node that its memory should come from, where there is a choice. */
function wayHome(
  { localRank, localRanks }: Bootstrap,
  libc: Libc | undefined,
  { ignoreAffinity }: RuntimeSettings,
): () => () => void {
  const cores =
    libc === undefined ? undefined : homeCores({ localRank, nLocalRanks: localRanks.length, ignoreMask: ignoreAffinity });
  return libc === undefined || cores === undefined ? () => () => undefined : () => moveTo(libc, cores);
}

function tellOfDoubts(bootstrap: Bootstrap, facts: readonly Facts[], doubt: string | undefined, options: InitOptions): void {
  if (bootstrap.rank !== 0) return;
  const tell = options.onWarning ?? warn;
  const alone = facts.find((fact) => !fact.sharedWithHost);
  if (alone !== undefined)
    tell(`ranks of one host do not share memory, so their data goes through sockets: ${alone.reason ?? 'unknown reason'}`);
  if (doubt !== undefined) tell(doubt);
}
