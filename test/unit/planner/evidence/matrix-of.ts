import { descendants, type XmlElement } from '../../../../src/planner/topology/xml/tree.js';

/** Output of `nvidia-smi topo -m` for a machine: each device's switches decide, before NCCL changes the tree. */
export function matrixOf(root: XmlElement, options: { readonly legend: boolean }): string {
  const named = (name: string) => [...descendants(root)].filter((element) => element.name === name);
  const number = (element: XmlElement) => Number(element.attributes.get('dev'));
  const gpus = named('gpu').sort((a, b) => number(a) - number(b));
  const nets = named('net').sort((a, b) => number(a) - number(b));
  const netName = (net: XmlElement) => net.attributes.get('name') ?? '';
  const shown = new Map([
    ...gpus.map((gpu, index) => [gpu, `GPU${index}`] as const),
    ...nets.map((net, index) => [net, options.legend ? `NIC${index}` : netName(net)] as const),
  ]);
  const devices = [...gpus, ...nets];
  const header = ['', ...devices.map((device) => shown.get(device) ?? ''), 'CPU Affinity', 'NUMA Affinity', 'GPU NUMA ID'];
  const rows = devices.map((from) => [
    shown.get(from) ?? '',
    ...devices.map((to) => (from === to ? ' X ' : (nvlinksBetween(from, to) ?? pciePath(from, to)))),
    ...(from.name === 'gpu' ? [coresOf(from), cpuOf(from).attributes.get('numaid') ?? '', 'N/A'] : []),
  ]);
  const legend = options.legend ? ['', 'NIC Legend:', '', ...nets.map((net, index) => `  NIC${index}: ${netName(net)}`)] : [];
  const words = [
    '',
    'Legend:',
    '',
    '  X    = Self',
    '  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)',
  ];
  return [...[header, ...rows].map((row) => row.join('\t')), ...words, ...legend, ''].join('\n');
}

function nvlinksBetween(from: XmlElement, to: XmlElement): string | undefined {
  if (from.name !== 'gpu' || to.name !== 'gpu') return undefined;
  const links = from.children.filter(({ name }) => name === 'nvlink');
  const target = busIdOf(to);
  const count = (isCounted: (link: XmlElement) => boolean) =>
    links.filter(isCounted).reduce((sum, link) => sum + Number(link.attributes.get('count')), 0);
  const direct = count((link) => link.attributes.get('target') === target);
  const switched = count((link) => link.attributes.get('tclass') === '0x068000');
  const total = direct + switched;
  return total === 0 ? undefined : `NV${total}`;
}

function pciePath(from: XmlElement, to: XmlElement): string {
  if (cpuOf(from) !== cpuOf(to)) return 'SYS';
  const [first, second] = [switchesOf(from), switchesOf(to)];
  const shared = first.find((each) => second.includes(each));
  if (shared === undefined) return from.name === 'net' && busIdOf(from) === busIdOf(to) ? 'PIX' : 'NODE';
  return first[0] === shared && second[0] === shared ? 'PIX' : 'PXB';
}

/** PCI switches above a device, the nearest first. */
function switchesOf(device: XmlElement): XmlElement[] {
  const above: XmlElement[] = [];
  for (let at = deviceOf(device).parent; at !== undefined; at = at.parent) if (at.name === 'pci') above.push(at);
  return above;
}

function deviceOf(element: XmlElement): XmlElement {
  for (let at: XmlElement | undefined = element; at !== undefined; at = at.parent) if (at.name === 'pci') return at;
  return element;
}

function busIdOf(element: XmlElement): string {
  return deviceOf(element).attributes.get('busid') ?? '';
}

function cpuOf(element: XmlElement): XmlElement {
  for (let at: XmlElement | undefined = element; at !== undefined; at = at.parent) if (at.name === 'cpu') return at;
  return element;
}

/** `0-15,64-79` of a mask. */
function coresOf(element: XmlElement): string {
  const mask = BigInt(`0x${(cpuOf(element).attributes.get('affinity') ?? '0').replaceAll(',', '')}`);
  const ranges: string[] = [];
  for (let core = 0; mask >> BigInt(core) > 0n; core++) {
    if (((mask >> BigInt(core)) & 1n) === 0n) continue;
    const first = core;
    while (((mask >> BigInt(core + 1)) & 1n) === 1n) core++;
    ranges.push(first === core ? `${first}` : `${first}-${core}`);
  }
  return ranges.join(',');
}
