/**
 * The runtime against Open MPI, MPICH and Gloo: the same collective at the same sizes, tccl's APIs and the libraries'
 * tunings in turn, in several rounds. docs/notes/performance.md describes the method.
 *
 * @module
 */
import { availableParallelism } from 'node:os';
import { formatSize } from '../../dist/perf/sizes.js';
import { compare, stateOf } from '../lib/compare.mjs';
import { commonOptions, measureOnce } from '../lib/measure.mjs';
import { buildPrograms, command, programPath, tunings } from '../lib/peers.mjs';
import { jsonLines, runCommand } from '../lib/processes.mjs';
import { figure, over, ratioSections, ratioTable } from '../lib/ratio-table.mjs';
import { messageOf } from '../lib/suite.mjs';
import { table, verdict } from '../lib/table.mjs';
import { plainTarget, promiseTarget, ratioTarget } from '../lib/targets.mjs';

/** @typedef {import('../lib/compare.mjs').Comparison} Comparison */
/** @typedef {import('../lib/suite.mjs').Context} Context */

export const title = 'collectives against Open MPI, MPICH and Gloo';

const cores = availableParallelism();
const rankProgram = new URL('../ranks/collective.mjs', import.meta.url).pathname;
const cli = new URL('../../dist/cli/main.js', import.meta.url).pathname;

/** Variants of tccl: the blocking API, the promise API, and the blocking one with ordinary arrays. */
const variants = [
  { name: 'sync', options: ['-A', 'sync'] },
  { name: 'promise', options: ['-A', 'promise'] },
  { name: 'plain', options: ['-A', 'plain'] },
];

/**
 * Collectives whose blocking API also runs the other way: all-reduces in place, for the machine's ceilings. MPI's
 * broadcast has one array, the root's as well; so all broadcasts run in place, and tccl's also with an output of the
 * root's own.
 */
const alsoRuns = new Map([
  ['all_reduce', [{ name: 'in place', options: ['-A', 'sync', '-i', '1'] }]],
  ['broadcast', [{ name: 'out of place', options: ['-A', 'sync', '-i', '0'] }]],
]);

/** Calls of a sample follow each other without a barrier, as in nccl-tests: at small sizes, throughput. */
const inARow = { calls: 20, maxBytes: 32768 };

/** One program to run: a tuning of a library, or tccl with one of its APIs. */
/**
 * @typedef {{ library: string, name: string, maxBytes: number, start(ranks: number, options: string[]):
 * import('../lib/processes.mjs').Command }} Entrant
 */

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  const built = buildPrograms(note);
  for (let round = 0; round < options.rounds; round++) {
    for (const ranks of options.ranks) {
      for (const [collective, type] of options.collectives.flatMap((name) => options.types.map((of) => [name, of]))) {
        if (collective === undefined || type === undefined) continue;
        const field = entrants(collective, ranks, built, options.quick);
        for (const [index, entrant] of field.entries()) {
          const name = `${collective} ${type}, ${ranks} ranks: ${entrant.library} ${entrant.name}`;
          progress(`round ${round + 1}/${options.rounds}, ${index + 1}/${field.length}, ${name}`);
          for (const args of programOptions(collective, type, entrant, options)) {
            try {
              for (const line of await measureOnce(entrant.start(ranks, args))) record(line);
            } catch (error) {
              note(`${name}: ${messageOf(error)}`);
            }
          }
        }
      }
    }
    if (built.has('ceilings')) {
      progress(`round ${round + 1}/${options.rounds}, ceilings of this machine's memory`);
      for (const line of jsonLines(await runCommand({ file: programPath('ceilings'), args: ['memory'] }, { timeoutMs: 120_000 })))
        record(line);
    }
  }
}

/**
 * The libraries' tunings with tccl's variants spread among them, so that each runs in all states of the machine.
 *
 * @param {string} collective @param {number} ranks @param {Set<string>} built @param {boolean} quick
 * @returns {Entrant[]}
 */
function entrants(collective, ranks, built, quick) {
  /** @type {Entrant[]} */
  const peers = tunings(collective, ranks, cores)
    .filter(({ library, won }) => built.has(`bench_${library}`) && (won || !quick))
    .map((tuning) => ({
      library: tuning.library,
      name: tuning.name,
      maxBytes: tuning.maxBytes ?? Infinity,
      start: (count, options) => command(tuning, count, options),
    }));
  /** @type {Entrant[]} */
  const ours = [...variants, ...(alsoRuns.get(collective) ?? [])].map((variant) => ({
    library: 'tccl',
    name: variant.name,
    maxBytes: Infinity,
    start: (count, options) => ({
      file: process.execPath,
      args: [
        cli,
        'run',
        '-n',
        String(count),
        '--',
        process.execPath,
        rankProgram,
        ...options,
        ...variant.options,
        '-L',
        variant.name,
      ],
    }),
  }));
  const gap = Math.ceil(peers.length / ours.length);
  return ours.flatMap((one, index) => [one, ...peers.slice(index * gap, (index + 1) * gap)]);
}

/**
 * Command lines of the program: single calls at all sizes, then calls in a row at small ones.
 *
 * @param {string} collective @param {string} type @param {Entrant} entrant @param {import('../lib/suite.mjs').Options} options
 */
function programOptions(collective, type, { maxBytes }, { sizes, seconds, quick, state }) {
  const common = [...commonOptions(collective, { seconds, state }), '-d', type];
  const fitting = sizes.filter((bytes) => bytes <= maxBytes);
  const small = fitting.filter((bytes) => bytes <= inARow.maxBytes);
  return [
    ...(fitting.length > 0 ? [[...common, '-s', fitting.join(','), '-n', '300']] : []),
    ...(small.length > 0 && collective === 'all_reduce' && !quick
      ? [[...common, '-s', small.join(','), '-n', '50', '-k', String(inARow.calls)]]
      : []),
  ];
}

