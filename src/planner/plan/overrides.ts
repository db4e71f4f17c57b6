import { InputError } from '../../errors.js';
import { didYouMean } from '../../suggest.js';
import { trimUnused } from '../topology/combine/trim-unused.js';
import { cloneElement, descendants, detach, type XmlElement } from '../topology/xml/tree.js';

/** Differences between a machine and its topology file. */
export interface Overrides {
  /** The GPUs that have ranks, by `dev`, or the number of first ones; the others are ignored. */
  readonly gpus?: readonly number[] | number;
  /** The network devices that are used, by name, or the number of first ones. */
  readonly nics?: readonly string[] | number;
  /** Speed of each network device, Mb/s. */
  readonly nicSpeedMbps?: number;
  /** True if the network devices can reduce (SHARP). */
  readonly sharp?: boolean;
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
  if (overrides.gpus !== undefined) keepGpus(named('gpu'), overrides.gpus);
  if (overrides.nics !== undefined) keepNics(named('net'), overrides.nics);
  for (const net of named('net')) {
    if (overrides.nicSpeedMbps !== undefined) net.attributes.set('speed', String(overrides.nicSpeedMbps));
    if (overrides.sharp !== undefined) net.attributes.set('coll', overrides.sharp ? '1' : '0');
  }
  if (overrides.gpus !== undefined || overrides.nics !== undefined) {
    for (const device of [...named('gpu'), ...named('net')]) device.attributes.set('keep', '1');
    trimUnused(root);
  }
  return root;
}

function keepGpus(gpus: readonly XmlElement[], wanted: readonly number[] | number): void {
  const devices = gpus.map((gpu) => Number(gpu.attributes.get('dev')));
  const kept = new Set(typeof wanted === 'number' ? [...devices].sort((a, b) => a - b).slice(0, wanted) : wanted);
  const missing = [...kept].find((dev) => !devices.includes(dev));
  if (missing !== undefined) throw new InputError('CONTENT', `there is no GPU ${missing}; the machine has ${devices.join(', ')}`);
  if (typeof wanted === 'number' && wanted > devices.length)
    throw new InputError('CONTENT', `there are no ${wanted} GPUs; the machine has ${devices.length}`);
  if (kept.size === 0) throw new InputError('CONTENT', 'no GPU is left; keep at least one');
  const left = gpus.filter((gpu) => kept.has(Number(gpu.attributes.get('dev'))));
  const gone = gpus.filter((gpu) => !left.includes(gpu));
  const goneBusIds = new Set(gone.map((gpu) => gpu.parent?.attributes.get('busid')));
  for (const gpu of gone) detach(gpu);
  for (const link of left.flatMap((gpu) => [...gpu.children]))
    if (goneBusIds.has(link.attributes.get('target') ?? '')) detach(link);
  const rankOf = (gpu: XmlElement) => Number(gpu.attributes.get('rank') ?? gpu.attributes.get('dev'));
  [...left].sort((a, b) => rankOf(a) - rankOf(b)).forEach((gpu, rank) => gpu.attributes.set('rank', String(rank)));
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
