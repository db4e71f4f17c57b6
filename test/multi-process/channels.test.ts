import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ringLines, treesLine } from '../../src/planner/graph/merge/print.js';
import { plan } from '../../src/planner/plan/plan.js';
import { machine } from '../../src/planner/topology/catalogue/machines.js';
import { writeXml } from '../../src/planner/topology/xml/write.js';
import { startFixture } from './fixtures/processes.js';

/** Its rings differ. */
const board = machine('hgx-a100-4');
const planned = plan({ hosts: [{ machine: board, count: 1 }] });
const { nRanks } = planned.nodes;

describe('ranks of one host with TCCL_TOPO_FILE', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tccl-channels-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'hgx-a100-4.xml');
  writeFileSync(file, writeXml(board));
  let port = 29_811;

  const run = async (env: Record<string, string>) => {
    const root = `127.0.0.1:${port++}`;
    const started = Array.from({ length: nRanks }, (_, rank) =>
      startFixture('channels.mjs', ['all', '1', '1000', '300000'], {
        TCCL_RANK: String(rank),
        TCCL_NRANKS: String(nRanks),
        TCCL_COMM_ID: root,
        TCCL_TOPO_FILE: file,
        TCCL_DEBUG: 'INFO',
        TCCL_DEBUG_FILE: join(folder, `${port}.${rank}.log`),
        ...env,
      }),
    );
    const ended = await Promise.all(started.map((fixture) => fixture.ended));
    const logs = ended.map((_, rank) => {
      const log = join(folder, `${port}.${rank}.log`);
      const lines = existsSync(log) ? readFileSync(log, 'utf8').split('\n') : [];
      return lines.map((line) => line.replace(/^.*TCCL INFO /, ''));
    });
    return { ended, logs };
  };

  it.each(['ring', 'tree'])('obey its plan where they use connections: %s', async (algorithm) => {
    const { ended, logs } = await run({ TCCL_ALGO: algorithm });
    for (const { code, stderr } of ended) expect([code, stderr]).toEqual([0, '']);
    const rings = ringLines(planned, { whole: true });
    expect(new Set(rings.map((line) => line.replace(/^.* : /, ''))).size).toBeGreaterThan(2);
    expect(logs[0]!.filter((line) => /^Channel \d+\/\d+ : /.test(line)).slice(0, rings.length)).toEqual(rings);
    logs.forEach((log, rank) => expect(log).toContain(treesLine(planned, rank, { whole: true })));
  });

  it('read no file for calls in shared memory', async () => {
    const { ended, logs } = await run({ TCCL_TOPO_FILE: join(folder, 'missing.xml') });
    for (const { code, stderr } of ended) expect([code, stderr]).toEqual([0, '']);
    expect(logs.flat().filter((line) => /^Channel/.test(line))).toEqual([]);
  });

  // Several times: an abort of one rank could overtake what rank 0 tells the others.
  it.each([1, 2, 3, 4])('name a file that is missing (%i)', async () => {
    const { ended } = await run({ TCCL_TOPO_FILE: join(folder, 'missing.xml'), TCCL_ALGO: 'ring' });
    for (const { code, lines } of ended) expect([code, lines[0]!['code']]).toEqual([3, 'FILE']);
  });
});
