import { spawn } from 'node:child_process';

/**
 * Runs processes together until all have ended, and gives their standard outputs. When one fails, or the time is up,
 * all are killed with their children.
 *
 * @param {readonly { file: string, args: readonly string[], env?: Readonly<Record<string, string>> }[]} commands
 * @param {{ timeoutMs: number, env?: Readonly<Record<string, string>> }} options
 * @returns {Promise<string>}
 * @throws Error that says which failed, and its last words
 */
export async function runTogether(commands, { timeoutMs, env = {} }) {
  const children = commands.map(({ file, args, env: own = {} }) => ({
    file,
    // In a group of its own, so that killing the group reaches the ranks behind a launcher.
    process: spawn(file, args, { env: { ...process.env, ...env, ...own }, stdio: ['ignore', 'pipe', 'pipe'], detached: true }),
  }));
  const killAll = () => {
    for (const { process: child } of children) {
      if (child.pid === undefined || child.exitCode !== null) continue;
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It ended meanwhile.
      }
    }
  };
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    killAll();
  }, timeoutMs);
  process.once('exit', killAll);
  try {
    const outputs = await Promise.all(children.map(async ({ file, process: child }) => {
      const result = await outcome(file, child);
      if (result.failure !== undefined) killAll();
      return result;
    }));
    const failed = outputs.find(({ failure }) => failure !== undefined);
    if (timedOut) throw new Error(`not done after ${timeoutMs / 1e3} s`);
    if (failed !== undefined) throw new Error(failed.failure);
    return outputs.map(({ output }) => output).join('');
  } finally {
    clearTimeout(timer);
    process.removeListener('exit', killAll);
  }
}

/**
 * @param {string} file
 * @param {import('node:child_process').ChildProcessByStdio<null, import('node:stream').Readable, import('node:stream').Readable>} child
 * @returns {Promise<{ output: string, failure: string | undefined }>}
 */
function outcome(file, child) {
  return new Promise((resolve) => {
    let output = '';
    let words = '';
    child.stdout.setEncoding('utf8').on('data', (/** @type {string} */ text) => (output += text));
    child.stderr.setEncoding('utf8').on('data', (/** @type {string} */ text) => (words += text));
    child.once('error', (error) => resolve({ output, failure: error.message }));
    child.once('close', (code, signal) => {
      const lines = words.trim().split('\n');
      const last = lines.find((line) => line.includes('Error:')) ?? lines.at(-1);
      resolve({ output, failure: code === 0 ? undefined : `${file} ended with ${signal ?? `exit code ${code}`}: ${last}` });
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
