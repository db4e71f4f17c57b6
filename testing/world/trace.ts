import type { JobResult } from './job.js';

/** Width of a rank's column in the diagram. */
const COLUMN = 34;

/** Diagram of what happened, with a column for each rank. */
export function diagramOf({ job, trace }: JobResult): string {
  const ranks = Array.from({ length: job.nRanks }, (_, rank) => `rank ${rank}`.padEnd(COLUMN));
  const head = `${'ms'.padStart(12)} ${ranks.join('')}`.trimEnd();
  const lines = trace.flatMap(({ atMs, rank, text }) => {
    const time = atMs.toFixed(3).padStart(12);
    if (rank === undefined) return [`${time} ${`── ${text} `.padEnd(COLUMN * job.nRanks, '─')}`];
    return wrap(text, COLUMN - 2).map(
      (part, index) => `${index === 0 ? time : ''.padStart(12)} ${' '.repeat(COLUMN * rank)}${part}`,
    );
  });
  return [head, ...lines].join('\n');
}

/** Events for ui.perfetto.dev: each rank's calls, and the faults. */
export function perfettoOf({ job, spans, trace, virtualMs }: JobResult): string {
  const calls = spans.map(({ rank, name, beginMs, endMs = virtualMs }) => ({
    ph: 'X',
    pid: rank,
    tid: 0,
    name,
    ts: beginMs * 1000,
    dur: (endMs - beginMs) * 1000,
  }));
  const notes = trace
    .filter(({ text }) => !spans.some(({ name }) => name === text))
    .map(({ atMs, rank, text }) => ({
      ph: 'i',
      pid: rank ?? job.nRanks,
      tid: 0,
      s: rank === undefined ? 'g' : 't',
      name: text,
      ts: atMs * 1000,
    }));
  const names = Array.from({ length: job.nRanks + 1 }, (_, pid) => ({
    ph: 'M',
    pid,
    tid: 0,
    name: 'process_name',
    args: { name: pid < job.nRanks ? `rank ${pid}` : 'world' },
  }));
  return JSON.stringify({ displayTimeUnit: 'ms', traceEvents: [...names, ...calls, ...notes] });
}

function wrap(text: string, width: number): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const last = lines.at(-1) ?? '';
    if (last === '') lines[lines.length - 1] = word;
    else if (last.length + word.length < width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`  ${word}`);
  }
  return lines;
}
