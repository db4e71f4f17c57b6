import { process } from '#platform/process';
import type { Bootstrap } from '../bootstrap/bootstrap.js';
import { formatAddress, isLoopback } from '../bootstrap/address.js';
import { checkRank, connect } from '../bootstrap/connect.js';
import type { BootstrapEnvironment } from '../bootstrap/environment.js';
import { listenInTurn } from '../bootstrap/listen-in-turn.js';
import type { Notices } from '../bootstrap/notices.js';
import { startRoot, type Root } from '../bootstrap/root.js';
import { UniqueId } from '../bootstrap/unique-id.js';
import type { WaitQueries } from '../bootstrap/wait-queries.js';
import { describeValue } from '../../describe-value.js';
import { describeError, InvalidArgumentError, InvalidUsageError, TcclError } from '../../errors.js';
import { value, type Environment } from '../launch/environment.js';
import { passThroughLauncher } from '../launch/exchange.js';
import { findPlacement } from '../launch/placement.js';
import { threadPlacement, type ThreadPlacement } from '../launch/thread-placement.js';
import { clockMs, hostname, sleep } from '../platform/platform.js';
import { warn } from '../warn.js';
import type { InitOptions } from '../resources/init-options.js';
import type { RuntimeSettings } from '../resources/options.js';

/** A placement, with the id if init() was given a UniqueId. */
type GivenPlacement = ThreadPlacement & { readonly id?: UniqueId };

/** This rank's placement, from the options of init() or from its launcher. */
export function placementOf({ rank, nRanks, commId }: InitOptions, env: Environment): GivenPlacement {
  const id = commId instanceof UniqueId ? commId : undefined;
  if (commId !== undefined && id === undefined && typeof commId !== 'string') {
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `init: commId is a UniqueId or its text, not ${describeValue(commId)}; neither JSON nor postMessage carries an id: send id.toString()`,
    );
  }
  if (rank === undefined && nRanks === undefined) {
    const place = threadPlacement() ??
      findPlacement(env) ?? { launcher: 'none', rank: 0, nRanks: 1, localRank: 0, nLocalRanks: 1, commId: undefined };
    return { ...place, ...(typeof commId === 'string' ? { commId } : {}), ...(id === undefined ? {} : { id }) };
  }
  if (rank === undefined || nRanks === undefined) {
    throw new InvalidUsageError('RANK_UNKNOWN', 'init takes rank and nRanks together: give both, or neither under a launcher');
  }
  checkRank(rank, nRanks);
  if (commId === undefined && nRanks > 1) {
    throw new InvalidUsageError(
      'RANK_UNKNOWN',
      `init: it was given rank ${rank} of ${nRanks}, but not where the ranks meet; pass all of them one commId: what getUniqueId() gave to one of them, or 'HOST:PORT' of rank 0`,
      { rank },
    );
  }
  return {
    launcher: 'options',
    rank,
    nRanks,
    localRank: undefined,
    nLocalRanks: undefined,
    commId: typeof commId === 'string' ? commId : undefined,
    jobId: value(env, 'TCCL_JOB_ID'),
    ...(id === undefined ? {} : { id }),
  };
}

/**
 * Opens the root if this rank must, and connects.
 * @param onRing see ConnectOptions
 */
