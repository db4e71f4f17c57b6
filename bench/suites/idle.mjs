/**
 * Share of a core that a rank takes while it waits for a straggler, and the delay until it continues.
 *
 * @module
 */
import { jsonLines, runCommand } from '../lib/processes.mjs';
import { messageOf } from '../lib/suite.mjs';
import { formatUs, table } from '../lib/table.mjs';
import { makeTwoHosts, onBoth, rankVariables } from '../lib/two-hosts.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */
/** @typedef {import('../lib/processes.mjs').Command} Command */
/** @typedef {import('../lib/two-hosts.mjs').TwoHosts} TwoHosts */

export const title = 'waiting for a late rank';

const cli = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const program = new URL('../ranks/idle.mjs', import.meta.url).pathname;

/**
 * Ranks of one host, in shared memory and over sockets, and of two hosts, which watch each other.
 *
 * @type {readonly { transport: string, start(ranks: number, words: string[], hosts: () => TwoHosts): Command }[]}
 */
const transports = [
  { transport: 'shared', start: (ranks, words) => ({ ...onThisHost(ranks, words), env: {} }) },
  { transport: 'sockets', start: (ranks, words) => ({ ...onThisHost(ranks, words), env: { TCCL_SHM_DISABLE: '1' } }) },
  { transport: 'hosts', start: (ranks, words, hosts) => onBoth(hosts(), ranks, rankVariables(hosts(), ranks), words) },
];

/** @param {number} ranks @param {string[]} words the command */
function onThisHost(ranks, words) {
  return { file: process.execPath, args: [cli, 'run', '-n', String(ranks), '--no-prefix', '--', ...words] };
}

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  const lateMs = options.quick ? 3000 : 10_000;
  /** @type {TwoHosts | undefined} */
  let made;
  const hosts = () => (made ??= makeTwoHosts());
  for (const ranks of options.ranks.filter((count) => count > 1)) {
    for (const { transport, start } of transports) {
      progress(`${ranks} ranks wait for ${lateMs / 1000} s: ${transport}`);
      try {
        // With V8's collection of garbage in idle processes, which comes in one of the waits, and without it.
        for (const flags of [[], ['--no-memory-reducer']]) {
          const command = start(ranks, [process.execPath, ...flags, program, transport, String(lateMs)], hosts);
          const output = await runCommand(command, { timeoutMs: 60_000 + 10 * lateMs });
          for (const line of jsonLines(output)) record({ ...line, collects: flags.length === 0 });
        }
      } catch (error) {
        note(`waiting, ${ranks} ranks, ${transport}: ${messageOf(error)}`);
      }
    }
  }
  made?.remove();
}

/** The rank that takes most of a core, and the median delay until ranks continue. */
export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const measured = records.filter(({ idle }) => idle !== undefined);
  if (measured.length === 0) return '';
  const waits = [...new Set(measured.map(({ idle }) => String(idle)))];
  const places = [...new Set(measured.map(({ transport, ranks }) => `${transport} ${ranks}`))];
  const rows = waits.flatMap((wait) =>
    places.flatMap((place) => {
      const here = measured.filter(({ idle, transport, ranks }) => idle === wait && `${transport} ${ranks}` === place);
      if (here.length === 0) return [];
      const [transport = '', ranks = ''] = place.split(' ');
      const percent = (/** @type {boolean} */ collects) =>
        Math.max(...here.flatMap((line) => (line['collects'] === collects ? [line['cpuPercent']] : []))).toFixed(2);
      const late = here.flatMap(({ lateUs }) => lateUs ?? []).sort((a, b) => a - b);
      return [
        [
          wait,
          transport,
          ranks,
          (Math.max(...here.map(({ waitedMs }) => waitedMs)) / 1000).toFixed(1),
          percent(false),
          percent(true),
          late.length === 0 ? '-' : formatUs(late[late.length >> 1]),
        ],
      ];
    }),
  );
  return table(['wait', 'transport', 'ranks', 'waited, s', 'of a core, %', "with V8's collection, %", 'goes on after, µs'], rows);
}
