import { choose } from '../../src/planner/tuning/choose.js';
import { algorithms, byName, type Collective, collectives, protocols } from '../../src/planner/tuning/names.js';
import { predict } from '../../src/planner/tuning/predict.js';
import type { ByCandidate } from '../../src/planner/tuning/threads.js';
import type { Tuning } from '../../src/planner/tuning/tune.js';
import { rulesOf } from '../../src/planner/versions/rules.js';
import { type Difference, firstDifference } from './difference.js';
import { isRecord } from './oracle-case.js';

/** Comparison of the tuning model, in the oracle's own form: `tuning` and `choice`. */

/** Threads, bandwidth and latency of everything. */
export function tuningDifference(expected: Expected, tuning: Tuning): Difference | undefined {
  const inRows = (values: ByCandidate) =>
    byName(algorithms, (algorithm) => protocols.map((protocol) => values[algorithm][protocol]));
  // Since 2.31 NCCL does not always compute those of disabled candidates.
  const allLatencies = rulesOf(tuning.input).tuningModel === 'cost table';
  return firstDifference(
    allLatencies ? expected['tuning'] : withoutUnused(expected['tuning']),
    {
      maxThreads: inRows(tuning.maxThreads),
      threadThresholds: inRows(tuning.threadThresholds),
      model: byName(collectives, (collective) =>
        byName(algorithms, (algorithm) => {
          const entries = protocols.map((protocol) => tuning.model[collective][algorithm][protocol]);
          return {
            bw: entries.map(({ bandwidthGBps }) => bandwidthGBps),
            lat: entries.map(({ bandwidthGBps, latencyUs }) => (allLatencies || bandwidthGBps !== 0 ? latencyUs : 0)),
          };
        }),
      ),
    },
    'tuning',
  );
}

/** With 0 for latencies of candidates that have no bandwidth. */
function withoutUnused(expected: unknown): unknown {
  if (!isRecord(expected)) return expected;
  const { bw, lat } = expected;
  if (Array.isArray(bw) && Array.isArray(lat))
    return { bw, lat: lat.map((us: unknown, position) => (bw[position] === 0 ? 0 : us)) };
  return Object.fromEntries(Object.entries(expected).map(([name, value]) => [name, withoutUnused(value)]));
}

/** Times of all candidates and the choice, at the sizes that the oracle has. */
export function choiceDifference(expected: Expected, tuning: Tuning): Difference | undefined {
  if (!isRecord(expected['choice'])) return { path: 'choice', expected: expected['choice'], actual: {} };
  const rows = withAllTimes(expected['choice']);
  return firstDifference(
    rows,
    byName(collectives, (collective) => rows[collective].map(({ bytes }) => describeChoice(tuning, collective, bytes))),
    'choice',
  );
}

/** The oracle leaves out algorithms that have no time. */
function withAllTimes(choice: Expected): Record<Collective, { readonly bytes: number }[]> {
  return byName(collectives, (collective) => {
    const rows = choice[collective];
    if (!Array.isArray(rows)) return [];
    return rows.filter(isRecord).map((row) => {
      const times = isRecord(row['us']) ? row['us'] : {};
      return {
        ...row,
        bytes: Number(row['bytes']),
        us: byName(algorithms, (algorithm) => times[algorithm] ?? protocols.map(() => null)),
      };
    });
  });
}

function describeChoice(tuning: Tuning, collective: Collective, bytes: number): object {
  const chosen = choose(tuning, collective, bytes);
  const times = predict(tuning, collective, bytes);
  return {
    bytes,
    algo: chosen?.algorithm ?? null,
    proto: chosen?.protocol ?? null,
    nChannels: chosen?.nChannels ?? 0,
    nThreads: chosen?.nThreads ?? 0,
    chunkSize: chosen?.chunkBytes ?? 0,
    us: byName(algorithms, (algorithm) => times.filter((time) => time.algorithm === algorithm).map(({ timeUs }) => timeUs)),
  };
}

type Expected = Readonly<Record<string, unknown>>;
