import type { NvlinkSpeeds } from './lstopo-links.js';
import type { TextPlace } from './section.js';

/** A tree of PCI devices below the roots of a host, as `lstopo` and `lspci -tv` print it. */
export interface PciTree {
  /** `lstopo`, `lspci -tv` or `lspci -vvv`: for messages. */
  readonly command: string;
  /** Name of the host, where the tool has it. */
  readonly host: string | undefined;
  /** Product name of the firmware, as `DGXH100`. */
  readonly product: string | undefined;
  /** Facts about the CPUs in the words of `lscpu`; empty where the tool has none. */
  readonly cpu: ReadonlyMap<string, string>;
  readonly roots: readonly PciRoot[];
  /** Undefined where the tool does not print them. */
  readonly nvlinks?: NvlinkSpeeds | undefined;
  readonly place: TextPlace;
}

/** Devices below one host bridge. */
export interface PciRoot {
  /** Number of the NUMA node; undefined where the tool does not say. */
  readonly numa: number | undefined;
  /** CPUs of that NUMA node; empty where unknown. */
  readonly cores: readonly number[];
  readonly branches: readonly PciBranch[];
}

/** A device or bridge. */
export interface PciBranch {
  /** `0000:3b:00.0`; undefined for bridges in the text of lstopo. */
  readonly busId: string | undefined;
  readonly isBridge: boolean;
  /** `0302`; undefined where unknown. */
  readonly classCode: string | undefined;
  readonly vendor: number | undefined;
  readonly device: number | undefined;
  /** Vendor and device of the board; undefined where unknown. */
  readonly subsystem: readonly [vendor: number, device: number] | undefined;
  /** Names of vendor and device; empty where unknown. */
  readonly description: string;
  /** GB/s of the link now, all lanes together; undefined where unknown. */
  readonly gbps: number | undefined;
  /** Names that the system gives the device. */
  readonly names: readonly { readonly kind: 'gpu' | 'net' | 'rdma'; readonly name: string }[];
  /** Name of the GPU's product by the driver; empty where unknown. */
  readonly product: string;
  /** False for an RDMA device whose ports are all down; undefined where unknown. */
  readonly isActive: boolean | undefined;
  readonly branches: readonly PciBranch[];
  readonly place: TextPlace;
}

/** `0000:3b:00.0` of `3b:00.0`, `00000000:3B:00.0` or `0000:3b:00.0`. */
export function fullBusId(text: string): string {
  const [, domain = '0', rest = ''] = /^(?:([0-9a-f]+):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])$/i.exec(text.trim()) ?? [];
  return `${Number.parseInt(domain, 16).toString(16).padStart(4, '0')}:${rest.toLowerCase()}`;
}

/** A device in the words of lspci, as `3D controller [0302]: NVIDIA Corporation GH100 [10de:2330]`, with nothing below it. */
export function describedBranch(
  busId: string,
  description: string,
  place: TextPlace,
): Omit<PciBranch, 'branches'> & { readonly branches: [] } {
  const [, vendor, device] = /\[([0-9a-f]{4}):([0-9a-f]{4})\]/i.exec(description) ?? [];
  return {
    busId,
    isBridge: false,
    classCode: undefined,
    vendor: vendor === undefined ? undefined : Number.parseInt(vendor, 16),
    device: device === undefined ? undefined : Number.parseInt(device, 16),
    subsystem: undefined,
    description,
    gbps: undefined,
    names: [],
    product: '',
    isActive: undefined,
    branches: [],
    place,
  };
}
