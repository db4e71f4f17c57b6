import { describe, expect, it } from 'vitest';
import { fixture, lacks, start } from './cli.js';

const isRoot = process.getuid?.() === 0;
const launchers = [
  { name: 'openmpi', command: 'mpirun.openmpi', args: ['--oversubscribe', ...(isRoot ? ['--allow-run-as-root'] : [])] },
  { name: 'mpich', command: 'mpiexec.mpich', args: [] },
];

describe.each(launchers)('$command', ({ name, command, args }) => {
  const missing = lacks(command);

  it.skipIf(missing)(`tells ranks their place${missing === undefined ? '' : ` (skipped: ${missing})`}`, async () => {
    const { code, stdout } = await start(command, [...args, '-n', '3', process.execPath, fixture('place.mjs')]).finished;
    expect(code).toBe(0);
    const places = stdout.trimEnd().split('\n').map((line) => JSON.parse(line) as { rank: number });
    expect(places.sort((a, b) => a.rank - b.rank)).toEqual([0, 1, 2].map((rank) =>
      ({ launcher: name, rank, nRanks: 3, localRank: rank, nLocalRanks: 3 })));
  });
});
