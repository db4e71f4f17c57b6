/**
 * Makes src/runtime/algorithms/default-profile.ts of a profile that `tccl tune` wrote:
 *
 *     npx tccl tune -e 64M -o profile.json && node scripts/default-profile.mjs profile.json
 *
 * This measures 2, 4 and 8 ranks in steps of eight from 8 bytes to 16 MiB, and at 64 MiB. The current file has the sizes
 * of the bench instead: 8, 1K, 32K, 1M, 16M, 64M.
 *
 * @module
 */
import { readFileSync, writeFileSync } from 'node:fs';

const profile = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'));
const rounded = (/** @type {[number, number][]} */ points) =>
  `[${points.map(([bytes, us]) => `[${bytes}, ${Number(us.toPrecision(3))}]`).join(', ')}]`;
const lines = [
  "import type { Profile } from './profile.js';",
  '',
  '/** Times of the algorithms on one machine, for predictions before `tccl tune` was run. Made by scripts/default-profile.mjs. */',
  'export const defaultProfile: Profile = {',
  "  format: 'tccl profile',",
  '  formatVersion: 1,',
  `  machine: '${profile.machine}',`,
  `  cores: ${profile.cores},`,
  '  times: {',
  ...Object.entries(profile.times).flatMap(([ranks, kinds]) => [
    `    ${ranks}: {`,
    ...Object.entries(kinds).flatMap(([kind, byAlgorithm]) => [
      `      ${kind}: {`,
      ...Object.entries(byAlgorithm).map(([algorithm, points]) => `        ${algorithm}: ${rounded(points)},`),
      '      },',
    ]),
    '    },',
  ]),
  '  },',
  '};',
  '',
];
writeFileSync(new URL('../src/runtime/algorithms/default-profile.ts', import.meta.url), lines.join('\n'));
