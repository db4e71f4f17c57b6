/**
 * Large all-reduces between two hosts made of network namespaces, over one NIC of 1 Gbit/s and over two, in turn. Each host
 * must send all data once, so the size by the time is what a link carried; broadcasts and reduces (`--collectives`) load it in
 * one direction only. Plain sockets over one NIC are the ceiling. With --quick links have 200 Mbit/s, for a machine that does
 * other work.
 *
 * @module
 */
import { runCommand, jsonLines } from '../lib/processes.mjs';
import { messageOf } from '../lib/suite.mjs';
import { table } from '../lib/table.mjs';
import { cable, makeTwoHosts } from '../lib/two-hosts.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */

export const title = 'one NIC between two hosts, and two';

const timeoutMs = 120_000;
const cli = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const nicsUsed = [
  { nics: 1, interfaces: `=${cable}` },
  { nics: 2, interfaces: 'tccl' },
];
let ports = 0;

/**
 * Collectives, and if they carry data in both directions. All carry the data over the link once, but for all-to-all: each rank
 * sends half of its data there.
 */
const directions = new Map([
  ['all_reduce', 'both'],
  ['sendrecv', 'both'],
  ['alltoall', 'both'],
  ['broadcast', 'one'],
  ['reduce', 'one'],
]);
const carried = (/** @type {string} */ collective, /** @type {number} */ ranks) => (collective === 'alltoall' ? ranks / 4 : 1);
const socketProgram = new URL('../ranks/wire.mjs', import.meta.url).pathname;
const socketSeconds = 4;

/** MB/s of plain sockets over the first NIC. @param {import('../lib/two-hosts.mjs').TwoHosts} hosts @param {string} ways */
async function plainSockets({ names, addresses }, ways) {
  const port = String(29600 + (ports++ % 90));
  const [output = ''] = await Promise.all(
    ['listen', addresses[0] ?? ''].map((where, host) => {
      const program = [process.execPath, socketProgram, where, port, ways, String(socketSeconds)];
      return runCommand({ file: 'ip', args: ['netns', 'exec', names[host] ?? '', ...program] }, { timeoutMs });
    }),
  );
  return Number(jsonLines(output)[0]?.['MBps']);
}

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  const [bytes, mbit] = options.quick ? [2 ** 23, 200] : [2 ** 26, 1000];
  /** @type {import('../lib/two-hosts.mjs').TwoHosts | undefined} */
  let hosts;
  try {
    hosts = makeTwoHosts({ cables: 2, mbit });
    for (let round = 0; round < options.rounds; round++) {
      for (const [collective, ways] of directions) {
        if (!options.collectives.includes(collective)) continue;
        progress(`round ${round + 1}/${options.rounds}: plain sockets, ${ways === 'one' ? 'one direction' : 'both directions'}`);
        record({ rails: true, collective, mbit, socketsMBps: await plainSockets(hosts, ways) });
        for (const ranks of options.ranks.filter((count) => count > 1)) {
          for (const way of nicsUsed) {
            progress(`round ${round + 1}/${options.rounds}: ${collective} of ${ranks} ranks, ${way.nics} of 2 NICs`);
            for (const GBps of await measure(hosts, collective, ranks, bytes, way.interfaces))
              record({ rails: true, collective, nics: way.nics, ranks, bytes, mbit, algbw_GBps: GBps });
          }
        }
      }
    }
  } catch (error) {
    note(`rails: ${messageOf(error)}`);
  } finally {
    hosts?.remove();
  }
}

/**
 * Ranks of `tccl perf`, half of them on each host. Returns the GB/s of each.
 *
 * @param {import('../lib/two-hosts.mjs').TwoHosts} hosts @param {string} collective @param {number} ranks @param {number} bytes
 * @param {string} interfaces
 * @returns {Promise<number[]>}
 */
async function measure({ names, addresses }, collective, ranks, bytes, interfaces) {
  const port = 29700 + (ports++ % 90);
  const output = await Promise.all(
    Array.from({ length: ranks }, (_, rank) => {
      const host = rank < ranks / 2 ? 0 : 1;
      const args = ['netns', 'exec', names[host] ?? '', process.execPath, cli, 'perf', collective];
      const sizes = ['-b', String(bytes), '-e', String(bytes), '-n', '5', '-w', '1', '--json'];
      const env = {
        TCCL_RANK: String(rank),
        TCCL_NRANKS: String(ranks),
        TCCL_HOSTID: `bench-${host}`,
        TCCL_COMM_ID: `${addresses[0] ?? ''}:${port}`,
        TCCL_SOCKET_IFNAME: interfaces,
      };
      return runCommand({ file: 'ip', args: [...args, ...sizes] }, { timeoutMs, env });
    }),
  );
  return output
    .flatMap((text) => jsonLines(text))
    .map((line) => line['algbw_GBps'])
    .filter((value) => typeof value === 'number');
}

export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const measured = records.filter(({ rails }) => rails === true).map((line) => ({ collective: 'all_reduce', ...line }));
  const collectives = [...new Set(measured.map(({ collective }) => collective))];
  return collectives
    .map((name) => `${name}\n\n${tableOf(measured.filter(({ collective }) => collective === name))}`)
    .join('\n\n');
}

/** @param {readonly Record<string, any>[]} lines of a collective */
function tableOf(lines) {
  const most = (/** @type {(line: Record<string, any>) => number | undefined} */ of) =>
    Math.max(...lines.flatMap((line) => of(line) ?? []));
  const best = (/** @type {number} */ ranks, /** @type {number} */ nics) =>
    carried(lines[0]?.['collective'], ranks) *
    1000 *
    most((line) => (line['ranks'] === ranks && line['nics'] === nics ? line['algbw_GBps'] : undefined));
  const sockets = most((line) => line['socketsMBps']);
  const link = (lines[0]?.['mbit'] ?? 0) / 8;
  const percent = (/** @type {number} */ value) => (Number.isFinite(value) ? `${(value * 100).toFixed(0)} %` : '');
  const ranksOf = [...new Set(lines.flatMap(({ ranks }) => ranks ?? []))];
  const rows = ranksOf.map((ranks) => [
    String(ranks),
    ...nicsUsed.map(({ nics }) => `${best(ranks, nics).toFixed(0)} MB/s`),
    percent(best(ranks, 1) / link),
    percent(sockets / link),
    percent(best(ranks, 1) / sockets),
    (best(ranks, 2) / best(ranks, 1)).toFixed(2),
  ]);
  const titles = ['1 NIC of its link', 'plain sockets of it', '1 NIC of plain sockets', '2 NICs to 1'];
  return table(['ranks', '1 NIC', '2 NICs', ...titles], rows);
}
