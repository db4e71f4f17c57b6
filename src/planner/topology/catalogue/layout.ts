import type { XmlElement } from '../xml/tree.js';
import { HIDDEN_NVSWITCH, type PciGeneration, type SwitchModel, TreeBuilder } from './build.js';
import { type CpuModel, cpuModels } from './cpus.js';
import { type GpuModel, gpuModels } from './gpus.js';
import { lookUpModel } from './lookup.js';
import { type NicModel, nicModels } from './nics.js';

/** A machine as data: its devices by bus id. Models have their names of the catalogue. */
export interface Layout {
  readonly cpu: string;
  readonly gpu: string;
  /** PCI generation of the GPUs' slots, if it differs from the model's. */
  readonly gpuGeneration?: PciGeneration;
  readonly nvlink: NvlinkLayout;
  readonly nic: NicLayout;
  readonly domains: readonly Domain[];
}

/** NVLinks: to NVSwitches, in pairs of neighbours, none, or counts from GPU i to GPU j in the order of bus ids. */
type NvlinkLayout = 'switch' | 'pairs' | 'none' | readonly (readonly number[])[];

/** The network cards of a machine, which are equal; fields that are left out are the model's. */
interface NicLayout {
  readonly model: string;
  readonly speedMbps?: number;
  /** The latency that the network plugin reports, µs. */
  readonly latencyUs?: number;
  readonly generation?: PciGeneration;
  readonly lanes?: number;
  /** Ports of a card that are network devices of their own; 1 if left out. */
  readonly ports?: number;
}

/** A NUMA domain. */
export interface Domain {
  readonly numa: number;
  /** Its cores as Linux lists them: `0-23,48-71`. */
  readonly cores: string;
  readonly holds: readonly Place[];
}

/** A place in the PCI tree. */
export type Place =
  | { readonly kind: 'switch'; readonly busId: string; readonly model: SwitchModel; readonly holds: readonly Place[] }
  | { readonly kind: 'gpu' | 'nic'; readonly busId: string };

export function below(busId: string, model: SwitchModel, ...holds: Place[]): Place {
  return { kind: 'switch', busId, model, holds };
}

export function gpuAt(busId: string): Place {
  return { kind: 'gpu', busId };
}

export function nicAt(busId: string): Place {
  return { kind: 'nic', busId };
}

/** A new tree of the machine, with GPUs, ranks and network devices numbered in the order of bus ids. */
export function buildLayout(layout: Layout): XmlElement {
  const tree = new TreeBuilder();
  const models = {
    gpu: lookUpModel(layout.gpu, gpuModels, 'GPU'),
    nic: lookUpModel(layout.nic.model, nicModels, 'network card'),
  };
  const cpu = lookUpModel(layout.cpu, cpuModels, 'CPU');
  for (const domain of layout.domains) addDomain(tree, cpu, domain, layout, models);
  tree.numberByBusId();
  addNvlinks(tree, layout.nvlink, models.gpu);
  tree.c2c();
  return tree.system;
}

interface Models {
  readonly gpu: GpuModel;
  readonly nic: NicModel;
}

function addDomain(tree: TreeBuilder, cpu: CpuModel, domain: Domain, layout: Layout, models: Models): void {
  const add = (parent: XmlElement, place: Place): void => {
    switch (place.kind) {
      case 'switch': {
        const pciSwitch = tree.pciSwitch(parent, place.model, place.busId);
        for (const inner of place.holds) add(pciSwitch, inner);
        return;
      }
      case 'gpu':
        tree.gpu(parent, models.gpu, {
          busId: place.busId,
          ...(layout.gpuGeneration === undefined ? {} : { generation: layout.gpuGeneration }),
        });
        return;
      case 'nic':
        tree.nic(parent, models.nic, { ...layout.nic, busId: place.busId });
    }
  };
  const numa = tree.cpuWithMask(cpu, domain.numa, maskOf(domain.cores));
  for (const place of domain.holds) add(numa, place);
}

function addNvlinks(tree: TreeBuilder, wiring: NvlinkLayout, model: GpuModel): void {
  if (wiring === 'none') return;
  // NCCL treats all NVSwitches of a machine as one, so the distribution of links among them has no effect.
  if (wiring === 'switch') tree.nvSwitches([HIDDEN_NVSWITCH]);
  else if (wiring === 'pairs') tree.nvlinkPairs(model.nvlinks);
  else tree.nvlinkMatrix(wiring);
}

/** `0-23,48-71` as a mask: groups of 32 bits, the highest first. */
export function maskOf(cores: string): string {
  let mask = 0n;
  for (const range of cores.split(',')) {
    const [first = 0, last = first] = range.split('-').map(Number);
    for (let core = first; core <= last; core++) mask |= 1n << BigInt(core);
  }
  const groups: string[] = [];
  for (; mask > 0n; mask >>= 32n) groups.unshift((mask & 0xffff_ffffn).toString(16).padStart(8, '0'));
  return groups.join(',');
}
