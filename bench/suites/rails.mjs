/**
 * Large all-reduces between two hosts made of network namespaces, over one NIC of 1 Gbit/s and over two, in turn. Each host
 * must send all data once, so the size by the time is what a link carried. With --quick links have 200 Mbit/s, for a machine
 * that does other work.
 *
 * @module
 */
import { runCommand, jsonLines } from '../lib/processes.mjs';
import { table } from '../lib/table.mjs';
import { cable, makeTwoHosts } from '../lib/two-hosts.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */

export const title = 'one NIC between two hosts, and two';

const timeoutMs = 120_000;
const cli = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const ways = [
  { nics: 1, interfaces: `=${cable}` },
  { nics: 2, interfaces: 'tccl' },
];
let ports = 0;

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  const [bytes, mbit] = options.quick ? [2 ** 23, 200] : [2 ** 26, 1000];
  /** @type {import('../lib/two-hosts.mjs').TwoHosts | undefined} */
  let hosts;
  try {
    hosts = makeTwoHosts({ cables: 2, mbit });
    for (let round = 0; round < options.rounds; round++) {
      for (const ranks of options.ranks.filter((count) => count > 1)) {
        for (const { nics, interfaces } of ways) {
          progress(`round ${round + 1}/${options.rounds}: ${ranks} ranks, ${nics} of 2 NICs`);
          const port = 29700 + (ports++ % 90);
          const output = await Promise.all(
            Array.from({ length: ranks }, (_, rank) => {
              const host = rank < ranks / 2 ? 0 : 1;
              const args = ['netns', 'exec', hosts?.names[host] ?? '', process.execPath, cli, 'perf', 'all_reduce'];
              const sizes = ['-b', String(bytes), '-e', String(bytes), '-n', '5', '-w', '1', '--json'];
              const env = {
                TCCL_RANK: String(rank),
                TCCL_NRANKS: String(ranks),
                TCCL_HOSTID: `bench-${host}`,
                TCCL_COMM_ID: `${hosts?.addresses[0] ?? ''}:${port}`,
                TCCL_SOCKET_IFNAME: interfaces,
              };
              return runCommand({ file: 'ip', args: [...args, ...sizes] }, { timeoutMs, env });
            }),
          );
          const measured = output.flatMap((text) => jsonLines(text)).filter((line) => typeof line['algbw_GBps'] === 'number');
          for (const line of measured) record({ rails: true, nics, ranks, bytes, mbit, algbw_GBps: line['algbw_GBps'] });
        }
      }
    }
  } catch (error) {
    note(`rails: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    hosts?.remove();
  }
}

export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const measured = records.filter(({ rails }) => rails === true);
  if (measured.length === 0) return '';
  const best = (/** @type {number} */ ranks, /** @type {number} */ nics) =>
    Math.max(...measured.filter((line) => line['ranks'] === ranks && line['nics'] === nics).map((line) => line['algbw_GBps']));
  const linkGBps = (measured[0]?.['mbit'] ?? 0) / 8000;
  const rows = [...new Set(measured.map(({ ranks }) => ranks))].map((ranks) => [
    String(ranks),
    ...ways.map(({ nics }) => `${(best(ranks, nics) * 1000).toFixed(0)} MB/s`),
    `${((best(ranks, 1) / linkGBps) * 100).toFixed(0)} %`,
    (best(ranks, 2) / best(ranks, 1)).toFixed(2),
  ]);
  return table(['ranks', '1 NIC', '2 NICs', '1 NIC of its link', '2 NICs to 1'], rows);
}
