import { InputError, type ErrorCode } from '../../../errors.js';
import { parseBigInteger } from '../c-numbers.js';
import { describeElement, shorten, type XmlElement } from './tree.js';

/**
 * Refuses a topology that no machine can have, although NCCL might accept it silently: bus ids that form a cycle, two GPUs at one
 * bus id, a rank given twice, numbers out of range, an NVLink without target. Peculiarities of real files are accepted: switches
 * that share a bus id, missing attributes, NVLinks to trimmed GPUs or to the GPU itself. `buildSystem` checks NCCL's further
 * requirements.
 *
 * @throws InputError `CONTENT`, about the first such element in the file, with line and column.
 */
export function validateTopology(root: XmlElement): void {
  new Validator(root).validate();
}

/** Inclusive bounds of a number. */
type Range = readonly [least: bigint, most: bigint];

const int32: Range = [-(2n ** 31n), 2n ** 31n - 1n];
const natural: Range = [0n, 2n ** 31n - 1n];
/** -1 stands for "not known". */
const naturalOrUnknown: Range = [-1n, 2n ** 31n - 1n];
const pciNumber: Range = [0n, 0xffff_ffffn];
const hash: Range = [0n, 2n ** 64n - 1n];
const linkCount: Range = [0n, 1024n];

/** Ranges of numeric attributes; all others are text. NCCL would cut numbers to 32 bits and go on. */
const ranges: Readonly<Record<string, Readonly<Record<string, Range>>>> = {
  cpu: { numaid: [-1n, 65_535n], familyid: [0n, 65_535n], modelid: [0n, 65_535n], host_hash: hash },
  // The kernel reports 255 for a link without a device.
  pci: { vendor: pciNumber, device: pciNumber, subsystem_vendor: pciNumber, subsystem_device: pciNumber, link_width: [0n, 255n] },
  gpu: { dev: [-1n, 65_535n], rank: naturalOrUnknown, sm: [0n, 9999n], gdr: int32, mlopart: [-1n, 1n] },
  nvlink: { count: linkCount },
  c2c: { bw: natural, count: linkCount },
  net: {
    dev: [-1n, 65_535n],
    speed: naturalOrUnknown,
    port: naturalOrUnknown,
    guid: hash,
    // Some plugins write 2^32-1 for "without limit".
    maxconn: [-1n, 0xffff_ffffn],
    gdr: int32,
    coll: int32,
    gin: int32,
    rma: int32,
    net: int32,
    rail: [-1n, 32_767n],
    plane: [-1n, 32_767n],
  },
};

/** The attributes of an element that are whole numbers. */
export function integerAttributes(elementName: string): readonly string[] {
  return Object.keys(ranges[elementName] ?? {});
}

/** Attributes that NCCL reads in base 16 whatever their prefix. */
const hexadecimal = new Set(['host_hash', 'guid']);

/** A `<pci>` with those above it. */
interface Above {
  readonly busId: bigint;
  readonly above: Above | undefined;
}

/** An NVLink between GPUs. */
interface GpuLink {
  readonly element: XmlElement;
  readonly from: string;
  readonly to: string;
}

class Validator {
  readonly #root: XmlElement;
  /** By host and bus id. */
  readonly #gpus = new Map<string, XmlElement>();
  /** Devices that are no GPU, by host and bus id. */
  readonly #others = new Map<string, XmlElement>();
  readonly #ranks = new Map<number, XmlElement>();
  readonly #links: GpuLink[] = [];
  /** `from to` of every link. */
  readonly #linked = new Set<string>();
  /** By target GPU: the first link without one back. */
  readonly #unanswered = new Map<string, GpuLink>();

  constructor(root: XmlElement) {
    this.#root = root;
  }

