/**
 * `npm run bench`: measures, writes JSON lines to bench/results, and prints tables of ratios. docs/notes/performance.md describes
 * how to read them.
 *
 * @module
 */
import { mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import { cpus, hostname, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { progressLine } from '../dist/cli/output.js';
import { wholeNumber } from '../dist/perf/options.js';
import { parseSize } from '../dist/perf/sizes.js';
import { didYouMean } from '../dist/suggest.js';

/** Suites by name, as lib/suite.mjs describes them; each is loaded on demand. */
/** @type {Record<string, () => Promise<import('./lib/suite.mjs').Suite>>} */
const suites = {
  runtime: () => import('./suites/runtime.mjs'),
  choice: () => import('./suites/choice.mjs'),
  start: () => import('./suites/start.mjs'),
  topology: () => import('./suites/topology.mjs'),
  search: () => import('./suites/search.mjs'),
  plan: () => import('./suites/plan.mjs'),
  tuning: () => import('./suites/tuning.mjs'),
  simulate: () => import('./suites/simulate.mjs'),
  transport: () => import('./suites/transport.mjs'),
  overlap: () => import('./suites/overlap.mjs'),
  ddp: () => import('./suites/ddp.mjs'),
  children: () => import('./suites/children.mjs'),
  idle: () => import('./suites/idle.mjs'),
  messages: () => import('./suites/messages.mjs'),
  recorder: () => import('./suites/recorder.mjs'),
  hosts: () => import('./suites/hosts.mjs'),
  rails: () => import('./suites/rails.mjs'),
  flows: () => import('./suites/flows.mjs'),
  aggregator: () => import('./suites/aggregator.mjs'),
  tasks: () => import('./suites/tasks.mjs'),
  webgpu: () => import('./suites/webgpu.mjs'),
  browser: () => import('./suites/browser.mjs'),
};

/** Collectives of the peers' programs. */
const measuredCollectives = ['all_reduce', 'all_gather', 'reduce_scatter', 'broadcast', 'reduce', 'alltoall', 'sendrecv'];

const help = `Usage: npm run bench -- [options]

Options:
  --only LIST         suites, of ${Object.keys(suites).join(', ')} (all)
  --ranks LIST        numbers of ranks, in suite hosts of both together (2,4,8; with --quick 2)
  --sizes LIST        sizes such as 8,1K,16M (8,1K,32K,1M,16M,64M)
  --collectives LIST  collectives of suites runtime and hosts, of ${measuredCollectives.join(', ')}, or all
                      (all_reduce); of suite rails all_reduce, sendrecv, broadcast, reduce
  --types LIST        types of suite runtime, of float, int32, double, half, bf16 (float)
  --rounds N          rounds, of which the lowest median counts (3)
  --seconds S         at most so long at one size of one program (0.4; with --quick 0.2)
  --state near|far    waits for cores in this state, and for a quiet machine: exact but slow
  --quick             only the libraries' tunings that have been the fastest, 2 ranks: a few minutes
  --table FILE…       tables of earlier results, nothing is measured
  -h, --help

Results are added to bench/results/DATE.jsonl. Run it on a machine that does nothing else.
`;

class UsageError extends Error {}

try {
  await main();
} catch (error) {
  if (!(error instanceof UsageError) && !(error instanceof Error && 'ncclResult' in error)) throw error;
  process.stderr.write(`bench: ${error.message}\n`);
  process.exitCode = 2;
}

async function main() {
  const { values, positionals } = parse();
  if (values.help) return void process.stdout.write(help);
  const names = list(values.only) ?? Object.keys(suites);
  const chosen = await Promise.all(
    names.map((name) => {
      const load = suites[name];
      if (load === undefined) throw new UsageError(`no suite is called '${name}'${didYouMean(name, Object.keys(suites))}`);
      return load();
    }),
  );
  if (values.table) {
    if (positionals.length === 0) throw new UsageError('--table needs results files, such as bench/results/*.jsonl');
    return printTables(chosen, positionals.flatMap(readRecords));
  }
  if (positionals.length > 0) throw new UsageError(`unexpected argument '${positionals[0]}'`);

  /** @type {import('./lib/suite.mjs').Options} */
  const options = {
    ranks: list(values.ranks)?.map((text) => wholeNumber('--ranks', text, 1)) ?? (values.quick ? [2] : [2, 4, 8]),
    sizes: (list(values.sizes) ?? ['8', '1K', '32K', '1M', '16M', '64M']).map((text) => parseSize(text, '--sizes')),
    collectives: values.collectives === 'all' ? measuredCollectives : (list(values.collectives) ?? ['all_reduce']),
    types: list(values.types) ?? ['float'],
    rounds: wholeNumber('--rounds', values.rounds ?? '3', 1),
    seconds: positive('--seconds', values.seconds ?? (values.quick ? '0.2' : '0.4')),
    state: stateOption(values.state),
    quick: values.quick,
  };
  const records = await measure(chosen, options);
  printTables(chosen, records);
}

function parse() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        only: { type: 'string' },
        ranks: { type: 'string' },
        sizes: { type: 'string' },
        collectives: { type: 'string' },
        types: { type: 'string' },
        rounds: { type: 'string' },
        seconds: { type: 'string' },
        state: { type: 'string' },
        quick: { type: 'boolean', default: false },
        table: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/**
 * @param {readonly import('./lib/suite.mjs').Suite[]} chosen @param {import('./lib/suite.mjs').Options} options
 * @returns {Promise<Record<string, any>[]>} the records
 */
async function measure(chosen, options) {
  const folder = new URL('results/', import.meta.url).pathname;
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${new Date().toISOString().slice(0, 19).replaceAll(':', '-')}.jsonl`);
  const file = openSync(path, 'a');
  /** @type {Record<string, any>[]} */
  const records = [];
  const line = progressLine();
  const record = (/** @type {Record<string, any>} */ value) => {
    records.push(value);
    writeSync(file, `${JSON.stringify(value)}\n`);
  };
  const note = (/** @type {string} */ text) => {
    line.done();
    process.stderr.write(`# ${text}\n`);
  };
  record({
    machine: {
      host: hostname(),
      cpu: cpus()[0]?.model.trim(),
      cores: cpus().length,
      memoryGiB: Math.round(totalmem() / 2 ** 30),
      kernel: release(),
      node: process.version,
    },
    options,
  });
  for (const { title, run } of chosen) {
    note(title);
    await run({ options, record, note, progress: (text) => (process.stderr.isTTY ? line.update(text) : note(text)) });
  }
  line.done();
  note(`results are in ${path}`);
  return records;
}

/** @param {readonly import('./lib/suite.mjs').Suite[]} chosen @param {readonly Record<string, any>[]} records */
function printTables(chosen, records) {
  const sections = chosen.map(({ report }) => report(records)).filter((text) => text !== '');
  process.stdout.write(`${sections.join('\n\n')}\n`);
}

/** @param {string} path */
function readRecords(path) {
  let text;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line, index) => {
      try {
        return /** @type {Record<string, any>} */ (JSON.parse(line));
      } catch {
        throw new UsageError(`${path}:${index + 1}: not a JSON line`);
      }
    });
}

/** @param {string | undefined} text @returns {'near' | 'far' | undefined} */
function stateOption(text) {
  if (text === undefined || text === 'near' || text === 'far') return text;
  throw new UsageError(`--state '${text}' must be near or far`);
}

/** The items of a comma-separated list. */
function list(/** @type {string | undefined} */ text) {
  return text
    ?.split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/** A number above 0. @param {string} flag @param {string} text */
function positive(flag, text) {
  const value = Number(text);
  if (!(value > 0)) throw new UsageError(`${flag} '${text}' must be a number above 0`);
  return value;
}
