import { kernelFor, type KernelDescription } from '../../../../src/runtime/device/ptx/kernels.js';
import type { ElementType, Operator } from '../../../../src/runtime/device/ptx/element-types.js';
import type { Flag, Step } from '../../../../src/runtime/device/ptx/step-record.js';
import { launchOfSteps } from '../../../../testing/ptx/launch.js';
import { DeviceMemory } from '../../../../testing/ptx/memory.js';
import type { Kernel } from '../../../../testing/ptx/parse.js';
import { generator, runKernels } from '../../../../testing/ptx/run.js';
import { elementsOf } from '../../runtime/device/reference.js';
import { dataType, DeviceArray, difference, expectedElements } from './cases.js';

/** An all-reduce of several devices as lists of steps, which a kernel executes. */
export interface Collective {
  readonly kernel: KernelDescription;
  readonly nDevices: number;
  /** Elements of a chunk; each device has as many chunks as there are devices. */
  readonly chunk: number;
  readonly steps: (arrays: Arrays, memory: DeviceMemory) => Step[][];
}

interface Arrays {
  readonly inputs: readonly DeviceArray[];
  readonly outputs: readonly DeviceArray[];
  readonly chunkBytes: number;
}

export interface Outcome {
  readonly wrong: string | undefined;
  readonly steps: number;
}

/** Runs a collective once; `load` gives the kernel, perhaps one with a fault. */
export function runCollective(
  collective: Collective,
  kernel: Kernel,
  seed: number,
  { maxSteps = 2_000_000, threads = 10 }: { maxSteps?: number; threads?: number } = {},
): Outcome {
  const { type: name = 'uint8', operator, accumulator } = collective.kernel.arithmetic;
  const { nDevices: n, chunk } = collective;
  const type = dataType(name);
  const random = generator(seed);
  const memory = new DeviceMemory();
  const make = (what: string, skew: number) =>
    Array.from({ length: n }, (_, r) => new DeviceArray(memory, `${what} ${r}`, type, n * chunk, skew));
  const [inputs, outputs] = [make('input', 0), make('output', type.bytes * random(2))];
  // Sums of whole numbers are the same in every order, which differs by chunk.
  for (const array of inputs) array.fillSmall(random);
  for (const array of outputs) array.fill(random);
  const expected = expectedElements(
    type,
    operator,
    inputs.map((array) => elementsOf(array.elements)),
    { divisor: n, wide: accumulator !== undefined },
  );
  const lists = collective.steps({ inputs, outputs, chunkBytes: chunk * type.bytes }, memory);
  const launches = lists.map((list, r) =>
    launchOfSteps(memory, kernel, [list], { device: `gpu ${r}`, threads: 1 + random(threads) }),
  );
  const steps = runKernels(memory, launches, { seed, maxSteps });
  const wrongs = outputs.map((array) => difference(elementsOf(array.elements), expected));
  return { wrong: wrongs.find((wrong) => wrong !== undefined), steps };
}

const at = (array: DeviceArray | undefined, chunk: number, bytes: number): bigint =>
  (array?.address ?? 0n) + BigInt(chunk * bytes);

/** Each device sends to the next one, into a slot for each step, and posts how many have come. */
export function flagRing(type: ElementType, operator: Operator, n: number, chunk: number): Collective {
  return {
    kernel: kernelFor('flags', { type, operator }),
    nDevices: n,
    chunk,
    steps: ({ inputs, outputs, chunkBytes: bytes }, memory) => {
      const room = Math.ceil((bytes + 15) / 16) * 16;
      const slots = inputs.map((_, r) => memory.allocate(`slots ${r}`, n * room));
      const arrived = inputs.map((_, r) => memory.allocate(`arrived ${r}`, 8));
      // Aligned as the chunk of a place is, so that most of it moves in vectors.
      const slot = (device: number, step: number, place: number): bigint =>
        (slots[device] ?? 0n) + BigInt(step * room + ((place * bytes) % 16));
      return inputs.map((input, r) => {
        const next = (r + 1) % n;
        const part = (step: number): number => (r - step + 2 * n) % n;
        const wait = (value: number): Flag[] => [{ address: arrived[r] ?? 0n, value: BigInt(value) }];
        const post = (value: number): Flag[] => [{ address: arrived[next] ?? 0n, value: BigInt(value) }];
        const steps: Step[] = [{ bytes, sources: [at(input, r, bytes)], destinations: [slot(next, 0, r)], posts: post(1) }];
        for (let k = 1; k < n; k++) {
          const place = part(k);
          const sources = [at(input, place, bytes), slot(r, k - 1, place)];
          const last = k === n - 1;
          const destinations = last ? [at(outputs[r], place, bytes), at(outputs[next], place, bytes)] : [slot(next, k, place)];
          steps.push({ bytes, sources, destinations, waits: wait(k), posts: post(k + 1), divisor: last ? n : 1 });
        }
        for (let k = n; k < 2 * n - 2; k++) {
          const place = part(k);
          const [sources, destinations] = [[at(outputs[r], place, bytes)], [at(outputs[next], place, bytes)]];
          steps.push({ bytes, sources, destinations, waits: wait(k), posts: post(k + 1) });
        }
        return [...steps, { bytes: 0, sources: [at(input, 0, bytes)], destinations: [], waits: wait(2 * n - 2) }];
      });
    },
  };
}

