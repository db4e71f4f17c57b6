/**
 * Two network namespaces joined by cables, each like a host of its own, for measurements.
 *
 * @module
 */
import { execFileSync } from 'node:child_process';

const ip = (/** @type {string[]} */ ...args) => execFileSync('ip', args, { stdio: 'pipe' }).toString();
let made = 0;

/** Name of the first network interface on both hosts. */
export const cable = 'tccl0';

/**
 * @typedef {object} TwoHosts
 * @property {readonly string[]} names of the namespaces
 * @property {readonly string[]} addresses on the first cable
 * @property {() => void} remove
 */

/**
 * @param {{ cables?: number, mbit?: number }} [options] number of cables, called tccl0, tccl1 …; the rate of each in both
 * directions, by default what the kernel gives
 * @returns {TwoHosts}
 * @throws Error where namespaces cannot be made, which needs root and the command `ip`; for a rate also `tc`
 */
export function makeTwoHosts({ cables = 1, mbit } = {}) {
  const names = ['a', 'b'].map((letter) => `tccl-bench-${letter}-${process.pid}-${made}`);
  const addresses = [1, 2].map((host) => `10.215.${made % 256}.${host}`);
  made++;
  const [a = '', b = ''] = names;
  const remove = () => {
    process.off('exit', remove);
    for (const name of names) {
      try {
        ip('netns', 'del', name);
      } catch {
        // It does not exist.
      }
    }
  };
  process.once('exit', remove);
  try {
    for (const name of names) ip('netns', 'add', name);
    for (const name of names) ip('-n', name, 'link', 'set', 'lo', 'up');
    for (let number = 0; number < cables; number++) {
      const link = `tccl${number}`;
      ip('link', 'add', link, 'netns', a, 'type', 'veth', 'peer', 'name', link, 'netns', b);
      names.forEach((name, host) => {
        const address = number === 0 ? addresses[host] : `10.${215 + number}.${(made - 1) % 256}.${host + 1}`;
        ip('-n', name, 'address', 'add', `${address}/24`, 'dev', link);
        ip('-n', name, 'link', 'set', link, 'up');
        if (mbit === undefined) return;
        const shape = `tc qdisc add dev ${link} root tbf rate ${mbit}mbit burst 256kb latency 20ms`;
        execFileSync('ip', ['netns', 'exec', name, ...shape.split(' ')], { stdio: 'pipe' });
      });
    }
    for (const name of names) while (!/state UP/.test(ip('-n', name, 'link', 'show', cable)));
  } catch (error) {
    remove();
    throw error;
  }
  return { names, addresses, remove };
}

/**
 * Runs a command for every rank, half of them on each host. The command's arguments follow; `$rank` and `$local` are set.
 *
 * @param {TwoHosts} hosts @param {number} ranks @param {string} environment assignments of each rank, as a shell reads them
 * @param {readonly string[]} command
 * @returns {import('./processes.mjs').Command}
 */
export function onBoth({ names }, ranks, environment, command) {
  const script = `
pids= rank=0 half=$(((${ranks} + 1) / 2))
while [ "$rank" -lt ${ranks} ]; do
  if [ "$rank" -lt "$half" ]; then host=0 name=${names[0]} local=$rank; else host=1 name=${names[1]} local=$((rank - half)); fi
  env ${environment} ip netns exec "$name" "$@" & pids="$pids $!" rank=$((rank + 1))
done
status=0
for pid in $pids; do wait "$pid" || { status=$?; kill $pids 2>/dev/null; }; done
exit $status`;
  return { file: '/bin/sh', args: ['-c', script, 'ranks', ...command] };
}

let ports = 0;

/**
 * Assignments by which tccl's ranks find each other, each time on another port.
 *
 * @param {TwoHosts} hosts @param {number} ranks
 */
export function rankVariables({ addresses }, ranks) {
  return [
    'SLURM_PROCID=$rank',
    `SLURM_NTASKS=${ranks}`,
    'SLURM_LOCALID=$local',
    'SLURM_JOB_ID=1',
    'SLURM_STEP_ID=0',
    'TCCL_HOSTID=bench-$host',
    `TCCL_COMM_ID=${addresses[0]}:${29900 + (ports++ % 90)}`,
  ].join(' ');
}
