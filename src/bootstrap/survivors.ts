import { InvalidUsageError, TcclError, TimeoutError } from '../errors.js';
import type { Mesh } from './mesh.js';
import { nameRanks } from './rank-list.js';

export interface Question {
  /** The mesh's rank of each rank that is asked about. */
  readonly members: readonly number[];
  /** Ranks (places in `members`) that this rank wants out, dead or alive. */
  readonly excluded: readonly number[];
  /** Of messages that belong to questions about these members only. */
  readonly space: number;
  /** How many questions this rank asked before about these members. */
  readonly number: number;
  /** Ends the wait. */
  readonly signal: AbortSignal;
}

/** What the coordinator found out. */
interface Verdict {
  readonly ranks: readonly number[];
  /** For the survivors' network. */
  readonly number: number;
}

const VIEW = 0;
const VERDICT = 1;

/**
 * Which of the members go on, alike at all of them. The lowest rank that is not known to be gone collects what each
 * excludes or misses, and tells all who is left; if it is lost meanwhile, the next lowest takes its place. Who is
 * excluded by anybody is out.
 *
 *     rank 1 (lowest alive)      rank 2                    rank 3
 *       │◄──── "without 0" ──────│                           │
 *       │◄──── "without 0" ──────────────────────────────────│
 *       │───── "1, 2, 3" ───────►│──────────────────────────►│
 *
 * @returns the survivors, ascending, and a number for their network
 * @throws InvalidUsageError `ABORTED` where others exclude this rank; TimeoutError `RANK_MISSING` with those that did not
 *   ask when the signal ends the wait
 */
export async function agreeOnSurvivors(mesh: Mesh, question: Question): Promise<Verdict> {
  const { members, excluded, space, number } = question;
  const me = members.indexOf(mesh.rank);
  const out = new Set(excluded);
  const header = (operation: number) => ({ space, operation, number: number * 2 + operation });
  while (true) {
    members.forEach((member, rank) => {
      if (mesh.isGone(member)) out.add(rank);
    });
    if (out.has(me)) throw excludedHere(me);
    const coordinator = members.findIndex((_, rank) => !out.has(rank));
    if (coordinator === me) return coordinate(mesh, question, out);
    const peer = members[coordinator] ?? -1;
    try {
      await mesh.post(peer, header(VIEW), encode([...out]));
      const verdict = await unlessEnded(mesh.take(peer, header(VERDICT)), question.signal, () => [coordinator]);
      const { ranks, number: network } = decode(verdict.data) as Verdict;
      if (!ranks.includes(me)) throw excludedHere(me);
      return { ranks, number: network };
    } catch (error) {
      if (!mesh.isGone(peer)) throw error;
    }
  }
}

async function coordinate(mesh: Mesh, { members, space, number, signal }: Question, out: Set<number>): Promise<Verdict> {
  const me = members.indexOf(mesh.rank);
  const heard = new Set([me]);
  const missing = (): number[] => members.map((_, rank) => rank).filter((rank) => !out.has(rank) && !heard.has(rank));
  await new Promise<void>((resolve, reject) => {
    const consider = (): void => {
      if (missing().length === 0) resolve();
    };
    for (const rank of missing()) {
      unlessEnded(mesh.take(members[rank] ?? -1, { space, number: number * 2 + VIEW }), signal, missing).then(
        ({ data }) => {
          heard.add(rank);
          for (const other of decode(data) as number[]) out.add(other);
          consider();
        },
        (error: unknown) => {
          if (error instanceof TimeoutError) reject(error);
          out.add(rank);
          consider();
        },
      );
    }
    consider();
  });
  if (out.has(me)) throw excludedHere(me);
  const ranks = members.map((_, rank) => rank).filter((rank) => !out.has(rank));
  const verdict = { ranks, number: mesh.nextNetworkNumber() };
  // Who is lost now will be missed by the survivors' network.
  const posts = ranks.filter((rank) => rank !== me).map((rank) => mesh.post(members[rank] ?? -1, { space, operation: VERDICT, number: number * 2 + VERDICT }, encode(verdict)));
  await Promise.allSettled(posts);
  return verdict;
}

function excludedHere(me: number): TcclError {
  return new InvalidUsageError('ABORTED', `rank ${me} was excluded by another rank's shrink, so it can't be in the new communicator; who is excluded must not call shrink`, { rank: me });
}

async function unlessEnded<T>(promise: Promise<T>, signal: AbortSignal, missing: () => number[]): Promise<T> {
  let end: () => void = () => undefined;
  const ended = new Promise<never>((_, reject) => {
    end = () => {
      const ranks = missing();
      reject(new TimeoutError('RANK_MISSING', `${nameRanks(ranks)} did not call shrink in time; exclude ranks that cannot`, { ranks }));
    };
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
  try {
    return await Promise.race([promise, ended]);
  } finally {
    signal.removeEventListener('abort', end);
  }
}

const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
const decode = (bytes: Uint8Array): unknown => JSON.parse(new TextDecoder().decode(bytes));
