import { linksOfText, linksOfXml, matrixLine, type NvlinkSpeeds } from './lstopo-links.js';
import { fullBusId, type PciBranch, type PciRoot, type PciTree } from './pci-tree.js';
import { plainText, type TextPlace, type ToolFormat, type ToolLine } from './section.js';

/** An object of hwloc, from text or XML. */
interface HwlocObject {
  /** `NUMANode`, `HostBridge`, `PCIBridge`, `PCI`, `Net`, `OpenFabrics`, `CUDA`, `NVML` … */
  readonly type: string;
  /** The system's number (`P#3`). */
  readonly index: number | undefined;
  readonly name: string;
  readonly values: Map<string, string>;
  readonly children: HwlocObject[];
  readonly place: TextPlace;
}

/** Levels of objects within objects that are read. */
const DEEPEST = 200;

const WORDS =
  'Machine|Package|Socket|Group\\d*|NUMANode|Die|MemCache|L\\d[di]?(?:Cache)?|Core|PU|HostBridge|PCIBridge|PCI|GPU|CoProc|Co-Processor|OpenFabrics|OpenFab|Net|Network|Block|DMA|Misc|Bridge|System|Memory';

/** Text of `lstopo`, `lstopo-no-graphics` and `hwloc-ls`, with and without `-v`, of hwloc 1 and 2. */
export const lstopoText: ToolFormat<'lstopo', PciTree> = {
  name: 'lstopo',
  commands: ['lstopo-no-graphics', 'lstopo --of console', 'lstopo --of txt', 'hwloc-ls'],
  needles: ['machine (', 'hostbridge'],
  begins: /^\s{0,16}Machine (?:L#0 )?\(.{0,400}\d ?[KMGT]B|^\s{0,40}HostBridge(?: L#\d+| \(buses|\s*$)/,
  restarts: /^\s{0,16}Machine (?:L#0 )?\(.{0,400}\d ?[KMGT]B/,
  holds: new RegExp(`^\\s*(?:${WORDS})(?:\\b|\\()|${matrixLine.source}`),
  parse: (lines) => treeOf(objectsOfText(lines), lines[0]?.place, linksOfText(lines)),
};

/** `lstopo --of xml`. */
export const lstopoXml: ToolFormat<'lstopo', PciTree> = {
  name: 'lstopo',
  commands: ['lstopo-no-graphics --of xml'],
  needles: ['<topology', '<object type="'],
  begins: /^\s*<topology\b|^\s*<object type="/,
  restarts: /^\s*<topology\b/,
  holds: /^\s*<|^\s*\.\.\.\s*$/,
  parse: (lines) => {
    const objects = objectsOfXml(lines);
    return treeOf(objects, lines[0]?.place, linksOfXml(lines, namesOf(objects)));
  },
};

/** Objects by the indentation of their lines. */
function objectsOfText(lines: readonly ToolLine[]): HwlocObject[] {
  const roots: HwlocObject[] = [];
  const open: { readonly indent: number; readonly object: HwlocObject }[] = [];
  for (const { text: raw, place } of lines) {
    const text = plainText(raw).replaceAll('\t', '        ');
    if (matrixLine.test(text)) continue;
    const indent = text.search(/\S/);
    while ((open.at(-1)?.indent ?? -1) >= indent) open.pop();
    if (open.length > DEEPEST) continue;
    let parent = open.at(-1)?.object;
    // `L2 L#0 (512KB) + Core L#0 + PU L#0 (P#0)`: each holds the next.
    for (const part of text.trim().split(' + ')) {
      const object = objectOfText(part, place);
      (parent?.children ?? roots).push(object);
      parent = object;
    }
    if (parent !== undefined) open.push({ indent, object: parent });
  }
  return roots;
}

function objectOfText(text: string, place: TextPlace): HwlocObject {
  const [, word = '', kind = ''] = /^([\w-]+)(?:\((\w+)\))?/.exec(text) ?? [];
  const [, index] = /\(?P#(\d+)/.exec(text) ?? [];
  const [, name = ''] = /"([^"]*)"\s*$/.exec(text) ?? [];
  const values = new Map<string, string>();
  for (const [, key = '', quoted, plain = ''] of text.matchAll(/(\w+)=(?:"([^"]*)"|([^\s)]+))/g))
    values.set(key, quoted ?? plain);
  const [, busId] = /^PCI (?:L#\d+ )?(?:\()?((?:[0-9a-f]{4,5}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])\b/i.exec(text) ?? [];
  if (busId !== undefined) values.set('busid', busId);
  const [, ids] = /^PCI (?:L#\d+ )?([0-9a-f]{4}:[0-9a-f]{4})\b/i.exec(text) ?? [];
  if (ids !== undefined) values.set('id', ids);
  const [, className = ''] = /^PCI [^()]*\((\w+)\)/.exec(text) ?? [];
  const code = classNames[className] ?? /\bclass=([0-9a-f]{4})/i.exec(text)?.[1];
  if (code !== undefined) values.set('class', code);
  const type = ['CoProc', 'GPU', 'Co-Processor'].includes(word) && kind !== '' ? kind : (textTypes[word] ?? word);
  return { type, index: index === undefined ? undefined : Number(index), name, values, children: [], place };
}

const textTypes: Readonly<Record<string, string>> = { Network: 'Net', OpenFab: 'OpenFabrics', Socket: 'Package' };
/** Classes of PCI as lstopo's text names them. */
const classNames: Readonly<Record<string, string>> = {
  '3D': '0302',
  VGA: '0300',
  Display: '0380',
  InfiniBand: '0207',
  IB: '0207',
  Ethernet: '0200',
  Fabric: '0208',
  NVMExp: '0108',
  NVMExpress: '0108',
  Storage: '0180',
};

/** Kinds of devices of the system, by hwloc's number. */
const osTypes: Readonly<Record<string, string>> = { '1': 'GPU', '2': 'Net', '3': 'OpenFabrics', '5': 'CoProc' };

function objectsOfXml(lines: readonly ToolLine[]): HwlocObject[] {
  const roots: HwlocObject[] = [];
  const open: HwlocObject[] = [];
  for (const { text, place } of lines)
    for (const [, closes, tag = '', attributes = '', isEmpty] of text.matchAll(/<(\/?)(\w+)((?:\s+[\w:]+="[^"]*")*)\s*(\/?)>/g)) {
      if (tag === 'info' && closes === '') {
        const [, name = ''] = /\sname="([^"]*)"/.exec(attributes) ?? [];
        open.at(-1)?.values.set(name, decode(/\svalue="([^"]*)"/.exec(attributes)?.[1] ?? ''));
      }
      if (tag !== 'object') continue;
      if (closes === '/') {
        open.pop();
        continue;
      }
      const object = objectOfXml(attributes, place);
      // Excerpts omit ends of objects: no PCI device holds another one.
      if (isPci(object)) while (open.length > 0 && !holdsPci(open.at(-1))) open.pop();
      (open.at(-1)?.children ?? roots).push(object);
      if (isEmpty === '' && open.length <= DEEPEST) open.push(object);
    }
  return roots;
}

function isPci({ type }: HwlocObject): boolean {
  return type === 'PCI' || type === 'PCIBridge';
}

function holdsPci(object: HwlocObject | undefined): boolean {
  return object !== undefined && object.type !== 'PCI' && object.values.get('type') !== 'OSDev';
}

function objectOfXml(attributes: string, place: TextPlace): HwlocObject {
  const values = new Map<string, string>();
  for (const [, name = '', value = ''] of attributes.matchAll(/([\w:]+)="([^"]*)"/g)) values.set(name, decode(value));
  const text = values.get('type') ?? '';
  const subtype = values.get('subtype') ?? '';
  const type =
    text === 'Bridge'
      ? values.get('bridge_type')?.startsWith('0') === true
        ? 'HostBridge'
        : 'PCIBridge'
      : text === 'PCIDev'
        ? 'PCI'
        : text === 'OSDev'
          ? ['CUDA', 'NVML'].includes(subtype)
            ? subtype
            : (osTypes[values.get('osdev_type') ?? ''] ?? text)
          : text;
  const [, code = '', ids = '', board = ''] =
    /^([0-9a-f]{4}) \[([0-9a-f]{4}:[0-9a-f]{4})\](?: \[([0-9a-f]{4}:[0-9a-f]{4})\])?/i.exec(values.get('pci_type') ?? '') ?? [];
  const renamed = [
    ['busid', values.get('pci_busid')],
    ['class', code],
    ['id', ids],
    ['board', board],
    ['link', values.get('pci_link_speed')],
  ] as const;
  for (const [name, value] of renamed) if (value !== undefined && value !== '') values.set(name, value);
  const name = text === 'OSDev' ? (values.get('name') ?? '') : '';
  const index = values.get('os_index');
  return { type, index: index === undefined ? undefined : Number(index), name, values, children: [], place };
}

function decode(text: string): string {
  const entities: Readonly<Record<string, string>> = { quot: '"', amp: '&', lt: '<', gt: '>', apos: "'" };
  return text.replaceAll(/&(quot|amp|lt|gt|apos);/g, (_, name: string) => entities[name] ?? '');
}

/** Names of objects by hwloc's index: those of the system, or bus ids, or `Package`. */
function namesOf(objects: readonly HwlocObject[]): (index: string) => string | undefined {
  const names = new Map<string, string>();
  const visit = ({ type, name, values, children }: HwlocObject): void => {
    names.set(values.get('gp_index') ?? '', name === '' ? (values.get('busid') ?? type) : name);
    children.forEach(visit);
  };
  objects.forEach(visit);
  return (index) => names.get(index);
}

function treeOf(
  objects: readonly HwlocObject[],
  place: TextPlace | undefined,
  nvlinks: NvlinkSpeeds | undefined,
): PciTree | undefined {
  if (objects.length === 0 || place === undefined) return undefined;
  const roots: PciRoot[] = [];
  const machine = objects.find(({ type }) => type === 'Machine');
  const cpu = new Map<string, string>();
  const visit = (object: HwlocObject, above: readonly HwlocObject[]): void => {
    if (object.type === 'HostBridge') {
      roots.push(rootOf(object, above));
      return;
    }
    // hwloc omits host bridges on request.
    if (object.type === 'PCIBridge' || object.type === 'PCI') {
      roots.push({ ...localityOf(above), branches: [branchOf(object)] });
      return;
    }
    if (object.type === 'Package') readCpu(object, cpu);
    for (const child of object.children) visit(child, [...above, object]);
  };
  for (const object of objects) visit(object, []);
  if (machine?.values.has('Architecture') === true) cpu.set('Architecture', machine.values.get('Architecture') ?? '');
  if (roots.length === 0 && machine === undefined) return undefined;
  return {
    command: 'lstopo',
    host: machine?.values.get('HostName'),
    product: machine?.values.get('DMIProductName'),
    cpu,
    roots,
    nvlinks,
    place,
  };
}

function rootOf(bridge: HwlocObject, above: readonly HwlocObject[]): PciRoot {
  const branches = bridge.children.filter(({ type }) => type === 'PCIBridge' || type === 'PCI').map(branchOf);
  return { ...localityOf(above), branches };
}

/** The NUMA node of the innermost object that has one: it holds the node (hwloc 2) or is one (hwloc 1). */
function localityOf(above: readonly HwlocObject[]): Pick<PciRoot, 'numa' | 'cores'> {
  for (const object of [...above].reverse()) {
    const node = object.type === 'NUMANode' ? object : object.children.find(({ type }) => type === 'NUMANode');
    if (node?.index !== undefined) return { numa: node.index, cores: coresOf(object) };
  }
  return { numa: undefined, cores: [] };
}

function coresOf(object: HwlocObject): number[] {
  const own = object.type === 'PU' && object.index !== undefined ? [object.index] : [];
  return [...own, ...object.children.flatMap(coresOf)];
}

function readCpu({ values }: HwlocObject, cpu: Map<string, string>): void {
  const names = [
    ['CPUVendor', 'Vendor ID'],
    ['CPUFamilyNumber', 'CPU family'],
    ['CPUModelNumber', 'Model'],
    ['CPUModel', 'Model name'],
  ] as const;
  for (const [from, to] of names) {
    const value = values.get(from);
    if (value !== undefined) cpu.set(to, value.trim());
  }
}

function branchOf({ type, values, children, place }: HwlocObject): PciBranch {
  const busId = values.get('busid');
  const [vendor, device] = idsOf(values.get('id'));
  const [boardVendor, boardDevice] = idsOf(values.get('board'));
  const link = Number.parseFloat(values.get('link') ?? '');
  const inner = children.filter((child) => child.type !== 'PCIBridge' && child.type !== 'PCI');
  const names = inner.flatMap(({ type: kind, name }): PciBranch['names'] => {
    if (name === '') return [];
    if (kind === 'CUDA' || kind === 'NVML' || name.startsWith('cuda') || name.startsWith('nvml')) return [{ kind: 'gpu', name }];
    if (kind === 'Net') return [{ kind: 'net', name }];
    return kind === 'OpenFabrics' ? [{ kind: 'rdma', name }] : [];
  });
  const states = inner.flatMap((child) => [...child.values].filter(([name]) => /^Port\d+State$/.test(name)));
  return {
    busId: busId === undefined ? undefined : fullBusId(busId),
    isBridge: type === 'PCIBridge',
    classCode: values.get('class'),
    vendor,
    device,
    subsystem: boardVendor === undefined || boardDevice === undefined ? undefined : [boardVendor, boardDevice],
    description: [values.get('PCIVendor'), values.get('PCIDevice')].filter((part) => part !== undefined).join(' '),
    gbps: link > 0 ? link : undefined,
    names,
    product: inner.map((child) => child.values.get('GPUModel') ?? '').find((model) => model !== '') ?? '',
    isActive: states.length === 0 ? undefined : states.some(([, state]) => state === '4'),
    branches: children.filter((child) => child.type === 'PCIBridge' || child.type === 'PCI').map(branchOf),
    place,
  };
}

/** `10de:2330` as numbers. */
function idsOf(text = ''): [vendor?: number, device?: number] {
  const [, vendor, device] = /^([0-9a-f]{4}):([0-9a-f]{4})$/i.exec(text) ?? [];
  return vendor === undefined || device === undefined ? [] : [Number.parseInt(vendor, 16), Number.parseInt(device, 16)];
}
