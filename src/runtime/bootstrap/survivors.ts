import { InvalidUsageError, RemoteError, TcclError, TimeoutError } from '../../errors.js';
import { decodeJson, encodeJson } from './json.js';
import type { Mesh } from './mesh.js';
import { formatRanks, nameRanks } from './rank-list.js';
import { clearTimeout, setTimeout, type Timer } from '../platform/platform.js';
import { graceMs } from '../failure/grace.js';
import { onAbort } from '../abort-signals.js';
import { defined } from '../../defined.js';

/** Part of a query that the caller chooses. */
export interface SurvivorWish {
  /** Call for which the ranks agree, in errors. Default `shrink`. */
  readonly call?: string;
  /** True if the survivors must be a majority; on one rank, it holds for all. Default false. */
  readonly quorum?: boolean | undefined;
  /** The survivors get true if all of them give true. Default true. */
  readonly flag?: boolean;
}

interface SurvivorQuery extends Required<SurvivorWish> {
  readonly quorum: boolean;
  /** The mesh's rank of each rank in question. */
  readonly members: readonly number[];
  /** Ranks (indexes in `members`) that this rank excludes, dead or alive. */
  readonly excluded: readonly number[];
  /** Message space of queries about these members only. */
  readonly space: number;
  /** Number of the query among those about these members; unchanged when it is repeated because a rank died after the answer. */
  readonly number: number;
  /** Aborts the wait. */
  readonly signal: AbortSignal;
}

/** Message of a rank to the coordinator. */
interface View {
  readonly out: readonly number[];
  readonly quorum: boolean;
  readonly flag: boolean;
}

/** Result of the coordinator: the survivors, ascending, and what they agree on. */
export interface Survivors {
  readonly ranks: readonly number[];
  /** Number for the survivors' network. */
  readonly number: number;
  /** True if all of them gave true. */
  readonly flag: boolean;
}

/** The coordinator's answer if ranks that are not known to be gone have not asked in time. */
interface Failure {
  readonly missing: readonly number[];
}

/** The coordinator's answer if the survivors are no majority. */
interface Minority {
  readonly minority: readonly number[];
}

const VIEW = 0;
const VERDICT = 1;

/**
 * Finds the members that go on, the same on all of them. The lowest rank that is not known to be gone is the coordinator, and the
 * next lowest after its loss: it collects the ranks that any rank excludes or misses, and sends the remaining ones to all.
 *
 *     rank 1 (lowest alive)      rank 2                    rank 3
 *       │◄──── "without 0" ──────│                           │
 *       │◄──── "without 0" ──────────────────────────────────│
 *       │───── "1, 2, 3" ───────►│──────────────────────────►│
 *
 * @throws InvalidUsageError `ABORTED` if others exclude this rank; TimeoutError `RANK_MISSING` with the ranks that did not
 *   ask before the signal ended the wait; RemoteError `NO_QUORUM` if they must be a majority, and are not
 */
export async function agreeOnSurvivors(mesh: Mesh, question: SurvivorQuery): Promise<Survivors> {
  const { call, members, excluded, quorum, flag, space, number } = question;
  const me = members.indexOf(mesh.rank);
  const out = new Set(excluded);
  const header = (operation: number) => ({ space, operation, number: number * 2 + operation });
  while (true) {
    members.forEach((member, rank) => {
      if (mesh.isGone(member)) out.add(rank);
    });
    if (out.has(me)) throw excludedHere(call, me);
    const coordinator = members.findIndex((_, rank) => !out.has(rank));
    if (coordinator === me) return coordinate(mesh, question, out);
    const peer = defined(members[coordinator]);
    try {
      const asked = mesh.post(peer, header(VIEW), encodeJson({ out: [...out], quorum, flag } satisfies View));
      const answered = asked.then(() => mesh.take(peer, header(VERDICT)));
      const { data } = await unlessEnded(answered, question, (silent) => ({
        ranks: silent.length > 0 ? silent : [coordinator],
        // A coordinator that answers names the missing ranks itself.
        afterMs: silent.includes(coordinator) ? 0 : graceMs.coordinator,
      }));
      const verdict = decodeJson(data) as Survivors | Failure | Minority;
      if ('missing' in verdict) throw missingRanks(call, verdict.missing);
      if ('minority' in verdict) throw noQuorum(call, verdict.minority, members.length);
      if (!verdict.ranks.includes(me)) throw excludedHere(call, me);
      return verdict;
    } catch (error) {
      if (!mesh.isGone(peer)) throw error;
    }
  }
}

