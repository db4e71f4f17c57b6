import { spawn } from 'node:child_process';

/** From SIGTERM to SIGKILL. */
const graceMs = 3000;

/** @typedef {{ file: string, args: readonly string[], env?: Readonly<Record<string, string>> }} Command */

/**
 * Runs a command to its end and returns its standard output. At the timeout, or when this process ends, it is killed with
 * all processes that it started.
 *
 * @param {Command} command
 * @param {{ timeoutMs: number, env?: Readonly<Record<string, string>> }} options
 * @returns {Promise<string>}
 * @throws Error with its last output if it fails
 */
export async function runCommand({ file, args, env: own = {} }, { timeoutMs, env = {} }) {
  // A session of its own: killing its group reaches the ranks behind a launcher, and Linux's scheduler shares cores
  // among sessions first, so ranks that give a core away give it to each other.
  const child = spawn(file, args, { env: { ...process.env, ...env, ...own }, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const signalAll = (/** @type {NodeJS.Signals} */ signal) => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    try {
      process.kill(-child.pid, signal);
    } catch {
      // It has ended meanwhile.
    }
  };
  // First the launcher may remove shared files of its ranks; mpirun leaves files in /dev/shm otherwise.
  const end = () => {
    signalAll('SIGTERM');
    setTimeout(() => signalAll('SIGKILL'), graceMs).unref();
  };
  const kill = () => signalAll('SIGKILL');
  const interrupted = (/** @type {NodeJS.Signals} */ signal) => {
    child.once('close', () => process.exit(signal === 'SIGINT' ? 130 : 143));
    end();
  };
  process.once('exit', kill).once('SIGINT', interrupted).once('SIGTERM', interrupted);
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    end();
  }, timeoutMs);
  try {
    return await outcome(file, child);
  } catch (error) {
    if (timedOut) throw new Error(`not done after ${timeoutMs / 1e3} s`, { cause: error });
    throw error;
  } finally {
    clearTimeout(timer);
    process.off('exit', kill).off('SIGINT', interrupted).off('SIGTERM', interrupted);
  }
}

/**
 * @param {string} file
 * @param {import('node:child_process').ChildProcessByStdio<null, import('node:stream').Readable,
 *   import('node:stream').Readable>} child
 * @returns {Promise<string>}
 */
function outcome(file, child) {
  return new Promise((resolve, reject) => {
    let output = '';
    let words = '';
    child.stdout.setEncoding('utf8').on('data', (/** @type {string} */ text) => (output += text));
    child.stderr.setEncoding('utf8').on('data', (/** @type {string} */ text) => (words += text));
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (code === 0) return resolve(output);
      const lines = words.trim().split('\n');
      const last = lines.find((line) => line.includes('Error:')) ?? lines.at(-1);
      reject(new Error(`${file} ended with ${signal ?? `exit code ${code}`}: ${last}`));
    });
  });
}

/**
 * The JSON objects among the lines of an output; a launcher may have put the rank before each.
 *
 * @param {string} output
 * @returns {Record<string, any>[]}
 */
export function jsonLines(output) {
  return output.split('\n').flatMap((line) => {
    const start = line.indexOf('{"');
    return start < 0 ? [] : [JSON.parse(line.slice(start))];
  });
}
