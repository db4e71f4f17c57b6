import { once } from '#platform/events';
import { mostRoomBytes } from '../algorithms/memory/direct-small.js';
import { stageMemoryBytes } from '../algorithms/memory/direct-staging.js';
import { tablesMemoryBytes } from '../algorithms/memory/direct-tables.js';
import type { Libc } from '../device/libc.js';
import type { Team } from '../device/team.js';
import { raiseTeamAbort } from '../algorithms/memory/direct-engine.js';
import { TeamWaitChains } from '../algorithms/memory/team-engine.js';
import type { DirectThreadData } from './direct-thread.js';
import { notStarted, startEngineThread } from './start-thread.js';
import { ThreadEngine, type EngineThread } from './thread-engine.js';
import { defined } from '../../defined.js';

/** Larger than all gaps between an engine thread's allocations. */
const GAPS_BYTES = 16 * 1024;

interface DirectThreadsOptions {
  /** One for each thread; the first is the communicator's. */
  readonly teams: readonly [Team, ...Team[]];
  /** The rank of each member. */
  readonly localRanks: readonly number[];
  readonly libc: Libc | undefined;
  readonly smallBytes: number;
  /** Number of polls before a thread gives its core away. */
  readonly spins: number;
  /** Time after which a rank warns about a call or ends it, whichever comes first; 0 for never. */
  readonly limitMs: number;
}

/**
 * Runs the direct algorithm on threads, each with a team of its own.
 *
 * @throws SystemError `OUT_OF_MEMORY`, `LAUNCH` when threads cannot be started
 */
export async function startDirectThreads(options: DirectThreadsOptions): Promise<ThreadEngine> {
  const {
    teams: [team],
    localRanks,
    libc,
  } = options;
  const threads = options.teams.map((own) => startThread(own, own === team, options));
  try {
    await Promise.all(threads.map(({ worker }) => once(worker, 'message')));
  } catch (error) {
    for (const { worker } of threads) void worker.terminate();
    throw notStarted(error as Error, 'direct-thread.js');
  }
  for (const { worker } of threads) worker.unref();
  const waitChains = new TeamWaitChains(team, localRanks);
  const readReports = (late: readonly number[], limitMs: number): void => {
    waitChains.find(
      late.map((rank) => localRanks.indexOf(rank)),
      limitMs,
    );
  };
  // The rank's thread checks time limits; these threads stay in their calls until they are ended.
  return new ThreadEngine({
    threads,
    team,
    libc,
    rank: defined(localRanks[team.localRank]),
    nRanks: localRanks.length,
    keepsTime: false,
    others: { readReports, doing: (rank) => waitChains.doingOrLast(rank) },
  });
}

function startThread(
  team: Team,
  isFirst: boolean,
  { localRanks, smallBytes, spins, limitMs }: DirectThreadsOptions,
): EngineThread {
  const name = `engine of rank ${defined(localRanks[team.localRank])}`;
  const bytes = stageMemoryBytes(team) + mostRoomBytes(smallBytes) + tablesMemoryBytes(team) + GAPS_BYTES;
  const { address, members, stageBytes } = team;
  const { memory, worker } = startEngineThread<DirectThreadData>('direct-thread.js', name, team, localRanks.length, bytes, {
    team: { address, members, stageBytes },
    localRanks,
    smallBytes,
    spins,
    limitMs,
  });
  return {
    memory,
    worker,
    // Threads that wait for other ranks find it, and end.
    fail: (error) => raiseTeamAbort(team, localRanks, error),
    // Nothing to do: the rank has reported it in the team's memory.
    forwardReport: () => undefined,
    left: () => {
      if (!isFirst) team.leave();
    },
  };
}
