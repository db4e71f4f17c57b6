import { InputError } from '../../errors.js';
import { didYouMean } from '../../suggest.js';
import { trimUnused } from '../topology/combine/trim-unused.js';
import { cloneElement, descendants, detach, type XmlElement } from '../topology/xml/tree.js';

/** Differences between a machine and its topology file. */
export interface Overrides {
  /**
   * The GPUs that have ranks, by `dev`, or the number of first ones. In a rack of several hosts GPUs count on from host to host.
   */
  readonly gpus?: readonly number[] | number;
  /** The network devices that are used, by name, or the number of first ones. */
  readonly nics?: readonly string[] | number;
  /** Speed of each network device as NCCL sees it, Mb/s. */
  readonly nicSpeedMbps?: number;
  /** Data rate that each network device carries, Mb/s, where NCCL sees another: a bond of two ports may count as one. */
  readonly nicCarriesMbps?: number;
  /** True if the network devices can reduce (SHARP). */
  readonly sharp?: boolean;
  /** Tells whether the driver allows GPUs peer-to-peer copies over PCIe. Default: as it does for cards of the model. */
  readonly p2p?: boolean;
}

/**
 * The machine with these differences, as a new tree: branches without devices are trimmed as in NCCL, and ranks are renumbered in
 * their order.
 *
 * @throws InputError where it has no such GPU or NIC
 */
export function applyOverrides(machine: XmlElement, overrides: Overrides): XmlElement {
  if (Object.values(overrides).every((value) => value === undefined)) return machine;
  const root = cloneElement(machine);
  const named = (name: string) => [...descendants(root)].filter((element) => element.name === name);
  if (overrides.gpus !== undefined) {
    keepGpus(named('gpu'), overrides.gpus);
    // A host of a rack without a rank is not part of the job.
    const hosts = new Set(named('gpu').map(hostOf));
    for (const net of named('net')) if (!hosts.has(hostOf(net))) detach(net);
  }
  if (overrides.nics !== undefined) keepNics(named('net'), overrides.nics);
  for (const net of named('net')) {
    if (overrides.nicSpeedMbps !== undefined) net.attributes.set('speed', String(overrides.nicSpeedMbps));
    if (overrides.nicCarriesMbps !== undefined) net.attributes.set('carries', String(overrides.nicCarriesMbps));
    if (overrides.sharp !== undefined) net.attributes.set('coll', overrides.sharp ? '1' : '0');
  }
  if (overrides.p2p !== undefined) for (const gpu of named('gpu')) gpu.attributes.set('p2p', overrides.p2p ? '1' : '0');
  if (overrides.gpus !== undefined || overrides.nics !== undefined) {
    for (const device of [...named('gpu'), ...named('net')]) device.attributes.set('keep', '1');
    trimUnused(root);
  }
  return root;
}

/** The numbers by which {@link Overrides.gpus} names the GPUs of a machine, in the order of their ranks. */
export function gpuNumbers(machine: XmlElement): readonly number[] {
  return numbersOf(inRankOrder([...descendants(machine)].filter(({ name }) => name === 'gpu')));
}

function inRankOrder(gpus: readonly XmlElement[]): XmlElement[] {
  const rankOf = (gpu: XmlElement) => Number(gpu.attributes.get('rank') ?? gpu.attributes.get('dev'));
  return [...gpus].sort((a, b) => rankOf(a) - rankOf(b));
}

function keepGpus(all: readonly XmlElement[], wanted: readonly number[] | number): void {
  const gpus = inRankOrder(all);
  const numbers = numbersOf(gpus);
  const kept = new Set(typeof wanted === 'number' ? [...numbers].sort((a, b) => a - b).slice(0, wanted) : wanted);
  const missing = [...kept].find((number) => !numbers.includes(number));
  if (missing !== undefined)
    throw new InputError('CONTENT', `there is no GPU ${missing}; the machine has ${listed([...numbers].sort((a, b) => a - b))}`);
  if (typeof wanted === 'number' && wanted > gpus.length)
    throw new InputError('CONTENT', `there are no ${wanted} GPUs; the machine has ${gpus.length}`);
  if (kept.size === 0) throw new InputError('CONTENT', 'no GPU is left; keep at least one');
  const isKept = (_: XmlElement, index: number) => kept.has(numbers[index] ?? -1);
  const left = gpus.filter(isKept);
  const gone = gpus.filter((gpu, index) => !isKept(gpu, index));
  // Bus ids repeat on the hosts of a rack.
  const goneBusIds = new Set(gone.map((gpu) => `${hostOf(gpu)} ${gpu.parent?.attributes.get('busid') ?? ''}`));
  for (const gpu of gone) detach(gpu);
  for (const gpu of left)
    for (const link of [...gpu.children])
      if (goneBusIds.has(`${hostOf(gpu)} ${link.attributes.get('target') ?? ''}`)) detach(link);
  left.forEach((gpu, rank) => gpu.attributes.set('rank', String(rank)));
}

/** Numbers of the GPUs, which are in the order of their ranks: `dev`, or in a rack, whose hosts each count from 0, the place. */
function numbersOf(gpus: readonly XmlElement[]): readonly number[] {
  const hosts = new Set(gpus.map(hostOf));
  return gpus.map((gpu, index) => (hosts.size > 1 ? index : Number(gpu.attributes.get('dev'))));
}

function hostOf(device: XmlElement): string {
  for (let element: XmlElement | undefined = device; element !== undefined; element = element.parent)
    if (element.name === 'cpu') return element.attributes.get('host_hash') ?? '';
  return '';
}

/** `0, 1, 3`, or `0 to 71`. */
function listed(numbers: readonly number[]): string {
  const [first = 0] = numbers;
  const isRun = numbers.length > 8 && numbers.every((number, index) => number === first + index);
  return isRun ? `${first} to ${numbers.at(-1)}` : numbers.join(', ');
}

function keepNics(nets: readonly XmlElement[], wanted: readonly string[] | number): void {
  const names = nets.map((net) => net.attributes.get('name') ?? `device ${net.attributes.get('dev') ?? '?'}`);
  if (typeof wanted === 'number') {
    if (wanted > names.length) throw new InputError('CONTENT', `there are no ${wanted} NICs; the machine has ${names.length}`);
  } else {
    const missing = wanted.find((name) => !names.includes(name));
    if (missing !== undefined)
      throw new InputError(
        'CONTENT',
        `there is no NIC ${missing}${didYouMean(missing, names) || `; the machine has ${names.join(', ')}`}`,
      );
  }
  const kept = new Set(typeof wanted === 'number' ? names.slice(0, wanted) : wanted);
  nets.forEach((net, index) => kept.has(names[index] ?? '') || detach(net));
}
