import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { defaultParameters } from '../../../../src/planner/parameters.js';
import { plan } from '../../../../src/planner/plan/plan.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import { choose } from '../../../../src/planner/tuning/choose.js';
import { flips } from '../../../../src/planner/tuning/flips.js';
import { algorithms, protocols } from '../../../../src/planner/tuning/names.js';
import { describeReason, type Reason } from '../../../../src/planner/tuning/reasons.js';
import { tune } from '../../../../src/planner/tuning/tune.js';

const source = (path: string) => readFileSync(new URL(`../../../../${path}`, import.meta.url), 'utf8');
const page = source('docs/notes/tuning.md');
const tuning = tune(plan({ hosts: [{ machine: machine('dgx-h100'), count: 2 }] }), defaultParameters);

/** Rows of the table under these titles. */
function rowsUnder(titles: string): string[] {
  const lines = page.split('\n');
  const start = lines.indexOf(titles) + 2;
  return lines.slice(
    start,
    lines.findIndex((line, index) => index > start && line === ''),
  );
}

describe('docs/notes/tuning.md, two DGX H100, AllReduce', () => {
  it('the model', () => {
    expect(rowsUnder('| | bandwidth, GB/s | latency, µs |')).toEqual(
      algorithms.flatMap((algorithm) =>
        protocols.flatMap((protocol) => {
          const { bandwidthGBps, latencyUs } = tuning.model.AllReduce[algorithm][protocol];
          return bandwidthGBps === 0
            ? []
            : [`| ${algorithm} ${protocol} | ${bandwidthGBps.toFixed(1)} | ${latencyUs.toFixed(1)} |`];
        }),
      ),
    );
  });

  it('sizes at which the choice changes', () => {
    const found = flips(tuning, 'AllReduce', 8, 2 ** 33);
    expect(rowsUnder('| from size | |')).toEqual(
      [{ bytes: 8, to: found[0]!.from }, ...found].map(
        ({ bytes, to }) => `| ${bytes.toLocaleString('en-US')} | ${to!.algorithm} ${to!.protocol} |`,
      ),
    );
  });

  it('choices', () => {
    const sizes = { '1 KiB': 2 ** 10, '32 KiB': 2 ** 15, '1 MiB': 2 ** 20, '16 MiB': 2 ** 24, '1 GiB': 2 ** 30 };
    expect(rowsUnder('| size | | µs | busbw, GB/s | channels | threads | chunk |')).toEqual(
      Object.entries(sizes).map(([name, bytes]) => {
        const { algorithm, protocol, timeUs, busGBps, nChannels, nThreads, chunkBytes } = choose(tuning, 'AllReduce', bytes)!;
        return `| ${name} | ${algorithm} ${protocol} | ${timeUs.toFixed(1)} | ${busGBps.toFixed(1)} | ${nChannels} | ${nThreads} | ${chunkBytes} |`;
      }),
    );
  });

  it('every reason has a row', () => {
    const kinds = [...source('src/planner/tuning/reasons.ts').matchAll(/readonly why: '([\w-]+)'/g)].map(
      ([, why]) => why as Reason['why'],
    );
    expect(kinds.length).toBeGreaterThan(20);
    for (const why of kinds) if (why !== 'one-rank') expect(page).toContain(`\`${why}\``);
    expect(describeReason({ why: 'one-rank' })).toContain('one rank');
  });
});
