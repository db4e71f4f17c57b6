import { describe, expect, it, test } from 'vitest';
import { kernelFor, levelsOf } from '../../../../src/runtime/device/ptx/kernels.js';
import { launchOfSteps, loadKernel } from '../../../../testing/ptx/launch.js';
import { DeviceMemory } from '../../../../testing/ptx/memory.js';
import type { Kernel } from '../../../../testing/ptx/parse.js';
import { runKernels } from '../../../../testing/ptx/run.js';
import { runs } from '../../../runs.js';
import { directExchange, flagRing, lineRing, runCollective, switchExchange, type Collective } from './collectives.js';

const collectives: readonly (readonly [string, Collective])[] = [
  ['a ring of counters', flagRing('float32', 'sum', 3, 13)],
  ['a ring of lines', lineRing('float16', 'avg', 3, 13)],
  ['a direct exchange summed in float32', directExchange('bfloat16', 'avg', 4, 12)],
  ['multicast memory', switchExchange('float32', 'avg', 3, 12)],
];

const load = ({ kernel }: Collective, edit?: (text: string) => string): Kernel => {
  const level = levelsOf(kernel).at(-1);
  if (level === undefined) throw new Error('no level');
  return loadKernel(kernel, level, edit);
};

/** The first error or wrong result in some schedules, or undefined. */
function firstFault(collective: Collective, edit: (text: string) => string, schedules: number, threads = 10): string | undefined {
  for (let seed = 1; seed <= schedules; seed++) {
    try {
      const { wrong } = runCollective(collective, load(collective, edit), seed, { maxSteps: 100_000, threads });
      if (wrong !== undefined) return `wrong result ${wrong}`;
    } catch (error) {
      if (!(error instanceof Error) || !['MemoryError', 'PtxError'].includes(error.name)) throw error;
      return error.message;
    }
  }
  return undefined;
}

test.each(collectives)('%s gives all devices the bits of the reference, in every schedule', (_, collective) => {
  const kernel = load(collective);
  for (let seed = 1; seed <= runs(12, 200); seed++) {
    const { wrong } = runCollective(collective, kernel, seed);
    if (wrong !== undefined) expect.fail(`seed ${seed}: ${wrong}`);
  }
});

test('the same seed repeats a run', () => {
  const [, collective] = collectives[0]!;
  const steps = [1, 1, 2].map((seed) => runCollective(collective, load(collective), seed).steps);
  expect(steps[0]).toBe(steps[1]);
  expect(steps[0]).not.toBe(steps[2]);
});

/** Edits of a text, which must change it. */
const replaced = (from: string | RegExp, to: string) => (text: string) => {
  const edited = text.replaceAll(typeof from === 'string' ? from : new RegExp(from, 'g'), to);
  if (edited === text) throw new Error(`nothing to edit: ${from}`);
  return edited;
};

/** Writes lines in words, so that data and flag are two stores. */
const torn = (text: string): string => {
  const words = new Map([...text.matchAll(/mov\.b64 (%d\d+), \{(%r\d+, %r\d+)\}/g)].map(([, double, pair]) => [double, pair]));
  return replaced(
    /st\.relaxed\.sys\.global\.v2\.b64 (\[%d\d+\]), \{(%d\d+), (%d\d+)\}/,
    'TORN $1 $2 $3',
  )(text).replaceAll(
    /TORN (\S+) (\S+) (\S+);/g,
    (_, place: string, a: string, b: string) => `st.relaxed.sys.global.v4.b32 ${place}, {${words.get(a)}, ${words.get(b)}};`,
  );
};

