import { describe, expect, test } from 'vitest';
import {
  allKernels,
  elementTypes,
  kernelFor,
  kernelName,
  levelsOf,
  operators,
  protocols,
  type KernelDescription,
  type Protocol,
} from '../../../../src/runtime/device/ptx/kernels.js';
import { canCombine, type ElementType } from '../../../../src/runtime/device/ptx/element-types.js';
import type { Step } from '../../../../src/runtime/device/ptx/step-record.js';
import type { Level } from '../../../../src/runtime/device/ptx/targets.js';
import type { DataType } from '../../../../src/runtime/device/types.js';
import { launchOfStep, launchOfSteps, loadKernel } from '../../../../testing/ptx/launch.js';
import { DeviceMemory } from '../../../../testing/ptx/memory.js';
import type { Kernel } from '../../../../testing/ptx/parse.js';
import { generator, runKernels } from '../../../../testing/ptx/run.js';
import { elementsOf, type Element } from '../../runtime/device/reference.js';
import { runs } from '../../../runs.js';
import { dataType, DeviceArray, difference, expectedElements, makeScalars, type Random } from './cases.js';

/** Types of elements that a copy moves. */
const moved: Readonly<Record<number, ElementType>> = { 1: 'uint8', 2: 'float16', 4: 'uint32', 8: 'uint64' };

interface Case {
  readonly memory: DeviceMemory;
  readonly type: DataType;
  readonly step: Step;
  readonly destinations: readonly DeviceArray[];
  readonly expected: Element[];
}

/** Arrays of a step in ordinary memory, often with another alignment, sometimes in place. */
function makeCase({ arithmetic }: KernelDescription, named: ElementType, random: Random): Case {
  const type = dataType(named);
  const memory = new DeviceMemory();
  const count = random(3) === 0 ? random(20) : random(Math.ceil(1500 / type.bytes));
  const together = random(3) > 0 ? type.bytes * random(16 / type.bytes) : undefined;
  const skew = (): number => together ?? type.bytes * random(16 / type.bytes);
  const nSources = arithmetic.operator === undefined ? 1 : 1 + random(4);
  const sources = Array.from({ length: nSources }, (_, i) => new DeviceArray(memory, `source ${i}`, type, count, skew()));
  const destinations = Array.from(
    { length: 1 + random(3) },
    (_, i) =>
      (i === 0 && random(3) === 0 ? sources[0] : undefined) ?? new DeviceArray(memory, `target ${i}`, type, count, skew()),
  );
  for (const array of [...sources, ...destinations]) array.fill(random);
  if (arithmetic.operator === 'land' || arithmetic.operator === 'lor') for (const array of sources) array.clearSome(random);
  const divisor = arithmetic.operator === 'avg' ? 1 + random(6) : 1;
  const scalars = makeScalars(type, arithmetic.operator === 'premulSum' ? nSources : 0, random);
  const wide = arithmetic.accumulator === 'float32';
  const inputs = sources.map((array) => elementsOf(array.elements));
  return {
    memory,
    type,
    step: {
      bytes: count * type.bytes,
      sources: sources.map(({ address }) => address),
      destinations: destinations.map(({ address }) => address),
      divisor,
      scalars: scalars.packed,
    },
    destinations,
    expected: expectedElements(type, arithmetic.operator, inputs, { divisor, scalars: scalars.elements, wide }),
  };
}

function check({ destinations, expected, step }: Case, seed: number): void {
  for (const array of destinations) {
    const wrong = difference(elementsOf(array.elements), expected);
    if (wrong !== undefined) expect.fail(`seed ${seed}: ${wrong} (${step.bytes} bytes, ${step.sources.length} sources)`);
  }
}

/** Types of a call that a kernel serves: that of its name, and signed ones with the same bits. */
function typesOf(kernel: KernelDescription): ElementType[] {
  const { operator, type, bytes, accumulator } = kernel.arithmetic;
  if (operator === undefined || type === undefined) return [moved[bytes] ?? 'uint8'];
  const options = accumulator === undefined ? {} : { accumulator };
  return elementTypes.filter(
    (each) => kernelName(kernelFor(kernel.protocol, { type: each, operator, ...options })) === kernelName(kernel),
  );
}

/** Texts that are interpreted: all of them where there is time, else some of each type and operator. */
function textsOf(protocol: Protocol): [KernelDescription, Level][] {
  const all = allKernels()
    .filter((each) => each.protocol === protocol)
    .flatMap((kernel) => levelsOf(kernel).map((level): [KernelDescription, Level] => [kernel, level]));
  return all.filter((_, i) => i % runs(4, 1) === protocols.indexOf(protocol) % runs(4, 1));
}

/** Runs `once` with each type and several seeds on the texts of a protocol. */
function eachKernel(
  protocol: Protocol,
  once: (kernel: KernelDescription, loaded: Kernel, type: ElementType, seed: number) => void,
): void {
  test.each(textsOf(protocol).map(([kernel, level]) => [kernelName(kernel), level, kernel] as const))(
    '%s for sm_%d',
    (_, level, kernel) => {
      const loaded = loadKernel(kernel, level);
      for (const type of typesOf(kernel)) for (let seed = 1; seed <= runs(2, 8); seed++) once(kernel, loaded, type, seed);
    },
  );
}

