/**
 * All-reduces between two hosts made of network namespaces, by the number of sockets of a connection: over a cable where each TCP
 * connection gets 200 Mbit/s, as clouds limit them, and over a cable without limits.
 *
 * @module
 */
import { execFileSync } from 'node:child_process';
import { jsonLines, runCommand } from '../lib/processes.mjs';
import { messageOf } from '../lib/suite.mjs';
import { formatUs, table } from '../lib/table.mjs';
import { cable, makeTwoHosts, onBoth, rankVariables } from '../lib/two-hosts.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */
/** @typedef {import('../lib/two-hosts.mjs').TwoHosts} TwoHosts */

export const title = 'several sockets a connection';

const cli = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const counts = [1, 2, 4, 8];
const FLOW_MBIT = 200;

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  for (const limited of [true, false]) {
    /** @type {TwoHosts | undefined} */
    let hosts;
    try {
      hosts = makeTwoHosts();
      if (limited) limitFlows(hosts);
      const [from, to] = limited ? ['8M', '8M'] : ['8', '16M'];
      for (let round = 0; round < options.rounds; round++) {
        for (const sockets of counts) {
          progress(`round ${round + 1}/${options.rounds}: ${sockets} sockets, ${limited ? 'limited' : 'unlimited'} flows`);
          const words = [
            process.execPath,
            cli,
            'perf',
            'all_reduce',
            '-b',
            from,
            '-e',
            to,
            '-f',
            '2097152',
            '-n',
            '10',
            '--json',
          ];
          const variables = `${rankVariables(hosts, 2)} TCCL_NSOCKS_PER_CONNECTION=${sockets}`;
          const output = await runCommand(onBoth(hosts, 2, variables, words), { timeoutMs: 120_000 });
          for (const { bytes, time_us: timeUs } of jsonLines(output))
            if (timeUs !== undefined) record({ flows: true, limited, sockets, bytes, timeUs });
        }
      }
    } catch (error) {
      note(`flows: ${messageOf(error)}`);
    } finally {
      hosts?.remove();
    }
  }
}

/**
 * Limits connections by classes of their ports: connections share a class only if three bits of both ports are equal.
 *
 * @param {TwoHosts} hosts
 */
function limitFlows({ names }) {
  for (const name of names) {
    const tc = (/** @type {string} */ words) =>
      execFileSync('ip', ['netns', 'exec', name, 'tc', ...words.split(' ')], { stdio: 'pipe' });
    tc(`qdisc add dev ${cable} root handle 1: htb`);
    for (let flow = 0; flow < 64; flow++) {
      const id = `1:${(16 + flow).toString(16)}`;
      tc(`class add dev ${cable} parent 1: classid ${id} htb rate ${FLOW_MBIT}mbit burst 64k quantum 60000`);
      const ports = `match ip sport ${(flow & 7) * 2} 0x000e match ip dport ${(flow >> 3) * 2} 0x000e`;
      tc(`filter add dev ${cable} parent 1: protocol ip prio 1 u32 ${ports} flowid ${id}`);
    }
  }
}

/** The shortest time of each size, and its ratio to that with one socket. */
export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const measured = records.filter(({ flows }) => flows === true);
  const least = (/** @type {boolean} */ limited, /** @type {number} */ bytes, /** @type {number} */ sockets) =>
    Math.min(
      ...measured
        .filter((line) => line['limited'] === limited && line['bytes'] === bytes && line['sockets'] === sockets)
        .map(({ timeUs }) => timeUs),
    );
  const rows = [true, false].flatMap((limited) =>
    [...new Set(measured.filter((line) => line['limited'] === limited).map(({ bytes }) => bytes))].map((bytes) => [
      limited ? `${FLOW_MBIT} Mbit/s` : 'none',
      String(bytes),
      ...counts.flatMap((sockets) => {
        const us = least(limited, bytes, sockets);
        return [`${formatUs(us)} (${(us / least(limited, bytes, 1)).toFixed(2)})`];
      }),
    ]),
  );
  return table(['limit of a flow', 'bytes', ...counts.map((count) => `${count} sockets, µs`)], rows);
}