describe('the interpreter finds', () => {
  const ring = collectives[0]![1];
  const lines = collectives[1]![1];
  const onSwitch = collectives[3]![1];
  it.each([
    ['a release that is only relaxed', ring, replaced('st.release.sys', 'st.relaxed.sys'), 'race'],
    ['a flag that an ordinary store posts', ring, replaced('st.release.sys', 'st'), 'race'],
    ['an acquire that is only relaxed', ring, replaced('ld.acquire.sys', 'ld.relaxed.sys'), 'race'],
    ['a flag that an ordinary load polls', ring, replaced('ld.acquire.sys', 'ld'), 'race'],
    ['no barrier between data and post', ring, replaced('bar.sync 0;', ''), 'race'],
    ['no barrier between wait and data', ring, replaced(/bar.red.or.pred (%p\d+), 0, (%p\d+);/, 'mov.pred $1, $2;'), 'race'],
    ['a counter on the switch that releases nothing', onSwitch, replaced('multimem.red.release', 'multimem.red.relaxed'), 'race'],
    ['lines whose flags can arrive before their data', lines, torn, 'wrong result'],
    [
      'a tail that is too long',
      ring,
      replaced(/(sub\.u64 )(%d\d+, %d\d+, %d\d+)(;\s+mul\.wide\.u32 %d\d+, %r\d+, 4;)/, 'add.u64 $2$3'),
      'out of bounds',
    ],
    [
      'vectors of arrays that are not aligned',
      ring,
      replaced(/and\.b64 (%d\d+), (%d\d+), 15;(\s+setp)/, 'and.b64 $1, $2, 3;$3'),
      'misaligned',
    ],
    ['a barrier that some threads do not reach', ring, replaced(/(wait\s[^]*?@!%p\d+ bra L\d+;)/, '$1 bar.sync 0;'), 'diverge'],
    ['an instruction that it does not know', ring, replaced('add.rn.f32', 'add.rz.f32'), 'does not know'],
    [
      'an ordinary store to a multicast address',
      onSwitch,
      replaced(/multimem\.st\.relaxed\.sys\.global\.v4\.f32/, 'st.global.v4.b32'),
      'ordinary store',
    ],
    ['a wait that nothing ends', ring, replaced('st.release.sys.global.b64', '//'), 'no end'],
  ] as const)('%s', (_, collective, edit, message) => {
    expect(firstFault(collective, edit, 40)).toContain(message);
  });

  // Of 330 instructions, some 20 can be left out unnoticed: what only this collective does not need (an abort, loops of one
  // turn, sources of another alignment, an average of one), what only decides the speed, and a number that nothing reads.
  it('each access, barrier, comparison and sum of a ring that is left out', () => {
    const collective = flagRing('float32', 'avg', 3, 61);
    const code = load(collective).code.map(({ text }) => text);
    const tried = code.map((_, i) => i).filter((i) => i % runs(13, 1) === 0);
    const unnoticed = tried.filter((i) => firstFault(collective, without(i), runs(6, 12)) === undefined).map((i) => code[i]);
    expect(unnoticed.filter((text) => /^(?:ld|st|bar|setp|cvt|div|add\.rn|mul\.wide|add\.u32)\b/.test(text ?? ''))).toEqual([]);
    expect(unnoticed.length).toBeLessThan(Math.max(4, tried.length / 12));
  });
});

/** Leaves out the statement of a number. */
const without = (number: number) => (text: string) => {
  const start = text.indexOf('{');
  let count = -1;
  const body = text.slice(start).replaceAll(/^ {2}(?!\.|\/\/)[^\n]*;$/gm, (line) => (++count === number ? '' : line));
  return text.slice(0, start) + body;
};

test('threads that wait give up when the abort word is set', () => {
  for (const protocol of ['flags', 'lines', 'multicast'] as const) {
    const memory = new DeviceMemory();
    const kernel = loadKernel(kernelFor(protocol, { bytes: 4 }), 90);
    const [abort, flag, target] = [memory.allocate('abort', 4), memory.allocate('flag', 8), memory.allocate('target', 64)];
    memory.viewAt(abort).setUint32(0, 1, true);
    const lists = [[{ bytes: 64, sources: [target], destinations: [target], waits: [{ address: flag, value: 1n }] }]];
    runKernels(memory, [launchOfSteps(memory, kernel, lists, { abort })]);
  }
});