/** The same ring by lines, which need no counters. */
export function lineRing(type: ElementType, operator: Operator, n: number, chunk: number): Collective {
  return {
    kernel: kernelFor('lines', { type, operator }),
    nDevices: n,
    chunk,
    steps: ({ inputs, outputs, chunkBytes: bytes }, memory) => {
      const room = 16 * Math.ceil(bytes / 8);
      const lines = inputs.map((_, r) => memory.allocate(`lines ${r}`, 2 * n * room));
      const line = (device: number, step: number): bigint => (lines[device] ?? 0n) + BigInt(step * room);
      return inputs.map((input, r) => {
        const next = (r + 1) % n;
        const part = (step: number): number => (r - step + 2 * n) % n;
        const wire = { lineFlag: 5, nWireDestinations: 1, nWireSources: 1 };
        const steps: Step[] = [
          { ...wire, nWireSources: 0, bytes, sources: [at(input, r, bytes)], destinations: [line(next, 0)] },
        ];
        for (let k = 1; k < n; k++) {
          const sources = [at(input, part(k), bytes), line(r, k - 1)];
          const last = k === n - 1;
          const destinations = [...(last ? [at(outputs[r], part(k), bytes)] : []), line(next, k)];
          steps.push({ ...wire, bytes, sources, destinations, divisor: last ? n : 1 });
        }
        for (let k = n; k <= 2 * n - 2; k++) {
          const last = k === 2 * n - 2;
          const destinations = [at(outputs[r], part(k), bytes), ...(last ? [] : [line(next, k)])];
          steps.push({ ...wire, nWireDestinations: last ? 0 : 1, bytes, sources: [line(r, k - 1)], destinations });
        }
        return steps;
      });
    },
  };
}

/** Each device combines its chunk of all inputs, and writes it to all outputs. */
export function directExchange(type: ElementType, operator: Operator, n: number, chunk: number): Collective {
  return {
    kernel: kernelFor('flags', { type, operator, accumulator: 'float32' }),
    nDevices: n,
    chunk,
    steps: ({ inputs, outputs, chunkBytes: bytes }, memory) => {
      const counters = inputs.map((_, r) => memory.allocate(`counters ${r}`, 8 * n));
      const meet = (r: number, value: number): { posts: Flag[]; waits: Flag[] } => ({
        posts: counters.map((address) => ({ address: address + BigInt(8 * r), value: BigInt(value) })),
        waits: counters.map((_, i) => ({ address: (counters[r] ?? 0n) + BigInt(8 * i), value: BigInt(value) })),
      });
      return inputs.map((input, r) => [
        { bytes: 0, sources: [input.address], destinations: [], posts: meet(r, 1).posts },
        {
          bytes,
          sources: inputs.map((array) => at(array, r, bytes)),
          destinations: outputs.map((array) => at(array, r, bytes)),
          divisor: n,
          waits: meet(r, 1).waits,
          posts: meet(r, 2).posts,
        },
        { bytes: 0, sources: [input.address], destinations: [], waits: meet(r, 2).waits },
      ]);
    },
  };
}

/** The switch combines and multiplies: NVLS. Each device copies its input into the multicast memory first. */
export function switchExchange(type: ElementType, operator: Operator, n: number, chunk: number): Collective {
  return {
    kernel: kernelFor('multicast', { type, operator }),
    nDevices: n,
    chunk,
    steps: ({ inputs, outputs, chunkBytes: bytes }, memory) => {
      const buffers = inputs.map((_, r) => memory.allocate(`buffer ${r}`, n * bytes));
      const all = memory.multicast('all buffers', buffers);
      const counters = inputs.map((_, r) => memory.allocate(`counter ${r}`, 8));
      const allCounters = memory.multicast('all counters', counters);
      const post = { posts: [{ address: allCounters, value: 1n }], nMulticastPosts: 1 };
      return inputs.map((input, r) => {
        const wait = (times: number): Flag[] => [{ address: counters[r] ?? 0n, value: BigInt(times * n) }];
        const place = all + BigInt(r * bytes);
        return [
          { bytes: n * bytes, sources: [input.address], destinations: [buffers[r] ?? 0n], ...post },
          {
            bytes,
            sources: [place],
            nWireSources: 1,
            destinations: [place],
            nWireDestinations: 1,
            divisor: n,
            waits: wait(1),
            ...post,
          },
          { bytes: n * bytes, sources: [buffers[r] ?? 0n], destinations: [outputs[r]?.address ?? 0n], waits: wait(2) },
        ];
      });
    },
  };
}
