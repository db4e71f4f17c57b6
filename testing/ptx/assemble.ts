import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kernelName, levelsOf, moduleText, type KernelDescription } from '../../src/runtime/device/ptx/kernels.js';
import { levels, type Level, type Target } from '../../src/runtime/device/ptx/targets.js';

/** Registers of a thread, and bytes of a thread that did not fit into them. */
export interface Usage {
  readonly registers: number;
  readonly spills: number;
  readonly stack: number;
}

/** NVIDIA's assembler, of a CUDA toolkit. */
export interface Assembler {
  readonly path: string;
  /** As in `V13.0.88`: others give other numbers of registers. */
  readonly version: string;
}

/** The assembler at `TCCL_PTXAS` or on the path, or undefined. */
export function findAssembler(environment: NodeJS.ProcessEnv = process.env): Assembler | undefined {
  const path = environment['TCCL_PTXAS'] ?? 'ptxas';
  const { stdout, status } = spawnSync(path, ['--version'], { encoding: 'utf8' });
  const version = status === 0 ? /\bV[\d.]+/.exec(stdout)?.[0] : undefined;
  return version === undefined ? undefined : { path, version };
}

/** Assembles a module; throws what the assembler says if it refuses it. Gives the usage of each kernel by its name. */
export function assemble({ path }: Assembler, text: string, target: Target): Map<string, Usage> {
  const folder = mkdtempSync(join(tmpdir(), 'tccl-ptx-'));
  try {
    const input = join(folder, 'module.ptx');
    writeFileSync(input, text);
    const { status, stderr, error } = spawnSync(path, ['-v', `-arch=sm_${target}`, input, '-o', join(folder, 'out')], {
      encoding: 'utf8',
      maxBuffer: 1 << 28,
    });
    if (error !== undefined) throw error;
    if (status !== 0) throw new Error(`${path} for sm_${target}: ${stderr.trim().slice(0, 2000)}`);
    return usages(stderr);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function usages(report: string): Map<string, Usage> {
  const found = new Map<string, Usage>();
  const pattern =
    /Function properties for (\w+)\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\s+ptxas info\s*: Used (\d+) registers/g;
  for (const [, name = '', stack, stores, loads, registers] of report.matchAll(pattern))
    found.set(name, { registers: Number(registers), spills: Number(stores) + Number(loads), stack: Number(stack) });
  return found;
}

/** The level whose text a GPU takes, or undefined if it lacks the kernel. */
export function levelFor(kernel: KernelDescription, target: Target): Level | undefined {
  return levelsOf(kernel).findLast((level) => level <= target);
}

/** Assembles kernels for a target, each with the text that a GPU takes. */
export function assembleAll(assembler: Assembler, kernels: readonly KernelDescription[], target: Target): Map<string, Usage> {
  const found = new Map<string, Usage>();
  for (const level of levels) {
    const some = kernels.filter((kernel) => levelFor(kernel, target) === level);
    if (some.length === 0) continue;
    const usage = assemble(assembler, moduleText(some, level), target);
    for (const kernel of some) {
      const name = kernelName(kernel);
      const used = usage.get(name);
      if (used === undefined) throw new Error(`${assembler.path} says nothing of ${name}`);
      found.set(name, used);
    }
  }
  return found;
}
