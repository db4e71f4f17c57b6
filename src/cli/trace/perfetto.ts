import { printableJson } from '../../printable.js';
import type { Simulator } from '../../planner/simulate/simulate.js';
import type { Timeline } from '../../planner/simulate/timeline.js';

/** First number of counters, above all ranks. */
const FIRST_LINK_PROCESS = 2_000_000;

/**
 * A timeline as events of Chrome's trace format, which Perfetto and chrome://tracing open: a process a rank, a track a
 * worker, a slice a slice, and a counter for the load of each link, in percent.
 */
export function perfettoJson({ simulated, slices, links, stepUs }: Timeline, { nRanks }: Pick<Simulator, 'nRanks'>): string {
  const events: object[] = [];
  const digits = String(nRanks - 1).length;
  const seen = new Set<string>();
  for (const { rank, channel, worker, startUs, endUs, bytes, what, from, to } of slices) {
    const pid = rank + 1;
    // A track may not have the number of its process.
    const tid = FIRST_LINK_PROCESS + worker;
    if (!seen.has(`${pid}`)) {
      seen.add(`${pid}`);
      events.push({ name: 'process_name', ph: 'M', pid, args: { name: `rank ${String(rank).padStart(digits, '0')}` } });
      events.push(named(pid, FIRST_LINK_PROCESS - 1, 'launch'), {
        name: 'launch',
        ph: 'X',
        ts: 0,
        dur: exact(simulated.launchUs),
        pid,
        tid: FIRST_LINK_PROCESS - 1,
      });
    }
    if (!seen.has(`${pid} ${tid}`)) {
      seen.add(`${pid} ${tid}`);
      events.push(named(pid, tid, `channel ${channel}`));
    }
    const ts = exact(startUs);
    events.push({ name: what, ph: 'X', ts, dur: exact(endUs) - ts, pid, tid, args: { bytes, from, to } });
  }
  links.forEach(({ node, name, gbps, load }) => {
    const pid = FIRST_LINK_PROCESS + node;
    if (!seen.has(`${pid}`)) {
      seen.add(`${pid}`);
      events.push({ name: 'process_name', ph: 'M', pid, args: { name: `links of node ${node}` } });
    }
    let last = -1;
    load.forEach((part, step) => {
      const percent = Math.round(100 * part);
      if (percent === last) return;
      last = percent;
      events.push({
        name: `${name} (${gbps.toPrecision(3)} GB/s)`,
        ph: 'C',
        ts: exact(simulated.launchUs + step * stepUs),
        pid,
        tid: 1,
        args: { percent },
      });
    });
  });
  return eventsText(events);
}

/** Events as a file, one a line. */
export function eventsText(events: readonly object[]): string {
  return `[\n${events.map((event) => printableJson(event)).join(',\n')}\n]\n`;
}

/** The event that names a track. */
export function named(pid: number, tid: number, name: string): object {
  return { name: 'thread_name', ph: 'M', pid, tid, args: { name } };
}

/** Times in eighths of a microsecond: viewers add in floating point, and slices must not overlap by rounding. */
export function exact(us: number): number {
  return Math.round(us * 8) / 8;
}
