import type { SmiReport } from './nvidia-smi.js';
import { plainText, type TextPlace, type ToolFormat, type ToolLine } from './section.js';

/** `nvidia-smi --query-gpu=… --format=csv`: the same values by the same paths as those of `nvidia-smi -q`. */
export const smiQuery: ToolFormat<'nvidia-smi --query-gpu', SmiReport> = {
  name: 'nvidia-smi --query-gpu',
  commands: ['nvidia-smi --query-gpu', 'nvidia-smi --query-remapped-rows'],
  holds: /,/,
  needles: ['clocks_throttle_reasons.', 'clocks_event_reasons.', 'remapped_rows.', 'pcie.link.', 'ecc.errors.', 'retired_pages.'],
  begins: /^[\w.]{2,80}(?: \[[\w%/]{1,10}\])?(?:, [\w.]{2,80}(?: \[[\w%/]{1,10}\])?){0,80}$/,
  parse,
};

/** Bits of `clocks_throttle_reasons.active` that NVML documents as trouble, with the words of `nvidia-smi -q`. */
const throttleBits: readonly (readonly [bit: number, name: string])[] = [
  [0x08, 'HW Slowdown'],
  [0x20, 'SW Thermal Slowdown'],
  [0x40, 'HW Thermal Slowdown'],
  [0x80, 'HW Power Brake Slowdown'],
];

const columnPaths: Readonly<Record<string, string>> = {
  hw_slowdown: 'Clocks Event Reasons/HW Slowdown',
  hw_thermal_slowdown: 'Clocks Event Reasons/HW Thermal Slowdown',
  hw_power_brake_slowdown: 'Clocks Event Reasons/HW Power Brake Slowdown',
  sw_thermal_slowdown: 'Clocks Event Reasons/SW Thermal Slowdown',
  'remapped_rows.pending': 'Remapped Rows/Pending',
  'remapped_rows.failure': 'Remapped Rows/Remapping Failure Occurred',
  'retired_pages.pending': 'Retired Pages/Pending',
  'ecc.errors.uncorrected.volatile.total': 'ECC Errors/Volatile/Uncorrectable Total',
  'pcie.link.width.max': 'Link Width/Max',
  'pcie.link.width.current': 'Link Width/Current',
};

interface Row {
  readonly busId: string;
  readonly values: Map<string, { value: string; place: TextPlace }>;
}

function parse([head, ...lines]: readonly ToolLine[]): SmiReport | undefined {
  const cells = (text: string) =>
    plainText(text)
      .split(',')
      .map((cell) => cell.trim());
  const columns = cells(head?.text ?? '').map((name) => name.replace(/ \[.*$/, ''));
  const names = ['pci.bus_id', 'gpu_bus_id', 'index', 'uuid', 'gpu_uuid'].map((name) => columns.indexOf(name));
  const nameAt = names.find((at) => at >= 0);
  const gpus = new Map<string, Row>();
  for (const { text, place } of lines) {
    const row = cells(text);
    if (row.length !== columns.length) continue;
    const busId = nameAt === undefined ? String(gpus.size) : (row[nameAt] ?? '');
    const gpu: Row = gpus.get(busId) ?? { busId, values: new Map() };
    gpus.set(busId, gpu);
    columns.forEach((column, at) => {
      for (const [path, value] of valuesOf(column, row[at] ?? '')) {
        // With -l the rows repeat: what was seen once counts.
        if (gpu.values.get(path)?.value !== 'Active') gpu.values.set(path, { value, place });
      }
    });
  }
  return gpus.size === 0 ? undefined : { driver: undefined, cuda: undefined, gpus: [...gpus.values()] };
}

function valuesOf(column: string, value: string): readonly (readonly [path: string, value: string])[] {
  if (/^clocks_(?:throttle|event)_reasons\.active$/.test(column)) {
    const bits = /^0x[0-9a-f]{1,16}$/i.test(value) ? Number(BigInt(value) & 0xffn) : 0;
    return throttleBits.filter(([bit]) => (bits & bit) !== 0).map(([, name]) => [`Clocks Event Reasons/${name}`, 'Active']);
  }
  const path = columnPaths[column.replace(/^clocks_(?:throttle|event)_reasons\./, '')];
  return path === undefined ? [] : [[path, value]];
}
