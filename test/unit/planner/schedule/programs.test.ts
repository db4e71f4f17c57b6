import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { programFifos } from '../../../../src/planner/schedule/fifo.js';
import {
  defaultParameters,
  machine,
  prepareCluster,
  readProgram,
  schedule,
  simulatorOf,
  verifyProgram,
} from '../../../../src/planner/index.js';

const folder = fileURLToPath(new URL('../../../../testing/corpus/programs/', import.meta.url));

/** Fault of each program of the corpus; `null` for valid ones. */
const faults = JSON.parse(readFileSync(`${folder}faults.json`, 'utf8')) as Readonly<Record<string, string | null>>;

const simulator = simulatorOf(
  prepareCluster({ hosts: [{ machine: machine('dgx-h100'), count: 1 }] }, defaultParameters),
  defaultParameters,
);

function faultOf(name: string): string | undefined {
  try {
    return verifyProgram(readProgram(readFileSync(folder + name, 'utf8')));
  } catch (error) {
    return (error as Error).message;
  }
}

describe('programs of MSCCL and MSCCL++', () => {
  const names = readdirSync(folder).filter((name) => name !== 'faults.json');

  it('have all a verdict in faults.json', () => {
    expect(Object.keys(faults).sort()).toEqual(names.sort());
  });

  it.each(Object.entries(faults))('%s has the verdict of faults.json', (name, fault) => {
    expect(faultOf(name) ?? null).toBe(fault);
    // A program that is valid is simulated at any size that it is for.
    if (fault !== null) return;
    const program = readProgram(readFileSync(folder + name, 'utf8'));
    for (const bytes of [1024, 1 << 20])
      expect(simulator.simulateSchedule(schedule(program, bytes), program.protocol)).toBeGreaterThan(0);
  });

  it('signal to seven peers as fast as to one', () => {
    const timeOf = (gpus: number, rounds: number) => {
      const program = readProgram(readFileSync(`${folder}signals-${gpus}gpus-${rounds}rounds.json`, 'utf8'));
      return simulator.simulateSchedule(schedule(program, 1024), program.protocol);
    };
    const roundOf = (gpus: number) => (timeOf(gpus, 2) - timeOf(gpus, 0)) / 2;
    expect(roundOf(8)).toBeLessThan(1.1 * roundOf(2));
    // A counter in the memory of another GPU of an H100 machine, polled: between one and two microseconds.
    expect(roundOf(8)).toBeGreaterThan(0.5);
    expect(roundOf(8)).toBeLessThan(2);
  });
});

describe('a step of a program', () => {
  const { Simple, LL, LL128 } = programFifos;

  it('is as long as in MSCCL, and holds as many messages', () => {
    expect([LL, LL128, Simple].map(({ messageBytes, messages }) => [messageBytes, messages])).toEqual([
      [32_768, 8],
      [576_000, 8],
      [2_097_152, 2],
    ]);
  });

  it('of several chunks is a message a chunk where they are long, and may then need more room than there is', () => {
    const text = readFileSync(`${folder}burst-3-Simple.xml`, 'utf8');
    const joined = text
      .replaceAll(/ *<step s="[1245]".*\n/g, '')
      .replaceAll('cnt="1"', 'cnt="3"')
      .replaceAll('s="3"', 's="1"');
    expect(verifyProgram(readProgram(joined))).toMatch(/^deadlock: rank 0, thread block 0 waits in step 0 \(send\) until rank 1/);
    expect(verifyProgram(readProgram(joined.replace('proto="Simple"', 'proto="LL"')))).toBeUndefined();
  });

  it('of a plan with a largest size is not simulated beyond it', () => {
    const program = readProgram(readFileSync(`${folder}max-message-size.json`, 'utf8'));
    expect(() => schedule(program, 2 ** 21)).toThrow(
      'within-scratch is for calls of 1048576 bytes at most, this one has 2097152',
    );
  });
});