export async function meet(
  place: GivenPlacement,
  options: InitOptions,
  network: BootstrapEnvironment,
  { initTimeoutMs: timeoutMs, warnAfterMs }: Pick<RuntimeSettings, 'initTimeoutMs' | 'warnAfterMs'>,
  onRing: (queries: WaitQueries) => void,
): Promise<{ readonly bootstrap: Bootstrap; readonly id: UniqueId }> {
  const { onWarning = warn, signal } = options;
  const notices: Notices = { afterMs: Math.min(NOTICE_AFTER_MS, warnAfterMs), report: onWarning };
  let root: Root | undefined;
  let id = place.id;
  let address = place.commId;
  if (id === undefined) {
    const openRoot = async () => {
      root = await startRoot({ interfaceName: network.interfaceName, family: network.family, notices });
      return root.id.toString();
    };
    const { nRanks, rank, commId } = place;
    const text = (address =
      commId ??
      (nRanks === 1
        ? await openRoot()
        : await passThroughLauncher(place, options.env ?? process.env, openRoot, { timeoutMs, signal })));
    id = await whenNameIsKnown(() => readId(text, place, options, network), place.rank, timeoutMs, options);
    if (id.origin !== 'root' && rank === 0) {
      const isDistinct = place.jobId !== undefined || network.commSecret !== undefined || id.origin === 'launcher';
      if (!isDistinct && nRanks > 1 && !isLoopback(id.root.host)) onWarning(mayMix(text));
      root = await listenInTurn(id, { isDistinct, timeoutMs, signal, notices, onOtherJob: onWarning });
    }
  }
  try {
    const { root: named, origin } = id;
    // Rank 0 has opened it, so a name of this host would have led there.
    const explainMiss =
      place.rank === 0 && origin === 'name'
        ? (reason: string) =>
            `rank 0 listens on ${hostname()}, but ${address} is ${formatAddress(named)}, where it cannot be reached (${reason}): start rank 0 on that host, or give the name of ${hostname()}`
        : undefined;
    const bootstrap = await connect({
      id,
      rank: place.rank,
      nRanks: place.nRanks,
      device: options.device,
      hostId: network.hostId,
      timeoutMs,
      // With a given id, another process may have opened the root; otherwise rank 0 has.
      rankOfRoot: id.origin === 'root' && (place.id !== undefined || place.commId !== undefined) ? undefined : 0,
      interfaceName: network.interfaceName,
      family: network.family,
      signal,
      notices,
      onRing,
      speaksForHost: place.localRank === undefined || place.localRank === 0,
      explainMiss,
      onRootMissed: explainMiss && ((reason) => onWarning(`${explainMiss(reason)}; retrying for ${timeoutMs / 1000} s`)),
    });
    return { bootstrap, id };
  } finally {
    root?.close();
  }
}

/** Time after which ranks that wait for each other in init() print that, unless TCCL_WARN_AFTER is shorter. */
const NOTICE_AFTER_MS = 5000;

/** Warning about an address that does not keep jobs apart. */
function mayMix(address: string): string {
  return `the ranks meet at ${address} without an id of their job or a secret: another job that meets there could take ranks of this one. Give each job an id of its own (tccl run --job-id, TCCL_JOB_ID) or a TCCL_COMM_SECRET`;
}

/** Interval between lookups of an unknown host name. */
const LOOK_UP_AGAIN_MS = 500;

/**
 * Retries while the name of rank 0's host is unknown, because some clusters create names and containers at the same time.
 * Rank 0 warns, in case the name is misspelt.
 */
async function whenNameIsKnown<Result>(
  read: () => Promise<Result>,
  rank: number,
  timeoutMs: number,
  { signal, onWarning = warn }: InitOptions,
): Promise<Result> {
  const end = clockMs() + timeoutMs;
  for (let times = 0; ; times++) {
    try {
      return await read();
    } catch (error) {
      if (!isUnknownName(error) || clockMs() + LOOK_UP_AGAIN_MS > end) throw error;
      if (times === 0 && rank === 0) {
        const text = `${describeError(error)}; retrying for ${timeoutMs / 1000} s`;
        onWarning(text);
      }
    }
    await sleep(LOOK_UP_AGAIN_MS, { signal });
  }
}

/** True if a name server does not know the name, or none answered: both may change soon. */
function isUnknownName(error: unknown): boolean {
  const { cause } = error as { readonly cause?: NodeJS.ErrnoException };
  return error instanceof TcclError && error.code === 'NETWORK' && (cause?.code === 'ENOTFOUND' || cause?.code === 'EAI_AGAIN');
}

/** Parses an id; errors about an id from a variable contain the variable's name. */
async function readId(
  text: string,
  place: GivenPlacement,
  options: InitOptions,
  network: BootstrapEnvironment,
): Promise<UniqueId> {
  try {
    return await UniqueId.read(text, network.commSecret, place.jobId);
  } catch (error) {
    const isFromVariable = options.commId === undefined && (options.env ?? process.env)['TCCL_COMM_ID'] === text;
    if (!isFromVariable || !(error instanceof TcclError) || error.code !== 'UNIQUE_ID') throw error;
    throw new InvalidArgumentError('UNIQUE_ID', `TCCL_COMM_ID: ${error.message}`, { rank: place.rank, cause: error });
  }
}
