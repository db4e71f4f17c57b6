import { describe, expect, it, test } from 'vitest';
import { roundsOf, switchBytes, switchSteps, type SwitchCall, type SwitchView } from '../../../src/cuda/switch-steps.js';
import { kernelFor, type KernelDescription } from '../../../src/runtime/device/ptx/kernels.js';
import type { Step } from '../../../src/runtime/device/ptx/step-record.js';
import { launchOfSteps, loadKernel } from '../../../testing/ptx/launch.js';
import { DeviceMemory } from '../../../testing/ptx/memory.js';
import { generator, runKernels } from '../../../testing/ptx/run.js';
import { runs } from '../../runs.js';

const N = 3;
const BLOCKS = 2;
/** Two packs for each rank: a call of some elements has many rounds. */
const SLOT = 2 * 16 * N;

type Name = 'allReduce' | 'reduce' | 'broadcast' | 'allGather' | 'reduceScatter';
const names: readonly Name[] = ['allReduce', 'broadcast', 'reduceScatter', 'allGather', 'reduce'];
const partsOf = (name: Name) => ({ in: name === 'reduceScatter' ? N : 1, out: name === 'allGather' ? N : 1 });

interface Planned {
  readonly name: Name;
  readonly count: number;
  readonly root: number;
  readonly isInPlace: boolean;
}

interface Run {
  readonly calls: readonly Planned[];
  readonly kernel: KernelDescription;
  /** Bytes of an element, an unsigned integer. */
  readonly bytes: 1 | 4;
  readonly divisor?: number;
}

const sums = kernelFor('multicast', { type: 'uint32', operator: 'sum' });
const everyCall = names.map((name, i): Planned => ({ name, count: 61 + i, root: i % N, isInPlace: false }));

