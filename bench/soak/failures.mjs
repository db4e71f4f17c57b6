import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describeJob, drawJob } from './job.mjs';
import { judge } from './judge.mjs';
import { drawNewsJob, runNewsJob } from './news.mjs';
import { runJob } from './run-job.mjs';

/** Time in which processes of a job must end after its launcher. */
const LINGER_MS = 30_000;

/** @typedef {import('./calls.mjs').Problem} Problem */

/**
 * Runs the job of a seed and checks all promises.
 *
 * @param {number} seed
 * @param {(what: string) => void} tell
 * @returns {Promise<Problem | undefined>}
 */
export async function failuresRound(seed, tell) {
  const isNews = seed % 3 !== 0;
  const job = isNews ? drawNewsJob(seed) : drawJob(seed);
  const text = 'text' in job ? job.text : describeJob(job);
  tell(text);
  const problems = await problemsOf(job);
  if (problems.length === 0) return undefined;
  return {
    what: `${text}\n${problems.map((problem) => `  ${problem}\n`).join('')}`,
    command: `npm run soak -- --failures --seed ${seed} --rounds 1`,
  };
}

/**
 * Result of the rounds so far: remaining ranks that learned of a failure, and after how many milliseconds where that is measured.
 */
export const figures = { survivors: 0, heardMs: /** @type {number[]} */ ([]) };

/** @returns {Promise<string[]>} */
async function problemsOf(/** @type {import('./job.mjs').Job | import('./news.mjs').NewsJob} */ job) {
  const directory = mkdtempSync(join(tmpdir(), 'tccl-soak-'));
  const token = `TCCL_SOAK_TOKEN=${randomBytes(8).toString('hex')}`;
  const [name = '', value = ''] = token.split('=');
  const before = readdirSync('/dev/shm');
  const env = { TMPDIR: directory, [name]: value };
  const problems = 'text' in job ? await newsProblems(job, env) : await jobProblems(job, env);
  const processes = await leftProcesses(token);
  if (processes.length > 0) problems.push(`processes are left: ${processes.join(', ')}`);
  const files = readdirSync(directory);
  if (files.length > 0) problems.push(`files are left in the temporary directory: ${files.join(', ')}`);
  const shared = await leftShared(before);
  if (shared.length > 0) problems.push(`files are left in /dev/shm: ${shared.join(', ')}`);
  rmSync(directory, { recursive: true });
  return problems;
}

async function jobProblems(/** @type {import('./job.mjs').Job} */ job, /** @type {Record<string, string>} */ env) {
  const outcome = await runJob(job, env);
  figures.survivors += outcome.records.filter((record) => 'failed' in record).length;
  return judge(job, outcome);
}

async function newsProblems(/** @type {import('./news.mjs').NewsJob} */ job, /** @type {Record<string, string>} */ env) {
  const { problems, heardMs } = await runNewsJob(job, env);
  figures.survivors += heardMs.length;
  figures.heardMs.push(...heardMs);
  return problems;
}

/** Processes that a job has left behind, with their commands; processes that are about to end are allowed. */
async function leftProcesses(/** @type {string} */ token) {
  const end = performance.now() + LINGER_MS;
  while (true) {
    const left = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && has(pid, token));
    if (left.length === 0 || performance.now() > end) return left.map((pid) => `${pid} ${commandOf(pid)}`);
    await delay(20);
  }
}

/** New files in /dev/shm, without those that other programs keep only for a moment. */
async function leftShared(/** @type {readonly string[]} */ before) {
  const end = performance.now() + LINGER_MS;
  while (true) {
    const left = readdirSync('/dev/shm').filter((file) => !before.includes(file));
    if (left.length === 0 || performance.now() > end) return left;
    await delay(20);
  }
}

function has(/** @type {string} */ pid, /** @type {string} */ token) {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(token);
  } catch {
    return false; // it has disappeared
  }
}

function commandOf(/** @type {string} */ pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}
