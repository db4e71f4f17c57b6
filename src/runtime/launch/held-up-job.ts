import { nameRanks } from '../bootstrap/rank-list.js';
import { clearInterval } from '../platform/platform.js';
import { WatchClock } from '../progress/watch-clock.js';
import { nameRank, type RankGroup } from './rank-group.js';
import { describeState } from './rank-state.js';

/**
 * Reports what a job waits for, each once: a rank that has been stopped for `afterMs`, and ranks that run `afterMs` after others
 * ended with code 0. Ends no rank. Watches until the returned function is called.
 */
export function watchForHolds(groups: readonly RankGroup[], afterMs: number, report: (line: string) => void): () => void {
  if (afterMs === 0) return () => undefined;
  const clock = new WatchClock(afterMs);
  const all = groups.flatMap(({ ranks }) => ranks);
  /** When a rank was first seen stopped; undefined once it was reported. */
  const stoppedMs = new Map<number, number | undefined>();
  let [nRunning, changedMs, isTold] = [all.length, 0, false];
  const look = () => {
    const nowMs = clock.look();
    const isOver = (sinceMs: number | undefined) => sinceMs !== undefined && nowMs - sinceMs >= afterMs;
    const running = all.filter((rank) => rank.running);
    const states = new Map(groups.flatMap((group) => group.states()).map((state) => [state.rank, state]));
    for (const { rank, host } of running) {
      const state = states.get(rank);
      if (state === undefined || (state.state !== 'T' && state.state !== 't')) stoppedMs.delete(rank);
      else if (!stoppedMs.has(rank)) stoppedMs.set(rank, nowMs);
      else if (isOver(stoppedMs.get(rank))) {
        stoppedMs.set(rank, undefined);
        const remedy = state.state === 'T' ? `; continue it with kill -CONT ${state.pid}` : '';
        report(`the job waits for ${nameRank(rank, host)}: its ${describeState(state)}, for ${afterMs / 1000} s now${remedy}`);
      }
    }
    if (running.length !== nRunning) [nRunning, changedMs] = [running.length, nowMs];
    if (isTold || nRunning === 0 || nRunning === all.length || !isOver(changedMs)) return;
    isTold = true;
    const ended = all.filter((rank) => !rank.running).map(({ rank }) => rank);
    const rest = running.slice(0, MOST_NAMED).map(({ rank, host }) => {
      const state = states.get(rank);
      return `${nameRank(rank, host)}${state === undefined ? '' : ` (${describeState(state)})`}`;
    });
    const more = running.length > MOST_NAMED ? ` and ${running.length - MOST_NAMED} more` : '';
    report(`${nameRanks(ended)} ended with code 0, ${afterMs / 1000} s ago or more; the job waits for ${rest.join(', ')}${more}`);
  };
  const timer = clock.every(look).unref();
  return () => clearInterval(timer);
}

/** Running ranks that one line names. */
const MOST_NAMED = 4;