  validate(): void {
    if (this.#root.name !== 'system') {
      throw fault(this.#root, 'is no topology: its root must be <system>');
    }
    for (const cpu of this.#root.children) {
      if (cpu.name !== 'cpu') continue;
      checkNumbers(cpu);
      const host = parseBigInteger(cpu.attributes.get('host_hash') ?? '0', 16).toString(16);
      this.#walk(cpu, host, undefined);
    }
    for (const { from, to } of this.#links) this.#linked.add(`${from} ${to}`);
    for (const link of this.#links) {
      if (!this.#linked.has(`${link.to} ${link.from}`) && !this.#unanswered.has(link.to)) this.#unanswered.set(link.to, link);
    }
    for (const link of this.#links) this.#checkLink(link);
  }

  #walk(parent: XmlElement, host: string, above: Above | undefined): void {
    for (const child of parent.children) {
      if (child.name === 'pci') this.#pci(child, host, above);
      if (child.name === 'nic') for (const net of child.children) checkNumbers(net);
    }
  }

  #pci(element: XmlElement, host: string, above: Above | undefined): void {
    checkNumbers(element);
    const busId = readBusId(element, 'busid');
    for (let ancestor = above; ancestor !== undefined; ancestor = ancestor.above) {
      if (ancestor.busId === busId) throw fault(element, 'is below a device of the same bus id: the tree would have a cycle');
    }
    const key = `${host} ${busId.toString(16)}`;
    const gpus = element.children.filter((child) => child.name === 'gpu');
    if (gpus.length > 0) {
      const twin = this.#gpus.get(key);
      if (twin !== undefined) throw fault(element, `is a second GPU of this bus id; the first is on line ${twin.line}`);
      this.#gpus.set(key, element);
    } else if (!isGpuClass(element)) this.#others.set(key, element);
    for (const gpu of gpus) this.#gpu(gpu, host, key);
    this.#walk(element, host, { busId, above });
  }

  #gpu(element: XmlElement, host: string, key: string): void {
    checkNumbers(element);
    const rankText = element.attributes.get('rank');
    if (rankText !== undefined) {
      const rank = Number(parseBigInteger(rankText, 0));
      const twin = this.#ranks.get(rank);
      if (twin !== undefined) throw fault(element, `has rank ${rank}, as the GPU on line ${twin.line} has`);
      this.#ranks.set(rank, element);
    }
    for (const link of element.children) {
      checkNumbers(link);
      if (link.name !== 'nvlink' || !isGpuClass(link, 'tclass')) continue;
      const target = readBusId(link, 'target');
      this.#links.push({ element: link, from: key, to: `${host} ${target.toString(16)}` });
    }
  }

  /**
   * A target that is not in the file may be a trimmed GPU. If another GPU of the file has an unanswered link to this one, the
   * target is that GPU with a wrong bus id.
   */
  #checkLink({ element, from, to }: GpuLink): void {
    if (this.#gpus.has(to)) return;
    const other = this.#others.get(to);
    if (other !== undefined) throw fault(element, `leads to no GPU, but to ${describeElement(other)}`);
    const unanswered = this.#unanswered.get(from);
    if (unanswered === undefined) return;
    const partner = this.#gpus.get(unanswered.from);
    throw fault(
      element,
      `is an NVLink to nowhere: no GPU has this bus id, and ${
        partner === undefined ? 'a GPU' : describeElement(partner)
      } has a link to this GPU that nothing answers`,
    );
  }
}

function isGpuClass(element: XmlElement, attribute = 'class'): boolean {
  return element.attributes.get(attribute)?.startsWith('0x03') ?? false;
}

/** A bus id as a number; 0 if it is missing, which `buildSystem` refuses. */
function readBusId(element: XmlElement, attribute: string): bigint {
  const text = element.attributes.get(attribute);
  if (text === undefined) return 0n;
  const digits = text.replaceAll(/[.:]/g, '');
  if (!/^[0-9a-fA-F]{1,15}$/.test(digits)) {
    throw fault(
      element,
      `${attribute}="${shorten(text)}" is no bus id; write domain:bus:device.function in hexadecimal, as 0000:1b:00.0`,
    );
  }
  return BigInt(`0x${digits}`);
}

function checkNumbers(element: XmlElement): void {
  for (const [name, [least, most]] of Object.entries(ranges[element.name] ?? {})) {
    const text = element.attributes.get(name);
    if (text === undefined) continue;
    const value = parseBigInteger(text, hexadecimal.has(name) ? 16 : 0);
    if (value < least || value > most) {
      throw fault(element, `${name}="${shorten(text)}" is out of range; it can be ${least} to ${most}`);
    }
  }
  const latency = element.name === 'net' ? (element.attributes.get('latency') ?? '0') : '0';
  const latencyUs = Number.parseFloat(latency);
  // C's strtof reads these words as numbers, and nothing compares with a NaN.
  if (latencyUs < 0 || latencyUs === Infinity || /^\s*[+-]?(nan|inf)/i.test(latency)) {
    throw fault(element, `latency="${shorten(latency)}" is no time in microseconds`);
  }
}

function fault(element: XmlElement, problem: string, code: ErrorCode = 'CONTENT'): InputError {
  return new InputError(code, `${describeElement(element)} ${problem}`, {
    ...(element.line > 0 ? { line: element.line, column: element.column } : {}),
  });
}