/** Runs calls, one after the other, on all GPUs. Returns what is wrong. */
function wrongOf(
  { calls, kernel, bytes, divisor = 1 }: Run,
  seed: number,
  edit: { text?: (text: string) => string; step?: (step: Step, rank: number, at: number) => Step } = {},
): string | undefined {
  const random = generator(seed);
  const memory = new DeviceMemory();
  const own = Array.from({ length: N }, (_, r) => memory.allocate(`memory ${r}`, switchBytes(BLOCKS, SLOT)));
  const all = memory.multicast('all memory', own);
  const skew = bytes * random(3);
  const arraysOf = ({ name, count, isInPlace }: Planned, r: number) => {
    const parts = partsOf(name);
    const make = (what: string, n: number): bigint => {
      const address = memory.allocate(`${what} ${r} of ${name}`, skew + n * count * bytes) + BigInt(skew);
      const view = memory.bytesAt(address);
      for (let i = 0; i < view.length; i++) view[i] = i % bytes === 0 ? random(80) : 0;
      return address;
    };
    if (!isInPlace) return { input: make('input', parts.in), output: make('output', parts.out) };
    // The smaller array is this rank's part of the larger.
    const whole = make('array', Math.max(parts.in, parts.out));
    const part = whole + BigInt(r * count * bytes);
    return { input: parts.in < parts.out ? part : whole, output: parts.out < parts.in ? part : whole };
  };
  const arrays = calls.map((call) => Array.from({ length: N }, (_, r) => arraysOf(call, r)));
  const values = (address: bigint, n: number): number[] => {
    const { buffer, byteOffset } = memory.bytesAt(address);
    const copy = buffer.slice(byteOffset, byteOffset + n * bytes);
    return [...(bytes === 1 ? new Uint8Array(copy) : new Uint32Array(copy))];
  };
  const expected = calls.map(({ name, count, root }, i) => {
    const inputs = (arrays[i] ?? []).map(({ input }) => values(input, count * partsOf(name).in));
    const sum = inputs.reduce((a, b) => a.map((x, k) => x + (b[k] ?? 0))).map((x) => Math.floor(x / divisor));
    return Array.from({ length: N }, (_, r) => {
      if (name === 'allGather') return inputs.flat();
      if (name === 'broadcast') return inputs[root];
      if (name === 'reduceScatter') return sum.slice(r * count, (r + 1) * count);
      return name === 'reduce' && r !== root ? undefined : sum;
    });
  });

  const loaded = loadKernel(kernel, 90, edit.text);
  const launches = own.map((address, rank) => {
    const view: SwitchView = { own: address, all, rank, nRanks: N, nBlocks: BLOCKS, slotBytes: SLOT };
    const before = new Array<number>(BLOCKS).fill(0);
    const lists: Step[][] = Array.from({ length: BLOCKS }, () => []);
    for (const [i, { name, count, root }] of calls.entries()) {
      const { input, output } = arrays[i]?.[rank] ?? {};
      const call: SwitchCall = { name, count, root, elementBytes: bytes, input, output, divisor };
      const rounds = roundsOf(view, call, 1);
      for (let first = 0; first < rounds.nRounds; first += 3) {
        const steps = switchSteps(view, call, rounds, first, Math.min(first + 3, rounds.nRounds), before);
        steps.forEach((list, block) => lists[block]?.push(...list));
      }
      for (let block = 0; block < rounds.nBlocks; block++) before[block] = (before[block] ?? 0) + rounds.nRounds;
    }
    const edited = lists.map((list) => list.map((step, at) => edit.step?.(step, rank, at) ?? step));
    return launchOfSteps(memory, loaded, edited, { device: `gpu ${rank}`, threads: 2 + random(7) });
  });
  try {
    runKernels(memory, launches, { seed, maxSteps: 3_000_000 });
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'MemoryError') throw error;
    return error.message;
  }
  for (const [i, { name, count, isInPlace }] of calls.entries())
    for (let r = 0; r < N; r++) {
      const wanted = expected[i]?.[r];
      if (wanted === undefined) continue;
      const got = values(arrays[i]?.[r]?.output ?? 0n, count * partsOf(name).out);
      const at = wanted.findIndex((value, k) => value !== got[k]);
      if (at >= 0)
        return `wrong: ${name}${isInPlace ? ' in place' : ''}, rank ${r}: element ${at} is ${got[at]}, not ${wanted[at]}`;
    }
  return undefined;
}

describe('calls on a switch', () => {
  it('give the results, one after the other, in every schedule', () => {
    for (let seed = 1; seed <= runs(6, 100); seed++)
      expect([seed, wrongOf({ calls: everyCall, kernel: sums, bytes: 4 }, seed)]).toEqual([seed, undefined]);
  });

  it.each(names)('%s in place, of few and of many elements', (name) => {
    const calls = [1, 4, 5, 200].map((count, i): Planned => ({ name, count, root: i % N, isInPlace: true }));
    for (const call of calls) {
      const alone = { calls: [call], kernel: sums, bytes: 4 } as const;
      for (let seed = 1; seed <= runs(2, 20); seed++) expect([call, wrongOf(alone, seed)]).toEqual([call, undefined]);
    }
  });

  it('moves bytes', () => {
    const calls = (['broadcast', 'allGather'] as const).map((name): Planned => ({ name, count: 333, root: 2, isInPlace: false }));
    for (let seed = 1; seed <= runs(3, 30); seed++)
      expect([seed, wrongOf({ calls, kernel: kernelFor('multicast', { bytes: 1 }), bytes: 1 }, seed)]).toEqual([seed, undefined]);
  });

  it('averages', () => {
    const average = kernelFor('multicast', { type: 'uint32', operator: 'avg' });
    const calls = everyCall.filter(({ name }) => /educe/.test(name));
    for (let seed = 1; seed <= runs(3, 30); seed++)
      expect([seed, wrongOf({ calls, kernel: average, bytes: 4, divisor: N }, seed)]).toEqual([seed, undefined]);
  });
});

