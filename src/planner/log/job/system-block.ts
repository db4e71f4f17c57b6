import type { LogPlace } from '../lines/line.js';
import { ownText } from '../lines/own-text.js';

/** A link of the machine in NCCL's output, in its direction; bandwidth in GB/s. */
export interface LoggedWire {
  readonly from: string;
  readonly to: string;
  readonly type: string;
  readonly gbps: number;
  /** The text in parentheses behind `to`: the rank of a GPU, guid, port and bandwidth of a NIC. */
  readonly detail: string;
  readonly place: LogPlace;
}

/** A machine: NCCL's lines between `=== System` and the line of equal signs. */
export interface LoggedMachine {
  readonly host: string;
  readonly wires: readonly LoggedWire[];
  readonly cpus: readonly LoggedCpu[];
}

/** A NUMA domain, with NCCL's numbers of its kind. */
interface LoggedCpu {
  readonly name: string;
  readonly arch: number;
  readonly vendor: number;
  readonly model: number;
}

interface Block {
  readonly host: string;
  readonly wires: LoggedWire[];
  readonly cpus: LoggedCpu[];
  /** Nodes on the way from the CPU to the last line, with the column at which their line begins. */
  path: { readonly column: number; readonly name: string }[];
}

const MACHINE_LIMIT = 10_000;
const WIRE_LIMIT = 4096;
const CPU_LIMIT = 256;
const OPEN_LIMIT = 100_000;
const nodeForm = /^((?:CPU|GPU|PCI|NIC|NET|NVS|DEV|GIN)\/[0-9a-fA-F-]{1,40})(?: \((\d{1,3})\/(\d{1,3})\/(-?\d{1,3})\))?/;
const wireForm =
  /^( *)\+ ([A-Z0-9]{2,4})\[ *([\d.]{1,12})\] - ((?:CPU|GPU|PCI|NIC|NET|NVS|DEV|GIN)\/[0-9a-fA-F-]{1,40})(?: \(([\w./-]{1,60})\))?/;

/** Joins the lines of NCCL_DEBUG_SUBSYS=GRAPH to machines: one for each host, because all ranks of a host print the same. */
export class SystemBlocks {
  readonly #open = new Map<string, Block>();
  readonly #machines = new Map<string, LoggedMachine>();

  read(message: string, host: string, thread: string, torn: boolean, place: LogPlace): void {
    const first = message.charCodeAt(0);
    if (first === 61 /* = */) this.#readRule(message, host, thread);
    else if (this.#open.size > 0) {
      const block = this.#open.get(thread);
      if (block === undefined) return;
      if (torn || block.wires.length >= WIRE_LIMIT) this.#open.delete(thread);
      else readNode(block, message, place);
    }
  }

  list(): LoggedMachine[] {
    return [...this.#machines.values()];
  }

  #readRule(message: string, host: string, thread: string): void {
    if (message.startsWith('=== System')) {
      if (!this.#machines.has(host) && this.#machines.size < MACHINE_LIMIT && this.#open.size < OPEN_LIMIT)
        this.#open.set(thread, { host, wires: [], cpus: [], path: [] });
      return;
    }
    const block = this.#open.get(thread);
    this.#open.delete(thread);
    if (block !== undefined && block.wires.length > 0)
      this.#machines.set(host, { host: block.host, wires: block.wires, cpus: block.cpus });
  }
}

function readNode(block: Block, message: string, place: LogPlace): void {
  const root = nodeForm.exec(message);
  if (root !== null) {
    const [, rootName = '', arch, vendor, model] = root;
    block.path = [{ column: -1, name: ownText(rootName) }];
    if (rootName.startsWith('CPU') && block.cpus.length < CPU_LIMIT)
      block.cpus.push({
        name: ownText(rootName),
        arch: Number(arch ?? 1),
        vendor: Number(vendor ?? 1),
        model: Number(model ?? 1),
      });
    return;
  }
  const [, spaces, type = '', gbps, name = '', detail = ''] = wireForm.exec(message) ?? [];
  if (spaces === undefined) return;
  const column = spaces.length;
  block.path = block.path.filter((node) => node.column < column);
  const parent = block.path.at(-1);
  if (parent === undefined) return;
  block.wires.push({
    from: parent.name,
    to: ownText(name),
    type: ownText(type),
    gbps: Number(gbps),
    detail: ownText(detail),
    place,
  });
  block.path.push({ column, name: ownText(name) });
}
