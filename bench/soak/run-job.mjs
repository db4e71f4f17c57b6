import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** @typedef {import('./job.mjs').Job} Job */
/** @typedef {Record<string, any> & { readonly member: number }} Record_ a line of JSON from a rank */

/**
 * @typedef {object} Outcome
 * @property {number | null} code of the launcher; null: it was killed
 * @property {readonly Record_[]} records in the order in which they arrived
 * @property {string} stderr
 * @property {string} other lines of standard output that are no records
 */

const cli = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const program = new URL('../../test/multi-process/fixtures/chaos.mjs', import.meta.url).pathname;
const threads = new URL('../../test/multi-process/fixtures/chaos-threads.mjs', import.meta.url).pathname;
/** A job that takes longer hangs. A wait that takes longer is in vain. */
export const LIMIT_S = 150;

/**
 * Runs a job to its end and sends the signals that its ranks ask for.
 *
 * @param {Job} job
 * @param {Record<string, string>} env
 * @returns {Promise<Outcome>}
 */
export async function runJob(job, env) {
  const args =
    job.place === 'threads'
      ? [threads]
      : [
          cli,
          'run',
          '-n',
          String(job.nRanks),
          '--no-prefix',
          '--grace',
          String(LIMIT_S),
          '--timeout',
          String(LIMIT_S),
          '--',
          process.execPath,
          program,
        ];
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...job.env, ...env, TCCL_SOAK_JOB: JSON.stringify(job) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const limit = setTimeout(() => child.kill('SIGKILL'), (LIMIT_S + 30) * 1000);
  /** @type {Record_[]} */
  const records = [];
  const stopped = new Stopped(job);
  let stderr = '';
  let other = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (!line.startsWith('{')) {
      other += `${line}\n`;
      return;
    }
    const record = JSON.parse(line);
    records.push(record);
    if (record.signal !== undefined) stopped.signal(record);
    stopped.look(records);
  });
  const code = await new Promise((resolve) => child.on('close', resolve));
  clearTimeout(limit);
  stopped.end();
  return { code, records, stderr, other };
}

/** Ranks that are killed or stopped from outside, by the ids that they print. */
class Stopped {
  /** @type {Map<number, { pid: number, phase: number }>} */
  #stopped = new Map();
  /** @type {NodeJS.Timeout[]} */
  #timers = [];
  #job;

  constructor(/** @type {Job} */ job) {
    this.#job = job;
  }

  signal(/** @type {Record_} */ { member, pid, signal, afterMs, phase }) {
    this.#later(afterMs, () => {
      send(pid, signal === 'SIGKILL' ? 'SIGKILL' : 'SIGSTOP');
      if (signal === 'stop short') this.#later(20 * afterMs, () => send(pid, 'SIGCONT'));
      if (signal === 'stop long') this.#stopped.set(member, { pid, phase });
    });
  }

  /** Lets a rank continue once all others have continued without it. */
  look(/** @type {readonly Record_[]} */ records) {
    for (const [member, { pid, phase }] of this.#stopped) {
      const left = records.filter(
        (record) => record.phase === phase && record.members !== undefined && !record.members.includes(member),
      );
      const [first] = left;
      const all = left.length > 0 && left.length === first?.['members'].length;
      const over = records.filter((record) => record.end === true || record.wrong !== undefined).length;
      if (!all && over < this.#job.nRanks - 1) continue;
      this.#stopped.delete(member);
      send(pid, 'SIGCONT');
    }
  }

  end() {
    for (const timer of this.#timers) clearTimeout(timer);
  }

  #later(/** @type {number} */ ms, /** @type {() => void} */ action) {
    this.#timers.push(setTimeout(action, ms));
  }
}

/** Only to ranks of the job, which printed their ids. */
function send(/** @type {number} */ pid, /** @type {NodeJS.Signals} */ signal) {
  if (!(Number.isInteger(pid) && pid > 1)) throw new Error(`${pid} is no process of a rank`);
  try {
    process.kill(pid, signal);
  } catch {
    // It has exited meanwhile.
  }
}
