import { spawn } from 'node:child_process';
import { random } from '../../test/multi-process/fixtures/random.mjs';
import { runOnTwoHosts, whyNoHosts } from './two-hosts.mjs';

/** A rank that gets a failure only after this time has waited for some timeout. Timeouts of jobs are longer. */
const AT_ONCE_MS = 15_000;
const JOB_LIMIT_MS = 180_000;
const HEARTBEAT_S = 4;

const cli = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const fixture = (/** @type {string} */ name) => new URL(`../../test/multi-process/fixtures/${name}`, import.meta.url).pathname;
const sockets = { TCCL_SHM_DISABLE: '1' };
const ways = {
  'one segment': {},
  sockets,
  'sockets of a thread': { ...sockets, TCCL_TEST_CONFIG: '{"blocking":true}' },
  'engine thread': { TCCL_TEST_CONFIG: '{"engine":"thread"}' },
};
const promised = { abort: 'ABORTED', exit0: 'CLOSED', exit1: 'RANK_DIED', kill: 'RANK_DIED' };

/**
 * A job in which one failure has to reach all ranks: fixtures of the tests, with random ranks and places.
 *
 * @typedef {object} NewsJob
 * @property {'first call' | 'exit in a child' | 'unhandled' | 'cut'} what
 * @property {string} text one line about it
 * @property {number} nRanks
 * @property {string} program
 * @property {readonly string[]} args
 * @property {Record<string, string>} env
 * @property {number} survivors number of ranks that print the error of their call
 * @property {string | undefined} code of that error
 */

/**
 * The job of a seed.
 *
 * @param {number} seed
 * @returns {NewsJob}
 */
export function drawNewsJob(seed) {
  const draw = random(seed);
  const pick = (/** @type {readonly string[]} */ list) => list[draw(list.length)] ?? '';
  const what = /** @type {NewsJob['what']} */ (
    pick([
      'first call',
      'first call',
      'exit in a child',
      'exit in a child',
      'unhandled',
      ...(whyNoHosts() === undefined ? ['cut'] : []),
    ])
  );
  const nRanks = what === 'cut' ? 4 : 2 + draw(7);
  const way = what === 'first call' ? pick(['sockets', 'sockets', 'sockets of a thread']) : pick(Object.keys(ways));
  const env = { TCCL_TIMEOUT: '60', ...ways[/** @type {keyof typeof ways} */ (way)] };
  const job = (
    /** @type {string} */ program,
    /** @type {string[]} */ args,
    /** @type {number} */ survivors,
    /** @type {string | undefined} */ code,
  ) => ({
    what,
    text: `${what}: ${program} ${args.join(' ')}, ${nRanks} ranks, ${way}`,
    nRanks,
    program,
    args,
    env,
    survivors,
    code,
  });
  switch (what) {
    case 'first call': {
      const how = /** @type {keyof typeof promised} */ (pick(['abort', 'abort', 'exit1', 'kill', 'exit0']));
      const tries = how === 'abort' ? 5 : 1;
      return job(
        'first-call.mjs',
        [
          pick(['reduceScatter', 'allGather', 'allToAll', 'gather', 'allReduce', 'exchange', 'window']),
          how,
          String(seed),
          String(tries),
        ],
        tries * (nRanks - 1),
        promised[how],
      );
    }
    case 'exit in a child':
      return job(
        'first-call.mjs',
        [pick(['split', 'stream', 'shrink', 'grow']), 'exit0', String(seed), '1'],
        nRanks - 1,
        'CLOSED',
      );
    case 'unhandled':
      return job('unhandled.mjs', [String(seed), '8'], 0, undefined);
    case 'cut': {
      const onHosts = /** @type {Record<string, string>} */ ({ ...env });
      delete onHosts.TCCL_SHM_DISABLE;
      return {
        ...job('vanished.mjs', [pick(['small', 'large', 'message'])], 4, 'NETWORK'),
        env: { ...onHosts, TCCL_HEARTBEAT: String(HEARTBEAT_S) },
      };
    }
  }
}

/**
 * Runs the job and returns broken promises, and the milliseconds until each survivor had its error.
 *
 * @param {NewsJob} job
 * @param {Record<string, string>} env of every process
 * @returns {Promise<{ problems: string[], heardMs: number[] }>}
 */
export async function runNewsJob(job, env) {
  const all = { ...process.env, ...env, ...job.env };
  const outcome =
    job.what === 'cut'
      ? await runOnTwoHosts(fixture(job.program), job.args, all, JOB_LIMIT_MS)
      : await runUnderLauncher(job, all);
  const records = outcome.stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => /** @type {Record<string, any>} */ (JSON.parse(line)));
  const problems = [];
  if (outcome.timedOut) problems.push(`a hang: not finished after ${JOB_LIMIT_MS / 1000} s`);
  for (const { rank, unhandled } of records.filter((record) => 'unhandled' in record))
    problems.push(`rank ${rank}: unhandled rejection: ${unhandled}`);
  if (/triggerUncaughtException|UnhandledPromiseRejection/.test(outcome.stderr))
    problems.push(`an error that nobody handled:\n${outcome.stderr}`);
  const ended = records.filter((record) => 'code' in record);
  if (ended.length !== job.survivors)
    problems.push(`${ended.length} survivors told of the failure, not ${job.survivors}\n${outcome.stderr}`);
  const heardMs = ended.map((record) => Number(record['ms'] ?? record['atMs'] - outcome.cutMs));
  ended.forEach((record, i) => {
    if (record['code'] !== job.code)
      problems.push(`rank ${record['rank']} got ${record['code']}, not ${job.code}: ${record['message']}`);
    if ((heardMs[i] ?? 0) > AT_ONCE_MS + (job.what === 'cut' ? 1000 * HEARTBEAT_S : 0))
      problems.push(`rank ${record['rank']} heard after ${heardMs[i]} ms: ${record['message']}`);
  });
  return { problems, heardMs };
}

/** @returns {Promise<import('./two-hosts.mjs').Output>} */
function runUnderLauncher(/** @type {NewsJob} */ { nRanks, program, args }, /** @type {NodeJS.ProcessEnv} */ env) {
  const child = spawn(
    process.execPath,
    [cli, 'run', '-n', String(nRanks), '--no-prefix', '--grace', '100', '--', process.execPath, fixture(program), ...args],
    { env, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const output = { stdout: '', stderr: '', timedOut: false, cutMs: 0 };
  child.stdout.on('data', (chunk) => (output.stdout += chunk));
  child.stderr.on('data', (chunk) => (output.stderr += chunk));
  const timer = setTimeout(() => {
    output.timedOut = true;
    child.kill('SIGTERM');
  }, JOB_LIMIT_MS);
  return new Promise((resolve) =>
    child.on('close', () => {
      clearTimeout(timer);
      resolve(output);
    }),
  );
}