/** The first thing that is wrong in some schedules. */
function firstWrong(edit: Parameters<typeof wrongOf>[2], calls = everyCall): string | undefined {
  for (let seed = 1; seed <= 60; seed++) {
    const wrong = wrongOf({ calls, kernel: sums, bytes: 4 }, seed, edit);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

describe('a mistake is found:', () => {
  const replaced = (from: RegExp, to: string) => (text: string) => {
    const edited = text.replaceAll(from, to);
    if (edited === text) throw new Error('nothing to edit');
    return edited;
  };
  it.each([
    ['a counter on the switch that releases nothing', replaced(/multimem\.red\.release/g, 'multimem.red.relaxed')],
    ['a wait that acquires nothing', replaced(/ld\.acquire\.sys/g, 'ld.relaxed.sys')],
    ['no barrier before counters are raised', replaced(/bar\.sync 0;/g, '')],
    ['no barrier after a wait', replaced(/bar\.red\.or\.pred (%p\d+), 0, (%p\d+);/g, 'mov.pred $1, $2;')],
    ['no sum on the switch', replaced(/multimem\.ld_reduce(\S+)add/g, 'multimem.ld_reduce$1min')],
  ])('%s', (_, text) => {
    expect(firstWrong({ text })).toMatch(/^(race|wrong)/);
  });

  // Of a rooted call, the root is rank 1.
  it.each([
    ['allReduce', 'filled', 1],
    ['allReduce', 'combined', 1],
    ['broadcast', 'filled', 1],
    ['broadcast', 'combined', 0],
    ['reduceScatter', 'filled', 1],
    ['reduceScatter', 'combined', 1],
    ['allGather', 'filled', 1],
    ['allGather', 'combined', 1],
    ['reduce', 'filled', 1],
    ['reduce', 'combined', 0],
  ] as const)('in %s, a wait until all have %s, left out by rank %i', (name, counter, missing) => {
    const calls = [false, true].map((isInPlace): Planned => ({ name, count: 500, root: 1, isInPlace }));
    const step = (given: Step, rank: number): Step =>
      rank === missing ? { ...given, waits: (given.waits ?? []).filter(({ address }) => counterAt(address) !== counter) } : given;
    expect(firstWrong({ step }, calls)).toMatch(/^(race|wrong)/);
  });

  it('a rank that does not say that it has filled its slot', () => {
    const step = (given: Step, rank: number, at: number): Step =>
      rank === 2 && at === 0 ? { ...given, posts: [], nMulticastPosts: 0 } : given;
    expect(firstWrong({ step })).toMatch(/^no end after/);
  });
});

/** Counters of a slot lie 64 bytes apart. */
function counterAt(address: bigint): 'filled' | 'combined' {
  return Number(address & 127n) < 64 ? 'filled' : 'combined';
}

test('a call of many elements has rounds of whole packs, and every element once', () => {
  const view: SwitchView = { own: 0n, all: 1n << 40n, rank: 0, nRanks: N, nBlocks: 4, slotBytes: 1 << 12 };
  for (const name of names)
    for (const count of [1, 3, 1000, 4096, 100_003]) {
      const call: SwitchCall = { name, count, root: 0, elementBytes: 2, input: 1n << 50n, output: 1n << 51n, divisor: 1 };
      const rounds = roundsOf(view, call, 256);
      expect(rounds.length % 8).toBe(0);
      const steps = switchSteps(view, call, rounds, 0, rounds.nRounds, [0, 0, 0, 0]).flat();
      const moved = (of: 'sources' | 'destinations', base: bigint): number =>
        steps.reduce(
          (sum, step) => sum + (step[of].some((address) => address >= base && address < base << 1n) ? step.bytes : 0),
          0,
        );
      expect([name, count, moved('sources', 1n << 50n)]).toEqual([name, count, 2 * count * partsOf(name).in]);
      expect([name, count, moved('destinations', 1n << 51n)]).toEqual([name, count, 2 * count * partsOf(name).out]);
      for (const step of steps) expect(step.sources.length + step.destinations.length).toBeLessThanOrEqual(2);
    }
});
