import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkLog } from '../../../../src/planner/log/verdict/check-log.js';
import { NcclLogReader } from '../../../../src/planner/log/job/read-log.js';
import { interleaved, madeLog, planMachines, randomFrom, releases } from './made-log.js';
import { findingsOf } from './read.js';
import { runs } from '../../../runs.js';

const machines = new Map(
  [
    ['dgx-h100', 2],
    ['dgx-1v', 1],
    ['dgx-a100', 3],
    ['dgx-h100', 16],
  ].map(([name, count]) => [`${String(count)} x ${String(name)}`, planMachines(String(name), Number(count))] as const),
);
const names = [...machines.keys()];
const seeds = fc.integer({ min: 0, max: 2 ** 31 });
const releaseOf = (random: () => number) => releases[Math.floor(random() * releases.length)]!;

/** Some lines lose their ends, as collectors and full disks do it. */
function truncated(lines: readonly string[], part: number, random: () => number): string[] {
  return lines.map((line) => (random() < part ? line.slice(0, 1 + Math.floor(random() * line.length)) : line));
}

/** Pairs of lines written at once, each in two pieces: what `write` without a lock does. */
function torn(lines: readonly string[], part: number, random: () => number): string[] {
  const text: string[] = [];
  for (let index = 0; index < lines.length; index++) {
    const [first = '', second] = [lines[index], lines[index + 1]];
    if (second === undefined || random() >= part) {
      text.push(`${first}\n`);
      continue;
    }
    index++;
    const halves = [first, second].map((line) => {
      const at = Math.floor(random() * (line.length + 1));
      return [line.slice(0, at), `${line.slice(at)}\n`];
    });
    while (halves.some((pieces) => pieces.length > 0)) {
      const open = halves.filter((pieces) => pieces.length > 0);
      text.push(open[Math.floor(random() * open.length)]!.shift()!);
    }
  }
  return text.join('').split('\n').slice(0, -1);
}

function errorsIn(lines: readonly string[]): string[] {
  return findingsOf(lines)
    .filter(({ severity }) => severity === 'error')
    .map(({ code, problem }) => `${code}: ${problem}`);
}

describe('a good log that is damaged', () => {
  it.each([[0.01], [0.1], [0.5]])('has no errors when a part of %f of its lines are cut', (part) => {
    fc.assert(
      fc.property(seeds, fc.constantFrom(...names.slice(0, 3)), (seed, name) => {
        const random = randomFrom(seed);
        const lines = interleaved(madeLog(machines.get(name)!, { release: releaseOf(random) }), random);
        expect(errorsIn(truncated(lines, part, random))).toEqual([]);
      }),
      { numRuns: runs(5, 25) },
    );
  });

  it.each([[0.02], [0.3]])('has no errors when a part of %f of its lines are torn by others', (part) => {
    fc.assert(
      fc.property(seeds, fc.constantFrom(...names), (seed, name) => {
        const random = randomFrom(seed);
        const lines = interleaved(madeLog(machines.get(name)!, { release: releaseOf(random) }), random);
        expect(errorsIn(torn(lines, part, random))).toEqual([]);
      }),
      { numRuns: runs(3, 15) },
    );
  });

  it("has no errors when it is both cut and torn, behind a launcher's prefixes", () => {
    const prefixes = [
      '',
      '[1,3]<stdout>:',
      '3: ',
      '[rank3]:',
      '2026-01-02T03:04:05.678901234Z ',
      '2026-01-02T03:04:05.678Z stdout F ',
      '(RayWorker pid=77, ip=10.0.0.7) ',
      '[3] ',
    ];
    fc.assert(
      fc.property(seeds, fc.constantFrom(...prefixes), (seed, prefix) => {
        const random = randomFrom(seed);
        const lines = interleaved(madeLog(machines.get('2 x dgx-h100')!, { release: releaseOf(random) }), random).map(
          (line) => `${prefix}${line}`,
        );
        expect(errorsIn(truncated(torn(lines, 0.05, random), 0.05, random))).toEqual([]);
      }),
      { numRuns: runs(5, 25) },
    );
  });
});

describe('any text', () => {
  it('never makes the reader or the checks throw', () => {
    const pieces = fc.constantFrom(
      'node0:1:2 [0] NCCL INFO ',
      'node1:12:2 [1] NCCL WARN ',
      'Channel 00/02 : 0 1',
      'Channel 99/0 : 1[0] -> 2[1] via NET/IB/3(4)/GDRDMA',
      'Trees [0] -1/-1/-1->0->1 [63] 1->0->-1',
      'comm 0x1 rank 0 nranks 4294967295 cudaDev 0 - Init START',
      'comm 0x1 rank 99999999 nranks 2 cudaDev 0 busId 1 commId 0x1 - Init COMPLETE',
      'Ring 00 : 0 -> 1 -> 2',
      'Pattern 4, crossNic 0, nChannels 2, bw 0.0/0.0, type NVL/PIX, sameChannels 1',
      '\n',
      ' ',
      '0',
      '-1',
      '\u0000',
      '1048576 262144 float sum -1 1 2 3 0 1 2 3 0',
      'NCCL version 2.30.7+cuda13.0',
      'NET/IB : Using [0]',
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(pieces, fc.string()), { maxLength: 60 }), (parts) => {
        const reader = new NcclLogReader();
        reader.openFile('any');
        for (const line of parts.join('').split('\n')) reader.readLine(line);
        reader.readUnfinishedLine(parts.at(-1) ?? '');
        expect(Array.isArray(checkLog(reader.finish()))).toBe(true);
      }),
      { numRuns: runs(100, 500) },
    );
  });
});
