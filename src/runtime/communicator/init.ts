import type { Bootstrap } from '../bootstrap/bootstrap.js';
import { readBootstrapEnvironment, type BootstrapEnvironment } from '../bootstrap/environment.js';
import { chooseNics, systemInterfaces } from '../bootstrap/interfaces.js';
import { setHeartbeat } from '../bootstrap/liveness.js';
import type { UniqueId } from '../bootstrap/unique-id.js';
import type { RankLocation } from '../channels/plan-channels.js';
import { homeCores, homeNode, moveTo } from '../device/affinity.js';
import { loadLibc, type Libc } from '../device/libc.js';
import { MachineCode } from '../device/machine-code/machine-code.js';
import { rankStates } from '../device/rank-lines.js';
import { Team } from '../device/team.js';
import { warn } from '../warn.js';
import { agree, netOf, type RankFacts } from './agree.js';
import { wayOf } from '../transport/networks.js';
import { ofCall, TcclError } from '../../errors.js';
import { withCallerFrames } from '../caller-stack.js';
import { Communicator } from './communicator.js';
import { checkOptions, forcedAlgorithm } from './config.js';
import type { Environment } from '../launch/environment.js';
import type { InitOptions } from './init-options.js';
import { joinSegment, type Joined } from './join-segment.js';
import { meet, placementOf } from './meet.js';
import { connectInTime } from '../algorithms/open-network.js';
import { runtimeSettings, type RuntimeSettings } from './options.js';
import { abandon, SharedResources, type CommunicatorParts } from './shared-resources.js';
import { profileFor } from '../algorithms/profile.js';
import { withAnySignal } from '../with-any-signal.js';

/**
 * Joins the communicator of all ranks; resolves when all have joined. Without options it finds its placement itself: as a
 * thread of spawnRanks(), or from the environment of `tccl run`, mpirun, mpiexec, srun or torchrun (docs/guides/launch.md). A
 * process that was not started as a rank is rank 0 of 1.
 *
 * @throws InvalidArgumentError `ARGUMENT_TYPE`, `ARGUMENT_RANGE`, `UNKNOWN_NAME`; InvalidUsageError `ENVIRONMENT`,
 *   `RANK_UNKNOWN`, `RANK_COUNT_MISMATCH`, `RANK_DUPLICATE`, `DEVICE_DUPLICATE`, `VERSION_MISMATCH` (the same on every rank);
 *   TimeoutError `RANK_MISSING` with the ranks that did not join; SystemError `NETWORK`, `OUT_OF_MEMORY`.
 */
export function init(options: InitOptions = {}): Promise<Communicator> {
  return withCallerFrames(join(options).then((parts) => new Communicator(parts)));
}

async function join(options: InitOptions): Promise<CommunicatorParts> {
  const config = checkOptions('init', options, ['rank', 'nRanks', 'commId', 'device', 'env', 'onWarning']);
  const env = options.env ?? process.env;
  const settings = settingsOf(options, env);
  const network = readBootstrapEnvironment(env);
  setHeartbeat(settings.heartbeatMs);
  const place = placementOf(options, env);
  const { bootstrap, id } = await meet(place, options, network, settings);
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
    const facts = await agree(
      bootstrap,
      settings,
      config,
      joined,
      libc !== undefined,
      profile,
      locationOf(bootstrap, network, id),
    );
    const resources = new SharedResources({ segment, shared, libc, settings, network, id, join, options });
    const { signal } = options;
    const forced = forcedAlgorithm(settings, config);
    parts = await connectInTime(settings.initTimeoutMs, (late) =>
      withAnySignal([signal, late], (either) => resources.assemble(bootstrap, team, facts, config, forced, either)),
    );
    warnOfDoubts(bootstrap, facts, doubt, options);
    segment.ranks.setState(rankStates.ready);
    // No rank may test liveness before all are marked as alive.
    await bootstrap.barrier();
    return parts;
  } catch (error) {
    bootstrap.abort(error as Error);
    if (parts !== undefined) abandon(parts, error);
    joined?.segment.close();
    throw error instanceof TcclError ? ofCall(error, 'init') : error;
  }
}

/** Settings of the environment, in which init's `timeoutMs` takes the place of TCCL_TIMEOUT and TCCL_INIT_TIMEOUT. */
function settingsOf({ timeoutMs }: InitOptions, env: Environment): RuntimeSettings {
  const settings = runtimeSettings(env);
  if (timeoutMs === undefined) return settings;
  return { ...settings, timeoutMs, isOfProgram: true, initTimeoutMs: timeoutMs };
}

/** Location of this rank, if the ranks are on several hosts. */
function locationOf(
  { localRank, localRanks, nRanks }: Bootstrap,
  network: BootstrapEnvironment,
  { root, origin }: UniqueId,
): RankLocation | undefined {
  if (localRanks.length === nRanks) return undefined;
  return {
    numaNode: homeNode({ localRank, nLocalRanks: localRanks.length })?.id,
    nics: chooseNics(systemInterfaces(), { ...network, root: { host: root.host, origin } }),
    nicsNamed: /^\s*=/.test(network.interfaceName ?? ''),
  };
}

/** Moves this thread to the NUMA node of its memory, if there are several. */
function wayHome(
  { localRank, localRanks }: Bootstrap,
  libc: Libc | undefined,
  { ignoreAffinity }: RuntimeSettings,
): () => () => void {
  const cores =
    libc === undefined ? undefined : homeCores({ localRank, nLocalRanks: localRanks.length, ignoreMask: ignoreAffinity });
  return libc === undefined || cores === undefined ? () => () => undefined : () => moveTo(libc, cores);
}

function warnOfDoubts(bootstrap: Bootstrap, facts: readonly RankFacts[], doubt: string | undefined, options: InitOptions): void {
  if (bootstrap.rank !== 0) return;
  const tell = options.onWarning ?? warn;
  const alone = facts.find((fact) => !fact.sharedWithHost);
  if (alone !== undefined)
    tell(
      `ranks of one host do not share memory, so their data goes through ${wayOf(netOf(facts).name)}: ${alone.reason ?? 'unknown reason'}`,
    );
  if (doubt !== undefined) tell(doubt);
}
