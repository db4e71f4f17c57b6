/**
 * Two network namespaces joined by a cable, each like a host of its own, for measurements.
 *
 * @module
 */
import { execFileSync } from 'node:child_process';

const ip = (/** @type {string[]} */ ...args) => execFileSync('ip', args, { stdio: 'pipe' }).toString();
let made = 0;

/** Name of the network interface on both hosts. */
export const cable = 'tccl0';

/**
 * @typedef {object} TwoHosts
 * @property {readonly string[]} names of the namespaces
 * @property {readonly string[]} addresses
 * @property {() => void} remove
 */

/**
 * @returns {TwoHosts}
 * @throws Error where namespaces cannot be made, which needs root and the command `ip`
 */
export function makeTwoHosts() {
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
        // It was not made.
      }
    }
  };
  process.once('exit', remove);
  try {
    for (const name of names) ip('netns', 'add', name);
    ip('link', 'add', cable, 'netns', a, 'type', 'veth', 'peer', 'name', cable, 'netns', b);
    names.forEach((name, host) => {
      ip('-n', name, 'address', 'add', `${addresses[host]}/24`, 'dev', cable);
      for (const link of ['lo', cable]) ip('-n', name, 'link', 'set', link, 'up');
    });
    for (const name of names) while (!/state UP/.test(ip('-n', name, 'link', 'show', cable)));
  } catch (error) {
    remove();
    throw error;
  }
  return { names, addresses, remove };
}
