import { formatGBps } from '../format.js';
import { nameElement, type XmlElement } from '../xml/tree.js';

/** Stable names of findings. */
export const findingCodes = [
  // the file
  'nccl-refuses', // NCCL's own parser fails on it
  'nccl-misreads', // NCCL reads something else, or nothing
  'impossible', // no machine can be so
  'nccl-fails', // NCCL parses it, and fails when it builds its graph
  'xml-nodes', // more elements than NCCL has room for
  'skeleton', // no GPU with a rank: a PCI tree to be completed
  // devices
  'gpu-unused', // a GPU without rank among others with
  'devices-hidden', // devices that NCCL does not see behind a NIC
  'bus-id-twice',
  'net-number-twice',
  'gpu-number-twice',
  'cpu-number-twice',
  'gpu-not-there', // the file names a GPU that the machine does not have
  'gpu-not-in-file',
  'nic-not-there',
  'graph-gpu-not-there', // a graph file names a GPU that the topology does not have
  // CPUs
  'cpu-arch-missing',
  'cpu-unknown', // NCCL does not know the architecture or vendor
  'cpu-misread', // NCCL takes it for an older model
  'numa-unknown',
  'affinity-empty',
  // PCI links
  'link-speed-unknown',
  'link-width-unknown',
  'link-bottleneck',
  'gpu-link-slow',
  'nic-link-slow',
  // network
  'no-nic',
  'nic-default-speed',
  'gdr-off',
  'gdr-too-far', // both ends can, but NCCL finds them too far apart
  'nic-across-sockets',
  'nic-uneven',
  'nic-shared-uplink',
  'nic-slot-shared', // two ports in a slot for one
  'nic-bonded', // counts as one port
  'nics-merged-unequal',
  'nic-half-port', // half a port of a DGX Spark
  'pci-hidden', // a virtual machine without its PCI switches
  // NVLink
  'nvlink-unequal',
  'nvlink-missing', // fewer than the model has
  'nvlink-one-way',
  'nvlink-gpu-absent',
  'nvlink-to-itself',
  'c2c-missing',
  // a cluster
  'search-failed', // NCCL takes the order of the numbers
  'nic-counts-differ',
  'planes-crossed', // a NIC has another number on another host
  'cross-nic-off',
  'ports-merged', // NCCL merges two ports of a card
  'domain-split', // trays of a rack without NVLink between them
  'variable-range',
] as const;
/** A stable name of a finding. */
export type FindingCode = (typeof findingCodes)[number];

/** `error`: NCCL fails, or most of the bandwidth is lost; `warning`: some is; `info`: good to know. */
export type Severity = 'error' | 'warning' | 'info';

/** An element that a finding is about. */
export interface TopologyPlace {
  /** `<pci busid="0000:1b:00.0">`. */
  readonly element: string;
  /** 1-based, 0 where the element is in no text. */
  readonly line: number;
  readonly column: number;
}

/** A certain or likely fault of a topology. */
export interface Finding {
  readonly code: FindingCode;
  readonly severity: Severity;
  /** All elements with the same fault. */
  readonly places: readonly TopologyPlace[];
  readonly problem: string;
  /** The cost. */
  readonly consequence: string;
  /** The cost in numbers: NCCL's bandwidth from the file, and the possible one; GB/s. */
  readonly gbps?: { readonly is: number; readonly couldBe: number };
  readonly remedy: string;
}

const severities: readonly Severity[] = ['error', 'warning', 'info'];

/** Collects findings; equal ones of several elements, at the same cost, become one with the text of the first. */
export class Findings {
  readonly #byText = new Map<string, Omit<Finding, 'places'> & { readonly places: TopologyPlace[] }>();

  add(element: XmlElement | TopologyPlace | undefined, finding: Omit<Finding, 'places'>): void {
    const { code, severity, gbps, remedy } = finding;
    const cost = gbps === undefined ? '' : `${formatGBps(gbps.is)} ${formatGBps(gbps.couldBe)}`;
    // Each finding about NCCL's parser is about one element.
    const key = [code, severity, cost, code.startsWith('nccl-') ? finding.problem : remedy].join('\n');
    let known = this.#byText.get(key);
    if (known === undefined) this.#byText.set(key, (known = { ...finding, places: [] }));
    if (element !== undefined) known.places.push('element' in element ? element : placeOf(element));
  }

  /** The worst first; among equals in the order of the file. */
  list(): Finding[] {
    const line = (finding: Finding) => finding.places[0]?.line ?? 0;
    return [...this.#byText.values()].sort((a, b) => bySeverity(a, b) || line(a) - line(b));
  }
}

/** Compares findings: the worst first. */
export function bySeverity(a: Finding, b: Finding): number {
  return severities.indexOf(a.severity) - severities.indexOf(b.severity);
}

/** Position and name of an element. */
export function placeOf(element: XmlElement): TopologyPlace {
  return { element: nameElement(element), line: element.line, column: element.column };
}
