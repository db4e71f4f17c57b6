import { allKernels, kernelName } from '../../src/runtime/device/ptx/kernels.js';
import type { Target } from '../../src/runtime/device/ptx/targets.js';
import type { Usage } from './assemble.js';

/** Registers of each kernel on each target; nothing where a target lacks the kernel. */
export interface RegisterTable {
  readonly assembler: string;
  readonly rows: ReadonlyMap<string, ReadonlyMap<Target, number>>;
}

/** Reads the table that `registerTable` writes. */
export function parseRegisterTable(text: string): RegisterTable {
  const [title = '', header = '', ...lines] = text.trim().split('\n');
  const columns = header
    .trim()
    .split(/\s+/)
    .slice(1)
    .map((name) => Number(name.slice('sm_'.length)) as Target);
  const rows = lines.map((line): [string, Map<Target, number>] => {
    const [name = '', ...numbers] = line.trim().split(/\s+/);
    const known = columns.map((target, i): [Target, number] => [target, Number(numbers[i])]);
    return [name, new Map(known.filter(([, registers]) => !Number.isNaN(registers)))];
  });
  return { assembler: title.split(' ').at(-1) ?? '', rows: new Map(rows) };
}

/** Registers of all kernels on each target as a table. Throws for a kernel that spills. */
export function registerTable(version: string, columns: readonly (readonly [Target, ReadonlyMap<string, Usage>])[]): string {
  const names = allKernels().map(kernelName);
  const width = Math.max(...names.map(({ length }) => length));
  const cells = (name: string): string =>
    columns.map(([target, usages]) => registersText(name, target, usages.get(name)).padStart(7)).join('');
  const header = `${'kernel'.padEnd(width)}${columns.map(([target]) => `sm_${target}`.padStart(7)).join('')}`;
  return [
    `registers of a thread, by ptxas ${version}`,
    header,
    ...names.map((name) => name.padEnd(width) + cells(name)),
    '',
  ].join('\n');
}

function registersText(name: string, target: Target, usage: Usage | undefined): string {
  if (usage === undefined) return '-';
  if (usage.spills > 0 || usage.stack > 0) throw new Error(`${name} spills ${usage.spills} bytes on sm_${target}`);
  return String(usage.registers);
}