async function coordinate(mesh: Mesh, question: SurvivorQuery, out: Set<number>): Promise<Survivors> {
  const { call, members } = question;
  const me = members.indexOf(mesh.rank);
  const answered = new Set([me]);
  let views: Omit<View, 'out'>;
  try {
    views = await collectViews(mesh, question, out, answered);
  } catch (error) {
    if (error instanceof TimeoutError) report(mesh, question, answered, { missing: error.ranks ?? [] });
    throw error;
  }
  if (out.has(me)) throw excludedHere(call, me);
  const ranks = members.map((_, rank) => rank).filter((rank) => !out.has(rank));
  if (views.quorum && !isMajority(ranks, members.length)) {
    report(mesh, question, ranks, { minority: ranks });
    throw noQuorum(call, ranks, members.length);
  }
  const verdict = { ranks, number: mesh.nextNetworkNumber(), flag: views.flag };
  report(mesh, question, verdict.ranks, verdict);
  return verdict;
}

/** Adds excluded ranks, and ranks that are lost meanwhile, to `out`. Resolves to what all ranks together wish. */
async function collectViews(
  mesh: Mesh,
  question: SurvivorQuery,
  out: Set<number>,
  answered: Set<number>,
): Promise<Omit<View, 'out'>> {
  const { members, space, number } = question;
  let { quorum, flag } = question;
  const missing = (): number[] => members.map((_, rank) => rank).filter((rank) => !out.has(rank) && !answered.has(rank));
  const collected = new Promise<void>((resolve) => {
    const consider = (): void => {
      if (missing().length === 0) resolve();
    };
    for (const rank of missing()) {
      mesh.take(defined(members[rank]), { space, number: number * 2 + VIEW }).then(
        ({ data }) => {
          answered.add(rank);
          const view = decodeJson(data) as View;
          quorum ||= view.quorum;
          flag &&= view.flag;
          for (const other of view.out) out.add(other);
          consider();
        },
        () => {
          out.add(rank);
          consider();
        },
      );
    }
    consider();
  });
  await unlessEnded(collected, question, () => ({ ranks: missing(), afterMs: 0 }));
  return { quorum, flag };
}

/**
 * Sends the result, without waiting: a connection with a stopped rank may never be made. A rank that is lost now will be missing
 * in the survivors' network.
 */
function report(
  mesh: Mesh,
  { members, space, number }: SurvivorQuery,
  ranks: Iterable<number>,
  verdict: Survivors | Failure | Minority,
): void {
  const others = [...ranks].map((rank) => defined(members[rank])).filter((member) => member !== mesh.rank);
  for (const member of others)
    mesh.post(member, { space, operation: VERDICT, number: number * 2 + VERDICT }, encodeJson(verdict)).catch(() => undefined);
}

/** True for more than half of the ranks, and for exactly half with rank 0, so that one half can continue. */
function isMajority(ranks: readonly number[], nRanks: number): boolean {
  return 2 * ranks.length > nRanks || (2 * ranks.length === nRanks && ranks.includes(0));
}

function noQuorum(call: string, remaining: readonly number[], nRanks: number): TcclError {
  const ranks = Array.from({ length: nRanks }, (_, rank) => rank).filter((rank) => !remaining.includes(rank));
  const half = 2 * remaining.length === nRanks ? '; of two halves, the one with rank 0 continues' : '';
  return new RemoteError(
    'NO_QUORUM',
    `${call} with quorum: only ${remaining.length} of ${nRanks} ranks remain (${formatRanks(remaining)}), which is no majority${half}. The others may continue on the other side of a failed network: end this side, or call shrink() without quorum if ${nameRanks(ranks)} cannot`,
    { ranks },
  );
}

function excludedHere(call: string, me: number): TcclError {
  return new InvalidUsageError(
    'ABORTED',
    `rank ${me} was excluded by another rank, so it cannot continue with the others; excluded ranks must not call ${call}`,
    { rank: me },
  );
}

function missingRanks(call: string, ranks: readonly number[]): TimeoutError {
  return new TimeoutError('RANK_MISSING', `${nameRanks(ranks)} did not call ${call} in time; exclude ranks that cannot`, {
    ranks,
  });
}

/** Ranks to name when the signal ends a wait, and the time to wait beyond it. */
interface Verge {
  readonly ranks: readonly number[];
  readonly afterMs: number;
}

/**
 * Resolves as `promise` does, unless the signal ends the wait.
 * @param verge returns what to do then, given the ranks that the signal's reason names
 */
async function unlessEnded<T>(
  promise: Promise<T>,
  { call, signal }: SurvivorQuery,
  verge: (silent: readonly number[]) => Verge,
): Promise<T> {
  let timer: Timer | undefined;
  let stopListening = (): void => undefined;
  const ended = new Promise<never>((_, reject) => {
    stopListening = onAbort(signal, () => {
      const { reason } = signal as { readonly reason: unknown };
      const { ranks, afterMs } = verge(reason instanceof TimeoutError ? (reason.ranks ?? []) : []);
      timer = setTimeout(() => reject(missingRanks(call, ranks)), afterMs);
    });
  });
  try {
    return await Promise.race([promise, ended]);
  } finally {
    clearTimeout(timer);
    stopListening();
  }
}
