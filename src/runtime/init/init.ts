import { process } from '#platform/process';
import type { Bootstrap, PeerInfo } from '../bootstrap/bootstrap.js';
import { readBootstrapEnvironment, type BootstrapEnvironment } from '../bootstrap/environment.js';
import { chooseNics, systemInterfaces } from '../bootstrap/interfaces.js';
import { setHeartbeat } from '../bootstrap/liveness.js';
import { processOf } from '../bootstrap/peer-info.js';
import { secretOf, type UniqueId } from '../bootstrap/unique-id.js';
import type { WaitQueries } from '../bootstrap/wait-queries.js';
import type { RankLocation } from '../channels/location.js';
import { homeCores, homeNode, moveTo } from '../device/affinity.js';
import { loadLibc, type Libc } from '../device/libc.js';
import { MachineCode } from '../device/machine-code/machine-code.js';
import { boardFacts } from '../observe/board-facts.js';
import { warn } from '../warn.js';
import { netOf, type RankFacts } from '../resources/agree.js';
import { wayOf } from '../transport/networks.js';
import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError, ofCall, TcclError, TimeoutError } from '../../errors.js';
import { withCallerFrames } from '../caller-stack.js';
import { onAbort, withAnySignal } from '../abort-signals.js';
import { Communicator } from '../communicator/communicator.js';
import { checkOptions, type CommunicatorConfig } from '../resources/config.js';
import type { Environment } from '../launch/environment.js';
import type { ThreadPlacement } from '../launch/thread-placement.js';
import type { InitOptions } from '../resources/init-options.js';
import { joinSegment } from '../resources/join-segment.js';
import { meet, placementOf } from './meet.js';
import { cutOff, OutOfBandWait, TimeLimit, whileOthersCan } from '../communicator/out-of-band-wait.js';
import { runtimeSettings, type RuntimeSettings } from '../resources/options.js';
import type { CommunicatorParts } from '../resources/shared-resources.js';
import { profileFor } from '../algorithms/profile.js';
import { setUp, type SetUpSteps } from './set-up.js';

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
  const { signal } = options;
  checkTypes(options);
  const env = options.env ?? process.env;
  const settings = settingsOf(options, env);
  const network = readBootstrapEnvironment(env);
  setHeartbeat(settings.heartbeatMs);
  const place = placementOf(options, env);
  const { initTimeoutMs: timeoutMs } = settings;
  const limit = new TimeLimit(timeoutMs);
  const late = new AbortController();
  try {
    return await withAnySignal([signal, late.signal], async (either) => {
      const { meeting, queries } = await meetInRing((onRing) =>
        meet(place, { ...options, signal: either }, network, settings, onRing),
      );
      const { rank, nRanks } = place;
      const wait = new OutOfBandWait({ call: 'init', rank, nRanks, queries }, timeoutMs);
      let peers: readonly PeerInfo[] = [];
      const tooLate = (ranks: readonly number[]): TimeoutError => notReady(ranks, peers, timeoutMs);
      return whileOthersCan(wait, { limit, tooLate, signal }, async (stop) => {
        onAbort(stop, () => late.abort(stop.reason));
        const { bootstrap, id } = await meeting;
        peers = bootstrap.peers;
        const made = setUpHere({ bootstrap, id, wait, place, options, config, settings, network, env }, stop);
        return cutOff(made, stop).catch((error: unknown) => {
          throw error instanceof TcclError ? ofCall(error, 'init') : error;
        });
      });
    });
  } finally {
    limit.lift();
  }
}

function checkTypes({ device, env, onWarning }: InitOptions): void {
  for (const [name, value, type, kind] of [
    ['device', device, 'string', 'a string'],
    ['env', env, 'object', 'an object of variables'],
    ['onWarning', onWarning, 'function', 'a function'],
  ] as const) {
    if (value !== undefined && typeof value !== type)
      throw new InvalidArgumentError('ARGUMENT_TYPE', `init: ${name} is ${kind}, not ${describeValue(value)}`);
  }
}

/** Begins a meeting. Resolves when this rank has joined the ring; rejects if the meeting ends before. */
async function meetInRing<T>(
  begin: (onRing: (queries: WaitQueries) => void) => Promise<T>,
): Promise<{ readonly meeting: Promise<T>; readonly queries: WaitQueries }> {
  return new Promise((resolve, reject) => {
    const meeting = begin((queries) => resolve({ meeting, queries }));
    meeting.catch(reject);
  });
}

/** Error for ranks that stopped between their arrival and the end of init(). */
function notReady(late: readonly number[], peers: readonly PeerInfo[], timeoutMs: number): TimeoutError {
  const names = late.map((rank) => (peers[rank] === undefined ? `rank ${rank}` : processOf(peers[rank])));
  const text = names.length === 0 ? 'a rank' : names.join(' and ');
  return new TimeoutError(
    'RANK_MISSING',
    `${text} joined, but did not get ready within ${timeoutMs / 1000} s: stopped, or busy without returning to the event loop`,
    { ranks: late },
  );
}

/** Result of the ranks' meeting, and this rank's settings. */
interface Met {
  readonly bootstrap: Bootstrap;
  readonly id: UniqueId;
  readonly wait: OutOfBandWait;
  readonly place: ThreadPlacement;
  readonly options: InitOptions;
  readonly config: CommunicatorConfig;
  readonly settings: RuntimeSettings;
  readonly network: BootstrapEnvironment;
  readonly env: Environment;
}

/** Makes the communicator of ranks that have met; see setUp(). */
function setUpHere(
  { bootstrap, id, wait, place, settings, network, options, config, env }: Met,
  stop: AbortSignal,
): Promise<CommunicatorParts> {
  const { rank, nRanks } = bootstrap;
  const { libc } = loadLibc();
  const goHome = wayHome(bootstrap, libc, settings);
  let doubt: string | undefined;
  const steps: SetUpSteps = {
    join: async () => {
      const goBack = goHome();
      try {
        return await joinSegment(bootstrap, place.memory, settings);
      } finally {
        goBack();
      }
    },
    prepare: (segment, shared) => {
      segment.takeMemoryAt(goHome);
      segment.board.open({ rank, nRanks, facts: boardFacts(bootstrap, secretOf(id), shared) });
      if (settings.machineCode && libc !== undefined) segment.machineCode = new MachineCode(segment.memory, libc);
      const found = rank === 0 ? profileFor(env) : undefined;
      doubt = found?.doubt;
      return { libc, profile: found?.profile, location: locationOf(bootstrap, network, id) };
    },
    agreed: (facts) => warnOfDoubts(bootstrap, facts, doubt, options),
    reportsBy: (report) => wait.reportsBy(report),
  };
  return setUp(bootstrap, { settings, network, id, join, options, config }, steps, stop);
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

const warned = new Set<string>();

/** A process that makes many communicators prints a warning about its set-up once. */
function warnOnce(text: string): void {
  if (!warned.has(text)) warn(text);
  warned.add(text);
}

function warnOfDoubts(bootstrap: Bootstrap, facts: readonly RankFacts[], doubt: string | undefined, options: InitOptions): void {
  if (bootstrap.rank !== 0) return;
  const report = options.onWarning ?? warnOnce;
  const alone = facts.find((fact) => !fact.sharedWithHost);
  if (alone !== undefined)
    report(
      `ranks of one host do not share memory, so their data goes through ${wayOf(netOf(facts).name)}: ${alone.reason ?? 'unknown reason'}`,
    );
  if (doubt !== undefined) report(doubt);
}
