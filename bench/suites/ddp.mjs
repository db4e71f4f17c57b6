/**
 * A backward pass whose gradients are averaged while it computes, against both one after the other. Two ranks on two hosts
 * made of network namespaces, over a link of 1 Gbit/s (with --quick 200 Mbit/s), so that the exchange is mostly waiting.
 *
 * @module
 */
import { jsonLines, runCommand } from '../lib/processes.mjs';
import { messageOf } from '../lib/suite.mjs';
import { table } from '../lib/table.mjs';
import { cable, makeTwoHosts } from '../lib/two-hosts.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */

export const title = 'gradients averaged during the backward pass';

const timeoutMs = 120_000;
const program = new URL('../ranks/ddp.mjs', import.meta.url).pathname;
const engines = ['inline', 'thread'];
const layers = 16;
let ports = 0;

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  const [bytes, mbit] = options.quick ? [2 ** 18, 200] : [2 ** 20, 1000];
  const rounds = options.quick ? 5 : 9;
  /** @type {import('../lib/two-hosts.mjs').TwoHosts | undefined} */
  let hosts;
  try {
    hosts = makeTwoHosts({ mbit });
    for (const engine of engines) {
      progress(`${layers} layers, engine ${engine}`);
      const args = [program, engine, String(layers), String(bytes), String(rounds)];
      for (const line of await measure(hosts, args)) record({ ddp: true, mbit, ...line });
    }
  } catch (error) {
    note(`ddp: ${messageOf(error)}`);
  } finally {
    hosts?.remove();
  }
}

/**
 * @param {import('../lib/two-hosts.mjs').TwoHosts} hosts
 * @param {readonly string[]} args
 */
async function measure(hosts, args) {
  const port = 29800 + (ports++ % 90);
  const output = await Promise.all(
    hosts.names.map((name, rank) => {
      const env = {
        TCCL_RANK: String(rank),
        TCCL_NRANKS: '2',
        TCCL_COMM_ID: `${hosts.addresses[0] ?? ''}:${port}`,
        TCCL_HOSTID: `bench-${rank}`,
        TCCL_SOCKET_IFNAME: `=${cable}`,
      };
      return runCommand({ file: 'ip', args: ['netns', 'exec', name, process.execPath, ...args] }, { timeoutMs, env });
    }),
  );
  return output.flatMap((text) => jsonLines(text));
}

export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const measured = records.filter(({ ddp }) => ddp === true);
  if (measured.length === 0) return '';
  const rows = engines.flatMap((engine) => {
    const own = measured.filter((line) => line['engine'] === engine);
    const median = (/** @type {string} */ key) =>
      own.map((line) => Number(line[key])).sort((a, b) => a - b)[own.length >> 1] ?? NaN;
    const [communication, computation, after] = [median('communicationMs'), median('computationMs'), median('afterMs')];
    return [
      { awaits: 'none', together: median('togetherMs') },
      { awaits: 'after each layer', together: median('awaitingMs') },
    ].map(({ awaits, together }) => [
      engine,
      awaits,
      ...[computation, communication, after, together].map((ms) => ms.toFixed(0)),
      `${((100 * (after - together)) / Math.min(communication, computation)).toFixed(0)}%`,
    ]);
  });
  return table(
    ['engine', 'awaits', 'computation, ms', 'exchange, ms', 'one after the other, ms', 'together, ms', 'hidden'],
    rows,
  );
}
