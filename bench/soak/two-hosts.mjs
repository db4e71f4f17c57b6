import { execFileSync, spawn } from 'node:child_process';

/**
 * @typedef {{ stdout: string, stderr: string, timedOut: boolean, cutMs: number }} Output what a job wrote, and when its
 * cable was cut
 */

const ip = (/** @type {string[]} */ ...args) => execFileSync('ip', args, { stdio: 'pipe' }).toString();
/** @type {{ readonly reason: string | undefined } | undefined} */
let known;
let jobs = 0;

/** Reason why network namespaces cannot be made here; undefined where they can. */
export function whyNoHosts() {
  known ??= { reason: probe() };
  return known.reason;
}

function probe() {
  const name = `tccl-probe-${process.pid}`;
  try {
    ip('netns', 'add', name);
    ip('netns', 'del', name);
    return undefined;
  } catch (error) {
    return String(error);
  }
}

/**
 * Runs two ranks on each of two hosts made of network namespaces, and cuts the cable between them once all have printed a line.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @param {NodeJS.ProcessEnv} env
 * @param {number} limitMs
 * @returns {Promise<Output>}
 */
export async function runOnTwoHosts(program, args, env, limitMs) {
  const names = ['a', 'b'].map((letter) => `tccl-soak-${letter}-${process.pid}`);
  const [a = '', b = ''] = names;
  for (const name of names) ip('netns', 'add', name);
  /** @type {Output} */
  const output = { stdout: '', stderr: '', timedOut: false, cutMs: 0 };
  /** @type {import('node:child_process').ChildProcess[]} */
  const children = [];
  try {
    ip('link', 'add', 'tccl0', 'netns', a, 'type', 'veth', 'peer', 'name', 'tccl0', 'netns', b);
    names.forEach((name, index) => {
      ip('-n', name, 'address', 'add', `10.214.77.${index + 1}/24`, 'dev', 'tccl0');
      for (const link of ['lo', 'tccl0']) ip('-n', name, 'link', 'set', link, 'up');
    });
    for (const name of names) while (!/state UP/.test(ip('-n', name, 'link', 'show', 'tccl0')));
    const port = 29800 + (jobs++ % 100);
    let running = 0;
    const ended = [0, 1, 2, 3].map((rank) => {
      const host = rank < 2 ? 0 : 1;
      const place = {
        SLURM_PROCID: String(rank),
        SLURM_NTASKS: '4',
        SLURM_LOCALID: String(rank % 2),
        SLURM_JOB_ID: '1',
        SLURM_STEP_ID: '0',
        TCCL_HOSTID: `host ${host}`,
        TCCL_COMM_ID: `10.214.77.1:${port}`,
      };
      const child = spawn('ip', ['netns', 'exec', names[host] ?? '', process.execPath, program, ...args], {
        env: { ...env, ...place },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      children.push(child);
      let own = '';
      child.stdout.on('data', (/** @type {Buffer} */ chunk) => {
        if (own === '' && ++running === 4) {
          ip('-n', b, 'link', 'set', 'tccl0', 'down');
          output.cutMs = Date.now();
        }
        own += chunk;
      });
      child.stderr.on('data', (chunk) => (output.stderr += chunk));
      return new Promise((resolve) => child.on('close', () => resolve((output.stdout += own))));
    });
    const timer = setTimeout(() => {
      output.timedOut = true;
      for (const child of children) child.kill('SIGKILL');
    }, limitMs);
    await Promise.all(ended);
    clearTimeout(timer);
    return output;
  } finally {
    for (const name of names) ip('netns', 'del', name);
  }
}
