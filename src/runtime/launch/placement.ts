import { environmentError, malformed, value, wholeNumber, type Environment } from './environment.js';
import { launchers, type Launcher } from './launchers.js';

/** Time limit of a wait for other ranks, and the signal that ends it earlier. */
export interface WaitOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** A rank's number, the number of ranks and their meeting point, as set by the launcher in the environment. */
export interface Placement {
  /** The launcher: `tccl`, `openmpi`, `mpich`, `pmix`, `slurm`, `torchrun`; `threads` for spawnRanks(). */
  readonly launcher: string;
  readonly rank: number;
  readonly nRanks: number;
  /** Undefined where the launcher does not set it. */
  readonly localRank: number | undefined;
  readonly nLocalRanks: number | undefined;
  /** A printable unique id, or `host:port` of rank 0; undefined if neither is set (see agreeOnId). */
  readonly commId: string | undefined;
  /** A text that all ranks of the job have, and no other job; undefined if nobody gave one. */
  readonly jobId?: string | undefined;
}

/**
 * The placement of this process, or undefined when it was not started by a known launcher.
 *
 * `TCCL_COMM_ID` is the address under every launcher. docs/reference/launch.md lists the variables.
 *
 * @throws InvalidUsageError `ENVIRONMENT` when a variable is malformed or two of them contradict each other
 */
export function findPlacement(env: Environment): Placement | undefined {
  const launcher = launchers.find((candidate) => tellsRank(env, candidate) && sizeName(env, candidate) !== undefined);
  if (launcher === undefined) {
    refuseHalfAPlacement(env);
    return undefined;
  }

  const nRanks = readCount(env, sizeName(env, launcher) ?? '');
  const rank = readIndex(env, launcher.rank, { count: nRanks, of: 'ranks' });
  const nLocalRanks = readLocalCount(env, launcher);
  if (nLocalRanks !== undefined && nLocalRanks > nRanks) {
    throw environmentError(
      `${nLocalRanks} ranks on this host (${launcher.nLocalRanks.name}) are more than the ${nRanks} ranks in all`,
    );
  }
  const localRank =
    value(env, launcher.localRank) === undefined
      ? undefined
      : readIndex(env, launcher.localRank, { count: nLocalRanks ?? nRanks, of: 'ranks on this host' });

  const commId = value(env, 'TCCL_COMM_ID') ?? launcher.address?.(env);
  const jobId = value(env, 'TCCL_JOB_ID') ?? launcher.jobId?.(env);
  return { launcher: launcher.name, rank, nRanks, localRank, nLocalRanks, commId, ...(jobId === undefined ? {} : { jobId }) };
}

function tellsRank(env: Environment, { rank, unless }: Launcher): boolean {
  return value(env, rank) !== undefined && !unless?.(env);
}

/** Name of the variable with the number of ranks. `TCCL_NRANKS` replaces it where a launcher sets the rank only. */
function sizeName(env: Environment, { nRanks }: Launcher): string | undefined {
  return [...nRanks, 'TCCL_NRANKS'].find((name) => value(env, name) !== undefined);
}

/** A number of ranks without a rank, or a rank without a number of ranks, is a mistake: throw instead of running alone. */
function refuseHalfAPlacement(env: Environment): void {
  if (value(env, 'TCCL_NRANKS') !== undefined) {
    throw environmentError('TCCL_NRANKS is set but TCCL_RANK is not: set both, or start the ranks with `tccl run`');
  }
  // Programs use a variable named RANK for many purposes, so RANK alone does not count.
  const half = launchers.find((launcher) => launcher.rank !== 'RANK' && tellsRank(env, launcher));
  if (half === undefined) return;
  throw environmentError(
    `${half.rank}=${env[half.rank] ?? ''} gives this process its rank, but nothing gives the number of ranks: ` +
      `set ${half.nRanks[0] ?? 'TCCL_NRANKS'}`,
  );
}

function readLocalCount(env: Environment, { nLocalRanks }: Launcher): number | undefined {
  if (value(env, nLocalRanks.name) === undefined) return undefined;
  return nLocalRanks.read === undefined ? readCount(env, nLocalRanks.name) : nLocalRanks.read(env);
}

function readCount(env: Environment, name: string): number {
  const count = wholeNumber(env[name]);
  if (count === undefined || count === 0) throw malformed(env, name, 'a number of ranks (1 or more)');
  return count;
}

function readIndex(env: Environment, name: string, { count, of }: { count: number; of: string }): number {
  const index = wholeNumber(env[name]);
  if (index === undefined || index >= count)
    throw malformed(env, name, `a rank from 0 to ${count - 1}: there are ${count} ${of}`);
  return index;
}
