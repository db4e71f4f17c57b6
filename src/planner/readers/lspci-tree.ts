import { describedBranch, fullBusId, type PciBranch, type PciTree } from './pci-tree.js';
import { plainText, type TextPlace, type ToolFormat, type ToolLine } from './section.js';

/**
 * `lspci -t`, `-tv` and `-tvnn`: a device and the buses behind it, by their columns.
 *
 *     -+-[0000:17]-+-01.0-[18-1b]----00.0-[19-1b]--+-00.0-[1a]----00.0  Mellanox Technologies MT2910 Family [ConnectX-7]
 *      |           |                               \-01.0-[1b]----00.0  NVIDIA Corporation GH100 [H100 SXM5 80GB]
 *      \-[0000:00]-+-00.0  Intel Corporation Device 09a2
 */
export const lspciTree: ToolFormat<'lspci tree', PciTree> = {
  name: 'lspci tree',
  commands: ['lspci -tv', 'lspci -t', 'lspci -tvnn'],
  needles: ['-['],
  begins: /^[\s>]{0,16}-\+?-?\[(?:[0-9a-f]{4,5}:)?[0-9a-f]{2}(?:-[0-9a-f]{2})?\]-/i,
  restarts: /^[\s>]{0,16}-\+?-?\[(?:[0-9a-f]{4,5}:)?[0-9a-f]{2}(?:-[0-9a-f]{2})?\]-/i,
  holds: /^[\s|>]*[-+\\|]/,
  patience: 3,
  parse,
};

type Growing = { -readonly [Key in keyof PciBranch]: PciBranch[Key] } & { branches: Growing[] };

/** A device or the brackets of a bus, with the column in which it is printed. */
interface Open {
  readonly column: number;
  readonly device: Growing | undefined;
  readonly bus: string;
  readonly holds: Growing[];
}

function parse(lines: readonly ToolLine[]): PciTree | undefined {
  const roots: { bus: string; branches: Growing[] }[] = [];
  const open: Open[] = [];
  for (const { text, place } of lines) readLine(plainText(text), place, open, roots);
  const [first] = lines;
  if (first === undefined || roots.length === 0) return undefined;
  return {
    command: 'lspci -tv',
    host: undefined,
    product: undefined,
    cpu: new Map(),
    roots: roots.map(({ branches }) => ({ numa: undefined, cores: [], branches })),
    place: first.place,
  };
}

const token = /\[(?:([0-9a-f]{4,5}):)?([0-9a-f]{2})(?:-[0-9a-f]{2})?\]|([0-9a-f]{2}\.[0-9a-f])(?![0-9a-f.])/iy;

function readLine(text: string, place: TextPlace, open: Open[], roots: { bus: string; branches: Growing[] }[]): void {
  let at = 0;
  for (;;) {
    // Lines of the drawing.
    while (at < text.length && ' |+-\\>\t'.includes(text.charAt(at))) at++;
    token.lastIndex = at;
    const found = token.exec(text);
    if (found === null) return;
    while ((open.at(-1)?.column ?? -1) >= at) open.pop();
    const [whole, domain, bus, device] = found;
    const above = open.at(-1);
    if (bus !== undefined) {
      const isRoot = above?.device === undefined;
      const full = `${(domain ?? above?.bus.split(':')[0] ?? '0000').slice(-4).toLowerCase()}:${bus.toLowerCase()}`;
      const holds: Growing[] = isRoot ? [] : above.device.branches;
      if (isRoot) roots.push({ bus: full, branches: holds });
      else above.device.isBridge = true;
      open.push({ column: at, device: undefined, bus: full, holds });
      at += whole.length;
      continue;
    }
    if (device === undefined || above === undefined || above.device !== undefined) return;
    const [, description] = /^ {2}(\S.*)$/.exec(text.slice(at + whole.length)) ?? [];
    const branch = describedBranch(fullBusId(`${above.bus}:${device}`), description?.trim() ?? '', place);
    above.holds.push(branch);
    open.push({ column: at, device: branch, bus: above.bus, holds: [] });
    if (description !== undefined) return;
    at += whole.length;
  }
}
