import { spawnSync } from 'node:child_process';

/**
 * @typedef {{ readonly what: string, readonly command: string }} Problem fault of a round, and the command
 * that repeats it
 */

/** @type {readonly { env: Record<string, string>, options: string[] }[]} */
const ways = [
  { env: {}, options: [] },
  { env: {}, options: ['--promises'] },
  ...['ring', 'tree', 'pat', 'nvls'].map((algorithm) => ({ env: { TCCL_ALGO: algorithm }, options: [] })),
  { env: { TCCL_ALGO: 'ring', TCCL_PROTO: 'LL' }, options: [] },
  { env: { TCCL_SHM_DISABLE: '1' }, options: ['--promises'] },
];
const cli = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const program = new URL('../../test/multi-process/fixtures/random-collectives.mjs', import.meta.url).pathname;

/**
 * Random calls without failures, in the round-th way.
 *
 * @param {number} seed
 * @param {number} round
 * @param {string} calls how many
 * @param {(what: string) => void} tell
 * @returns {Problem | undefined}
 */
export function callsRound(seed, round, calls, tell) {
  const way = ways[round % ways.length] ?? { env: {}, options: [] };
  const ranks = 1 + ((round * 7) % 9);
  const names = Object.entries(way.env).map(([name, value]) => `${name}=${value}`);
  tell(`${ranks} ranks, ${names.join(' ')}`);
  const args = [
    'run',
    '-n',
    String(ranks),
    '--',
    process.execPath,
    program,
    '--seed',
    String(seed),
    '--calls',
    calls,
    ...way.options,
  ];
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, ...args], {
    encoding: 'utf8',
    timeout: 300_000,
    env: { ...process.env, ...way.env },
  });
  if (status === 0) return undefined;
  return {
    what: `${stdout}${stderr}${status === null ? 'not finished after 300 s' : `exit code ${status}`}`,
    command: [...names, 'npx tccl', ...args].join(' '),
  };
}
