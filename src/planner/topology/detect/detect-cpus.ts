import { setMissing } from '../catalogue/build.js';
import { hashBytes } from '../build/hash.js';
import { childrenNamed, createElement, type XmlElement } from '../xml/tree.js';
import { formatHex } from '../xml/write.js';
import type { MachineFiles } from './machine-files.js';

/** The `<cpu>` elements of a machine: one for each NUMA node. */
export class CpuDetector {
  readonly #files: MachineFiles;
  readonly #system: XmlElement;
  /** Attributes that all of them have. */
  readonly #model: readonly (readonly [string, string])[];
  readonly #hostHash: readonly (readonly [string, string])[];

  /** CPUs that the system has already belong to this host, regardless of their attributes. */
  constructor(files: MachineFiles, system: XmlElement) {
    this.#files = files;
    this.#system = system;
    this.#model = cpuModel(files.readText('/proc/cpuinfo') ?? '');
    this.#hostHash = hostHash(files);
    for (const cpu of childrenNamed(system, 'cpu')) for (const [name, value] of this.#hostHash) cpu.attributes.set(name, value);
  }

  /** Adds all NUMA nodes that have cores. A kernel without NUMA has one node of all cores. */
  addAll(): void {
    const nodes = this.#files.list('/sys/devices/system/node').flatMap((name) => /^node(\d+)$/.exec(name)?.[1] ?? []);
    nodes.sort((a, b) => Number(a) - Number(b));
    for (const node of nodes) if (/[1-9a-f]/.test(this.#affinity(node))) this.cpu(node);
    if (this.#system.children.length === 0)
      this.cpu('0', maskOfList(this.#files.readText('/sys/devices/system/cpu/online') ?? ''));
  }

  /** The NUMA node of a number of /sys, including `-1`. */
  cpu(numaId: string, affinity?: string): XmlElement {
    const known = childrenNamed(this.#system, 'cpu').find((cpu) => cpu.attributes.get('numaid') === numaId);
    const cpu = known ?? createElement('cpu', this.#system, [...this.#hostHash, ['numaid', numaId]]);
    this.fill(cpu, affinity);
    return cpu;
  }

  /** Sets missing attributes. */
  fill(cpu: XmlElement, affinity = this.#affinity(cpu.attributes.get('numaid') ?? '')): void {
    setMissing(cpu, [['affinity', affinity], ...this.#model]);
  }

  #affinity(numaId: string): string {
    return this.#files.readText(`/sys/devices/system/node/node${numaId}/cpumap`) ?? '';
  }
}

/** Architecture, and on x86 vendor, family and model, from /proc/cpuinfo. */
function cpuModel(cpuinfo: string): [string, string][] {
  const field = (name: string) => new RegExp(`^${name}\\s*:[ \\t]*(.*)$`, 'm').exec(cpuinfo)?.[1];
  const vendor = field('vendor_id');
  if (vendor !== undefined) {
    return [
      ['arch', 'x86_64'],
      ['vendor', vendor],
      ['familyid', ncclFamily(Number(field('cpu family')))],
      ['modelid', field('model') ?? '0'],
    ];
  }
  if (field('CPU implementer') !== undefined) return [['arch', 'arm64']];
  if (/POWER/i.test(field('cpu') ?? '')) return [['arch', 'ppc64']];
  return [];
}

/** Linux adds the extended family to base family 15; NCCL adds it shifted by four bits: 25 becomes 175. */
function ncclFamily(family: number): string {
  return String(family > 15 ? 15 + ((family - 15) << 4) : family);
}

/** The attribute by which NCCL distinguishes hosts: a hash of name and boot. A captured machine with neither has none. */
function hostHash(files: MachineFiles): [string, string][] {
  const text = ['hostname', 'random/boot_id'].map((name) => files.readText(`/proc/sys/kernel/${name}`) ?? '').join('');
  return text === '' ? [] : [['host_hash', formatHex(hashBytes(Uint8Array.from(text, (character) => character.charCodeAt(0))))]];
}

/** The mask of a list of cores, as `0-3,8`. */
function maskOfList(list: string): string {
  let mask = 0n;
  for (const range of list.split(',').filter((part) => part !== '')) {
    const [first = 0, last = first] = range.split('-').map(Number);
    for (let core = first; core <= last; core++) mask |= 1n << BigInt(core);
  }
  const digits = mask.toString(16);
  return (digits.padStart(Math.ceil(digits.length / 8) * 8, '0').match(/.{8}/g) ?? []).join(',');
}
