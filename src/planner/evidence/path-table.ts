import { InputError } from '../../errors.js';
import type { DeviceMatrix, MatrixRow } from '../readers/matrix.js';

/** Ways of PCIe between two devices, from near to far, as `nvidia-smi topo -m` names them. */
export const levels = { PIX: 1, PXB: 2, PHB: 3, NODE: 4, SYS: 5 } as const;
export type Level = (typeof levels)[keyof typeof levels];

/** A checked matrix of one host: GPUs come first, then NICs. */
export interface PathTable {
  readonly gpus: readonly string[];
  readonly nics: readonly string[];
  /** NVLinks between two GPUs. */
  readonly nvlinks: readonly (readonly number[])[];
  /** PCIe between two devices; undefined where NVLinks hide it, or nothing says it. */
  readonly levelOf: (a: number, b: number) => Level | undefined;
  /** By GPU. */
  readonly places: readonly GpuPlace[];
}

interface GpuPlace {
  /** Cores as Linux lists them; undefined where the table does not say. */
  readonly cores: string | undefined;
  readonly numa: number | undefined;
  /** True if the GPU's memory is a NUMA node, as on Grace. */
  readonly hasMemoryNode: boolean;
}

/** Limit of the devices of a host. */
const MOST_DEVICES = 128;

/** Older names: SOC and PSB are of drivers before 2017. */
const levelNames: Readonly<Record<string, Level>> = { ...levels, PSB: levels.PIX, SOC: levels.SYS };

/**
 * Checks a matrix: each pair must have one path in both directions, and paths must fit together.
 *
 * @throws InputError with the line: a row that is missing or cut off, a pair with two paths
 */
export function pathTable(matrix: DeviceMatrix): PathTable {
  const [cut] = matrix.unread;
  if (cut !== undefined)
    throw new InputError('CONTENT', `the matrix of nvidia-smi topo -m: ${cut.device}: ${cut.problem}`, { line: cut.place.line });
  const isGpu = (name: string) => /^GPU\d+$/.test(name);
  const gpus = matrix.columns.filter(isGpu);
  const nics = matrix.columns.filter((name) => !isGpu(name));
  const names = [...gpus, ...nics];
  if (names.length > MOST_DEVICES)
    throw new InputError('TOO_LARGE', `the matrix of nvidia-smi topo -m has more than ${MOST_DEVICES} devices`, {
      line: matrix.rows[0]?.place.line ?? 1,
    });
  const rows = new Map(matrix.rows.map((row) => [row.device, row]));
  const cell = (from: string, to: string) => rows.get(from)?.cells[matrix.columns.indexOf(to)];
  const paths = names.map((a) => names.map((b) => (a === b ? undefined : pathBetween(a, b, cell, rows))));
  const nvlinks = gpus.map((_, a) => gpus.map((__, b) => Number(/^NV(\d+)$/.exec(paths[a]?.[b] ?? '')?.[1] ?? 0)));
  const levelOf = (a: number, b: number) => levelNames[paths[a]?.[b] ?? ''];
  refuseMisfits(names, levelOf, rows);
  return {
    gpus,
    nics: nics.map((nic) => matrix.nics.get(nic) ?? nic),
    nvlinks,
    levelOf,
    places: gpus.map((gpu) => placeOf(rows.get(gpu))),
  };
}

/** The table without some of its NICs, by their names. */
export function withoutNics(table: PathTable, names: ReadonlySet<string>): PathTable {
  const { gpus, nics, levelOf } = table;
  const kept = nics.map((_, nic) => nic).filter((nic) => !names.has(nics[nic] ?? ''));
  if (kept.length === nics.length) return table;
  const numbers = [...gpus.map((_, gpu) => gpu), ...kept.map((nic) => gpus.length + nic)];
  return { ...table, nics: kept.map((nic) => nics[nic] ?? ''), levelOf: (a, b) => levelOf(numbers[a] ?? a, numbers[b] ?? b) };
}

function pathBetween(
  a: string,
  b: string,
  cell: (from: string, to: string) => string | undefined,
  rows: ReadonlyMap<string, MatrixRow>,
): string | undefined {
  const [there, back] = [cell(a, b), cell(b, a)];
  if (there === undefined && back === undefined) {
    // Older drivers print no rows of NICs.
    if (!a.startsWith('GPU') && !b.startsWith('GPU')) return undefined;
    throw new InputError(
      'CONTENT',
      `the matrix of nvidia-smi topo -m has no row of ${a.startsWith('GPU') ? a : b}: paste all of it`,
      { line: [...rows.values()][0]?.place.line ?? 1 },
    );
  }
  if (there !== undefined && back !== undefined && there !== back)
    throw new InputError(
      'CONTENT',
      `the matrix of nvidia-smi topo -m contradicts itself: ${a} to ${b} is ${there}, but ${b} to ${a} is ${back}`,
      { line: rows.get(b)?.place.line ?? 1 },
    );
  const path = there ?? back;
  if (path === 'X')
    throw new InputError('CONTENT', `the matrix of nvidia-smi topo -m says that ${a} and ${b} are one device (X)`, {
      line: (rows.get(a) ?? rows.get(b))?.place.line ?? 1,
    });
  return path;
}

/** Devices near a third one cannot be in different NUMA nodes. */
function refuseMisfits(names: readonly string[], levelOf: PathTable['levelOf'], rows: ReadonlyMap<string, MatrixRow>): void {
  const all = names.map((_, index) => index);
  for (const a of all)
    for (const b of all)
      for (const via of all) {
        const [direct, first, second] = [levelOf(a, b), levelOf(a, via), levelOf(via, b)];
        if (direct !== levels.SYS || first === undefined || second === undefined) continue;
        if (Math.max(first, second) === levels.SYS) continue;
        const [one, other, middle] = [names[a] ?? '', names[b] ?? '', names[via] ?? ''];
        throw new InputError(
          'CONTENT',
          `the matrix of nvidia-smi topo -m contradicts itself: ${one} and ${other} are SYS apart, but both are in the NUMA node of ${middle}`,
          { line: (rows.get(one) ?? rows.get(other))?.place.line ?? 1 },
        );
      }
}

/** `0-55,112-167  0  N/A`: CPU affinity, NUMA affinity, NUMA node of the GPU's memory. */
function placeOf(row: MatrixRow | undefined): GpuPlace {
  const [cores = '', numa = '', memory = ''] = row?.more ?? [];
  return {
    cores: /^\d{1,4}(?:-\d{1,4})?(?:,\d{1,4}(?:-\d{1,4})?)*$/.test(cores) ? cores : undefined,
    numa: /^\d+$/.test(numa) ? Number(numa) : undefined,
    hasMemoryNode: /^\d+$/.test(memory),
  };
}
