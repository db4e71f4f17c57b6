import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  allKernels,
  kernelFor,
  kernelName,
  levelsOf,
  moduleText,
  type KernelDescription,
} from '../../../../src/runtime/device/ptx/kernels.js';
import { targets, type Target } from '../../../../src/runtime/device/ptx/targets.js';
import { assemble, assembleAll, findAssembler, levelFor } from '../../../../testing/ptx/assemble.js';
import { parseRegisterTable } from '../../../../testing/ptx/registers.js';
import { writeKernels } from '../../../../testing/ptx/write.js';
import { isThorough } from '../../../runs.js';

const assembler = findAssembler();
const golden = parseRegisterTable(readFileSync(join(import.meta.dirname, 'registers.txt'), 'utf8'));

/** A few kernels that have, together, most instructions, and the targets that the most GPUs have. */
const few: readonly (readonly [Target, readonly KernelDescription[]])[] = [
  [75, [kernelFor('stream', { type: 'bfloat16', operator: 'prod' }), kernelFor('lines', { type: 'int8', operator: 'max' })]],
  [
    90,
    [
      kernelFor('flags', { type: 'float8e4m3', operator: 'avg', accumulator: 'float32' }),
      kernelFor('stream', { type: 'float64', operator: 'premulSum' }),
      kernelFor('multicast', { type: 'float16', operator: 'sum' }),
    ],
  ],
];

const cases = isThorough ? targets.map((target) => [target, allKernels()] as const) : few;

describe.skipIf(assembler === undefined)('ptxas (without it: skipped; it is part of a CUDA toolkit, TCCL_PTXAS names it)', () => {
  test.each(cases)('assembles kernels for sm_%d without spills, with the registers of the table', (target, kernels) => {
    if (assembler === undefined) return;
    const usages = assembleAll(assembler, kernels, target);
    expect(usages.size).toBe(kernels.filter((kernel) => levelFor(kernel, target) !== undefined).length);
    for (const [name, { registers, spills, stack }] of usages) {
      expect([name, spills, stack]).toEqual([name, 0, 0]);
      // 512 threads of a block have 128 each.
      expect(registers, name).toBeLessThanOrEqual(128);
      // Other versions of ptxas need a few more, or less.
      if (assembler.version === golden.assembler) expect(registers, name).toBe(golden.rows.get(name)?.get(target));
    }
  });

  test('refuses a text with a mistake', () => {
    if (assembler === undefined) return;
    const text = moduleText([kernelFor('stream', { bytes: 4 })], 75);
    expect(() => assemble(assembler, text.replace('ld.global.v4', 'ld.global.v3'), 75)).toThrow('sm_75');
  });
});

test('the table has every kernel, and a number for each target that has the kernel', () => {
  expect([...golden.rows.keys()]).toEqual(allKernels().map(kernelName));
  for (const kernel of allKernels()) {
    const known = [...(golden.rows.get(kernelName(kernel))?.keys() ?? [])];
    expect([kernelName(kernel), known]).toEqual([
      kernelName(kernel),
      targets.filter((target) => levelFor(kernel, target) !== undefined),
    ]);
  }
});

test('npm run ptx writes a file for each kernel and level', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tccl-ptx-test-'));
  try {
    const kernels = allKernels().filter((kernel) => kernelName(kernel).includes('float16'));
    expect(writeKernels(folder, kernels)).toBe(kernels.reduce((sum, kernel) => sum + levelsOf(kernel).length, 0));
    expect(readdirSync(folder).sort()).toEqual(['sm_75', 'sm_80', 'sm_90']);
    expect(existsSync(join(folder, 'sm_80', 'reduce_min_float16_flags.ptx'))).toBe(true);
    expect(readFileSync(join(folder, 'sm_90', 'reduce_sum_float16_multicast.ptx'), 'utf8')).toContain('.target sm_90\n');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