describe('kernels that a stream orders give the bits of the reference', () => {
  eachKernel('stream', (kernel, loaded, type, seed) => {
    const random = generator(seed);
    const made = makeCase(kernel, type, random);
    runKernels(made.memory, [launchOfStep(loaded, made.step, { blocks: 1 + random(3), threads: 1 + random(12) })], { seed });
    check(made, seed);
  });
});

describe('kernels that wait for flags give the bits of the reference', () => {
  eachKernel('flags', (kernel, loaded, type, seed) => {
    const random = generator(seed);
    const made = makeCase(kernel, type, random);
    runKernels(made.memory, [launchOfSteps(made.memory, loaded, [[made.step]], { threads: 1 + random(12) })], { seed });
    check(made, seed);
  });
});

describe('kernels of flagged lines give the bits of the reference', () => {
  eachKernel('lines', (kernel, loaded, type, seed) => {
    const random = generator(seed);
    const made = makeCase(kernel, type, random);
    // The last source comes by lines from another device, and a destination goes to a third one.
    const lines = made.memory.allocate('lines', 16 * Math.ceil(made.step.bytes / 8) + 16);
    const onward = made.memory.allocate('lines onward', 16 * Math.ceil(made.step.bytes / 8) + 16);
    const arrived = new DeviceArray(made.memory, 'arrived', made.type, made.expected.length);
    const mover = loadKernel(kernelFor('lines', { bytes: kernel.arithmetic.bytes }), 75);
    const { bytes } = made.step;
    const launch = (device: string, one: Kernel, step: Step) =>
      launchOfSteps(made.memory, one, [[{ lineFlag: 7, ...step }]], { device, threads: 1 + random(12) });
    // A copy of it, which a step in place does not change.
    const sent = new DeviceArray(made.memory, 'sent', made.type, made.expected.length);
    sent.bytes.set(made.memory.bytesAt(made.step.sources.at(-1) ?? 0n).subarray(0, bytes));
    runKernels(
      made.memory,
      [
        launch('sender', mover, { bytes, sources: [sent.address], destinations: [lines], nWireDestinations: 1 }),
        launch('middle', loaded, {
          ...made.step,
          sources: [...made.step.sources.slice(0, -1), lines],
          nWireSources: 1,
          destinations: [...made.step.destinations, onward],
          nWireDestinations: 1,
        }),
        launch('receiver', mover, { bytes, sources: [onward], nWireSources: 1, destinations: [arrived.address] }),
      ],
      { seed },
    );
    check({ ...made, destinations: [...made.destinations, arrived] }, seed);
  });
});

describe('kernels of multicast memory combine all members and write to all', () => {
  eachKernel('multicast', (kernel, loaded, named, seed) => {
    const random = generator(seed);
    const memory = new DeviceMemory();
    const type = dataType(named);
    const { operator } = kernel.arithmetic;
    const count = random(Math.ceil(1200 / type.bytes));
    const whole = Math.ceil((count * type.bytes + 1) / 16) * (16 / type.bytes);
    const members = Array.from({ length: 2 + random(3) }, (_, i) => new DeviceArray(memory, `member ${i}`, type, whole));
    for (const member of members) member.fillSmall(random);
    const inputs = members.map((member) => elementsOf(member.elements).slice(0, count));
    const source = memory.multicast(
      'sources',
      members.map(({ address }) => address),
    );
    const outputs = members.map((_, i) => new DeviceArray(memory, `output ${i}`, type, whole));
    const target = memory.multicast(
      'targets',
      outputs.map(({ address }) => address),
    );
    const own = new DeviceArray(memory, 'own', type, count, type.bytes * random(16 / type.bytes));
    const flags = members.map((_, i) => memory.allocate(`flag ${i}`, 8));
    const divisor = operator === 'avg' ? members.length : 1;
    own.fillSmall(random);
    const before = elementsOf(own.elements);
    const step: Step =
      operator === undefined
        ? { bytes: count * type.bytes, sources: [own.address], destinations: [target], nWireDestinations: 1 }
        : {
            bytes: count * type.bytes,
            sources: [source],
            nWireSources: 1,
            destinations: [own.address, target],
            nWireDestinations: 1,
            divisor,
          };
    const posts = [{ address: memory.multicast('flags', flags), value: 3n }];
    runKernels(memory, [launchOfSteps(memory, loaded, [[{ ...step, posts, nMulticastPosts: 1 }]], { threads: 1 + random(12) })], {
      seed,
    });
    const expected = operator === undefined ? before : expectedElements(type, operator, inputs, { divisor });
    for (const array of [own, ...outputs]) {
      const wrong = difference(elementsOf(array.elements).slice(0, count), expected);
      if (wrong !== undefined) expect.fail(`seed ${seed}: ${wrong}`);
    }
    expect(flags.map((flag) => memory.viewAt(flag).getBigUint64(0, true))).toEqual(flags.map(() => 3n));
  });
});

test('every type and operator of a call has a kernel in each protocol', () => {
  const names = new Set(allKernels().map(kernelName));
  for (const protocol of protocols.filter((each) => each !== 'multicast'))
    for (const type of elementTypes)
      for (const operator of operators)
        if (canCombine(type, operator)) expect(names).toContain(kernelName(kernelFor(protocol, { type, operator })));
});