/** Tables of a run's records: one for each collective, number of ranks and state of the cores, and the ceilings. */
export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const comparisons = compare(records);
  const sections = ratioSections(
    comparisons,
    ({ coll, type, ranks, calls, state }) =>
      `${coll} ${type}, ${ranks} ranks${state === 'any' ? '' : `, cores ${state}`}${calls === 1 ? '' : `, ${calls} calls in a row`}`,
    tableOf,
  );
  if (comparisons.some((comparison) => comparison.peers.concat(Object.values(comparison.ours)).some(({ noisy }) => noisy))) {
    sections.push('~ other processes ran during every measurement of this figure: repeat it on a quiet machine.');
  }
  const wrong = records.filter((record) => record['wrong'] > 0);
  if (wrong.length > 0)
    sections.push(
      `WRONG RESULTS, left out: ${wrong.map(({ lib, cfg, coll, ranks, bytes }) => `${lib} ${cfg} ${coll} ${ranks} ranks ${formatSize(bytes)}`).join('; ')}`,
    );
  const ceilings = ceilingTable(comparisons, records);
  if (ceilings !== undefined) sections.push(ceilings);
  return sections.join('\n\n');
}

/** @param {readonly Comparison[]} rows */
function tableOf(rows) {
  const hasOutOfPlace = rows.some(({ ours }) => ours['out of place'] !== undefined);
  return ratioTable(rows, ratioTarget, [
    { title: 'promise', cell: ({ ours }) => figure(ours['promise']) },
    { title: 'promise / sync, target', cell: judgedPromise },
    { title: 'plain', cell: ({ ours }) => figure(ours['plain']) },
    {
      title: 'plain / best, target',
      cell: ({ ours, best, calls, bytes }) =>
        verdict(over(ours['plain'], best), calls === 1 && bytes >= plainTarget.fromBytes ? plainTarget.ratio : undefined),
    },
    ...(hasOutOfPlace
      ? [
          { title: 'sync, out of place', cell: (/** @type {Comparison} */ { ours }) => figure(ours['out of place']) },
          {
            title: '/ best',
            cell: (/** @type {Comparison} */ { ours, best }) => verdict(over(ours['out of place'], best), undefined),
          },
        ]
      : []),
  ]);
}

/** @param {Comparison} row */
function judgedPromise({ ours: { sync, promise }, calls, ranks, bytes }) {
  if (calls === 1 && ranks <= cores && bytes <= promiseTarget.smallBytes && promise !== undefined)
    return `${verdict(promise.us, promiseTarget.smallUs)} (µs)`;
  return verdict(over(promise, sync), calls === 1 && bytes >= promiseTarget.fromBytes ? promiseTarget.overSync : undefined);
}

/**
 * Bytes a second that tccl's all-reduce moves (each rank's input is read and its output written once: 2 n times the size), over
 * what the machine's copy and add loops move with as many threads; with ordinary stores, and with non-temporal ones (nt), which
 * WebAssembly does not have.
 *
 * @param {readonly Comparison[]} comparisons @param {readonly Record<string, any>[]} records
 */
function ceilingTable(comparisons, records) {
  const limits = records.filter((record) => record['ceiling'] !== undefined);
  /** @param {string} kernel @param {Comparison} row */
  const best = (kernel, { bytes, ranks, state }) => {
    const threads = Math.min(ranks, cores, 2);
    const fitting = limits.filter(
      (limit) =>
        limit['kernel'].startsWith(kernel) &&
        limit['bytes'] === bytes &&
        limit['threads'] === threads &&
        (state === 'any' || stateOf(/** @type {{ link_ns: [number, number] }} */ (limit)) === state),
    );
    return Math.max(...fitting.filter((limit) => !limit['ceiling'].endsWith('nt')).map((limit) => limit['moved_GBps']));
  };
  const text = (/** @type {number | undefined} */ GBps) => (GBps !== undefined && Number.isFinite(GBps) ? GBps.toFixed(1) : '');
  const rows = comparisons
    .filter(({ coll, type, calls }) => coll === 'all_reduce' && type === 'float' && calls === 1)
    .flatMap((row) => {
      const { ranks, bytes, state, ours } = row;
      const moved = (/** @type {{ us: number } | undefined} */ figure) =>
        figure === undefined ? undefined : (2 * ranks * bytes) / figure.us / 1e3;
      const pairs = [
        [moved(ours['sync']), best('c=a+b', row)],
        [moved(ours['in place']), best('a+=b', row)],
      ];
      if (!pairs.some(([, limit]) => Number.isFinite(limit))) return [];
      return [
        [
          `${formatSize(bytes)}, ${ranks} ranks${state === 'any' ? '' : `, ${state}`}`,
          ...pairs.flatMap(([ours_, limit]) => [
            text(ours_),
            text(limit),
            ours_ !== undefined && limit !== undefined && Number.isFinite(limit) ? `${((100 * ours_) / limit).toFixed(0)} %` : '',
          ]),
          text(best('c=a ', row)),
        ],
      ];
    });
  if (rows.length === 0) return undefined;
  return `all_reduce float against the machine's own loops with as many threads, in the same state of the cores: GB/s moved\n\n${table(
    ['size', 'out of place', 'c=a+b', 'of it', 'in place', 'a+=b', 'of it', 'c=a'],
    rows,
  )}`;
}
