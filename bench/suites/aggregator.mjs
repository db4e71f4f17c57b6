/**
 * All-reduces of three hosts of two ranks, each with a NIC of 200 Mbit/s: hierarchical beside collnet, whose aggregator is on a
 * fourth host with a NIC as fast, or three times as fast.
 *
 * @module
 */
import { execFileSync, spawn } from 'node:child_process';
import { jsonLines, runCommand } from '../lib/processes.mjs';
import { messageOf } from '../lib/suite.mjs';
import { table } from '../lib/table.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */

export const title = 'all-reduces in an aggregator, beside hierarchical';

const timeoutMs = 120_000;
const cli = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const hosts = 3;
const ranksOfHost = 2;
const mbit = 200;
/** @type {readonly { algorithm: string, aggregatorMbit: number }[]} */
const ways = [
  { algorithm: 'hierarchical', aggregatorMbit: mbit },
  { algorithm: 'collnet', aggregatorMbit: mbit },
  { algorithm: 'collnet', aggregatorMbit: 3 * mbit },
];
const nameOf = (/** @type {Record<string, any>} */ { algorithm, aggregatorMbit }) =>
  algorithm === 'collnet' ? `${algorithm}, aggregator at ${aggregatorMbit} Mbit/s` : algorithm;
let ports = 0;

const ip = (/** @type {string[]} */ ...args) => execFileSync('ip', args, { stdio: 'pipe' }).toString();
const addressOf = (/** @type {number} */ host) => `10.216.0.${host + 1}`;

/** Hosts at one switch; the last one has the aggregator. Returns their namespaces. @param {number} aggregatorMbit */
function makeStar(aggregatorMbit) {
  const names = Array.from({ length: hosts + 1 }, (_, host) => `tccl-bench-star-${process.pid}-${host}`);
  const hub = `tccl-bench-star-${process.pid}-hub`;
  const remove = () => {
    for (const name of [...names, hub]) ip('netns', 'del', name);
  };
  for (const name of [...names, hub]) ip('netns', 'add', name);
  try {
    ip('-n', hub, 'link', 'add', 'switch', 'type', 'bridge');
    ip('-n', hub, 'link', 'set', 'switch', 'up');
    for (const [host, name] of names.entries()) {
      ip('-n', name, 'link', 'set', 'lo', 'up');
      ip('link', 'add', 'eth0', 'netns', name, 'type', 'veth', 'peer', 'name', `port${host}`, 'netns', hub);
      ip('-n', hub, 'link', 'set', `port${host}`, 'master', 'switch', 'up');
      ip('-n', name, 'address', 'add', `${addressOf(host)}/24`, 'dev', 'eth0');
      ip('-n', name, 'link', 'set', 'eth0', 'up');
      const rate = host === hosts ? aggregatorMbit : mbit;
      for (const [where, device] of [
        [name, 'eth0'],
        [hub, `port${host}`],
      ])
        // prettier-ignore
        ip('netns', 'exec', where ?? '', ...`tc qdisc add dev ${device} root tbf rate ${rate}mbit burst 256kb latency 20ms`.split(' '));
    }
    for (const name of names) while (!/state UP/.test(ip('-n', name, 'link', 'show', 'eth0')));
  } catch (error) {
    remove();
    throw error;
  }
  return { names, remove };
}

/** Lines of `tccl perf`. @param {readonly string[]} names @param {string} algorithm @param {string} aggregator */
async function measure(names, algorithm, aggregator) {
  const port = 29500 + (ports++ % 90);
  const perf = [process.execPath, cli, 'perf', 'all_reduce', '-b', '1K', '-e', '4M', '-f', '64', '-n', '4', '-w', '1', '--json'];
  const output = await Promise.all(
    Array.from({ length: hosts * ranksOfHost }, (_, rank) => {
      const host = Math.floor(rank / ranksOfHost);
      const env = {
        TCCL_RANK: String(rank),
        TCCL_NRANKS: String(hosts * ranksOfHost),
        TCCL_HOSTID: `bench-${host}`,
        TCCL_COMM_ID: `${addressOf(0)}:${port}`,
        TCCL_ALGO: algorithm,
        TCCL_AGGREGATOR: aggregator,
      };
      return runCommand({ file: 'ip', args: ['netns', 'exec', names[host] ?? '', ...perf] }, { timeoutMs, env });
    }),
  );
  return output.flatMap((text) => jsonLines(text)).filter((line) => typeof line['time_us'] === 'number');
}

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  try {
    for (let round = 0; round < options.rounds; round++) {
      for (const way of ways) {
        progress(`round ${round + 1}/${options.rounds}: ${nameOf(way)}`);
        const { names, remove } = makeStar(way.aggregatorMbit);
        const args = ['netns', 'exec', names[hosts] ?? '', process.execPath, cli, 'aggregator'];
        const aggregator = spawn('ip', args, { stdio: ['ignore', 'pipe', 'ignore'] });
        try {
          /** @type {string} */
          const id = await new Promise((resolve, reject) => {
            aggregator.stdout.once('data', (text) => resolve(String(text).trim()));
            aggregator.once('close', () => reject(new Error('the aggregator ended')));
          });
          for (const line of await measure(names, way.algorithm, way.algorithm === 'collnet' ? id : ''))
            record({ star: true, ...way, bytes: line['bytes'], time_us: line['time_us'] });
        } finally {
          aggregator.kill();
          remove();
        }
      }
    }
  } catch (error) {
    note(`aggregator: ${messageOf(error)}`);
  }
}

/** Medians in milliseconds. */
export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const measured = records.filter(({ star }) => star === true);
  const sizes = [...new Set(measured.map(({ bytes }) => Number(bytes)))].sort((a, b) => a - b);
  const median = (/** @type {string} */ name, /** @type {number} */ size) => {
    const times = measured
      .filter((line) => nameOf(line) === name && line['bytes'] === size)
      .map(({ time_us: time }) => Number(time));
    times.sort((a, b) => a - b);
    return ((times[Math.floor(times.length / 2)] ?? NaN) / 1000).toFixed(1);
  };
  const names = [...new Set(measured.map(nameOf))];
  return table(
    ['ms', ...sizes.map((size) => `${size} B`)],
    names.map((name) => [name, ...sizes.map((size) => median(name, size))]),
  );
}
