import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { tccl } from '../multi-process/cli.js';
import { madeTopology } from '../unit/runtime/channels/made-topology.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-plan-channels-'));
afterAll(() => rmSync(folder, { recursive: true }));

function write(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

const text = madeTopology([{ devs: [0, 1], nics: { eth0: 10_000 } }]);
const alike = write('alike.xml', text);
/** The ranks of two hosts dealt in turn. */
const [even = '', odd = ''] = [0, 1].map((host) =>
  write(
    `dealt${host}.xml`,
    text.replace(/rank="(\d)"/g, (_, rank) => `rank="${2 * Number(rank) + host}"`),
  ),
);

async function linesOf(...args: string[]): Promise<string[]> {
  const { stdout, stderr, code } = await tccl(['plan', ...args]);
  expect([stderr, code]).toEqual(['', 0]);
  return stdout.trimEnd().split('\n');
}

describe('tccl plan --topology', () => {
  it('prints channels, trees and connections in the format of the log', async () => {
    const lines = await linesOf('--topology', alike, '--nodes', '2');
    expect(lines[0]).toMatch(/^Pattern 4, /);
    expect(lines).toEqual(
      expect.arrayContaining([
        'Channel 00/02 : 0 1 2 3',
        'Channel 01/02 : 0 1 2 3',
        expect.stringMatching(/^Trees \[0\] .*->0->-1 \[1\] .*->0->[23]$/),
        'Channel 00/0 : 0[0] -> 1[1] via SHM',
        'Channel 00/0 : 1[1] -> 2[0] via NET/Socket/0 (eth0)',
      ]),
    );
    expect(await linesOf('--topology', alike, alike)).toEqual(lines);
  });

  it('takes the ranks from the files, in any order', async () => {
    const lines = await linesOf('--topology', odd, even);
    expect(lines).toContain('Channel 00/02 : 0 2 1 3');
    expect(lines).toContain('Channel 00/0 : 2[1] -> 1[0] via NET/Socket/0 (eth0)');
    const value = JSON.parse((await linesOf('--topology', even, odd, '--json')).join('\n')) as object;
    expect(value).toMatchObject({
      format: 'tccl channels',
      nRanks: 4,
      hosts: [[0, 2], [1, 3]], // prettier-ignore
      rings: [{ order: [0, 2, 1, 3], nics: new Array(4).fill({ dev: 0, name: 'eth0' }) }],
      ringOfChannel: [0, 0],
    });
  });

  it('takes channels from graph files beside the topologies', async () => {
    const { stdout } = await tccl(['graph', alike, '--nodes', '2', '--graph-xml']);
    // Reversed: channels that the search would not find.
    const turned = stdout.replace(/(<gpu [^>]*>)(\s*)(<gpu [^>]*>)/g, '$3$2$1');
    expect(turned).not.toBe(stdout);
    const graph = write('graph.xml', turned);
    expect(await linesOf('--topology', alike, graph, '--nodes', '2')).toContain('Channel 00/02 : 0 3 2 1');
  });

  it.each([
    [[alike], /^tccl: one host alone has no planned channels/],
    [[alike, even, '--nodes', '2'], /^tccl: --nodes goes with one topology/],
    [[alike, even, '--predict'], /^tccl: --predict does not go with --topology/],
    [[alike, even, '--follow-nccl'], /^tccl: --follow-nccl does not go with --topology/],
    [
      [join(folder, 'missing.xml'), alike],
      /^tccl: .*missing\.xml: there is no such file: give what TCCL_TOPO_DUMP_FILE wrote, one file for each host$/m,
    ],
    [[write('unranked.xml', text.replace('rank="1"', '')), alike], /^tccl: .*unranked\.xml:1: <gpu> has no rank/],
    [[write('none.xml', madeTopology([{ devs: [] }])), alike], /^tccl: .*none\.xml: has no <gpu>/],
    [[alike, even, write('one.xml', '<graphs version="1"/>')], /^tccl: --topology got 2 topologies and 1 files? of graphs/],
  ])('refuses %j', async (args, message) => {
    const { code, stdout, stderr } = await tccl(['plan', '--topology', ...args]);
    expect(code).not.toBe(0);
    expect(stdout).toBe('');
    expect(stderr).toMatch(message);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
  });

  it('refuses a cluster beside it', async () => {
    const { code, stderr } = await tccl(['plan', 'dgx-h100', '--topology', alike, odd]);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^tccl: the cluster dgx-h100 does not go with --topology/)]);
  });
});
