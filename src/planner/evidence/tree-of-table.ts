import { HIDDEN_NVSWITCH, inventedSwitch, type PciGeneration, TreeBuilder } from '../topology/catalogue/build.js';
import type { CpuModel } from '../topology/catalogue/cpus.js';
import type { GpuModel } from '../topology/catalogue/gpus.js';
import { maskOf } from '../topology/catalogue/layout.js';
import type { NicModel } from '../topology/catalogue/nics.js';
import type { XmlElement } from '../topology/xml/tree.js';
import { type Level, levels, type PathTable } from './path-table.js';

/** Models of the devices of a table. */
export interface Models {
  readonly gpu: GpuModel;
  /** By NIC. */
  readonly nics: readonly { readonly model: NicModel; readonly speedMbps: number }[];
  readonly cpu: CpuModel;
  readonly hasNvSwitch: boolean;
}

/** A machine in which all devices are as far from each other as the table says. */
export function treeOfTable(table: PathTable, models: Models): XmlElement {
  const tree = new TreeBuilder();
  const devices = [...table.gpus, ...table.nics].map((_, index) => index);
  const names = new Map<string, string>();
  let nextSwitch = 0x200;
  // None of those whose levels NCCL merges: the levels are those of the table.
  const switchModel = inventedSwitch(models.gpu.pciGeneration);
  const switchBelow = (parent: XmlElement) => tree.pciSwitch(parent, switchModel, busId(nextSwitch++));
  const add = (parent: XmlElement, device: number): void => {
    const nic = models.nics[device - table.gpus.length];
    if (nic === undefined) tree.gpu(parent, models.gpu, { busId: busId(0x10 + device) });
    else {
      // The table numbers NICs in the order of their bus ids.
      const id = busId(0x100 + device - table.gpus.length);
      names.set(id, table.nics[device - table.gpus.length] ?? '');
      tree.nic(parent, nic.model, { busId: id, speedMbps: nic.speedMbps, ...slotOf(nic), ...latencyOf(nic.model) });
    }
  };
  numaNodes(table, devices).forEach((members, position) => {
    const place = table.places.find((each, gpu) => members.includes(gpu) && each.numa !== undefined);
    const cores = table.places.find((each, gpu) => members.includes(gpu) && each.cores !== undefined)?.cores;
    const mask = maskOf(cores ?? `${position * 32}-${position * 32 + 31}`);
    const numa = tree.cpuWithMask(models.cpu, place?.numa ?? position, mask);
    for (const outer of classesOf(members, table.levelOf, levels.PXB)) {
      const inner = classesOf(outer, table.levelOf, levels.PIX);
      if (outer.length === 1) add(numa, outer[0] ?? 0);
      else if (inner.length === 1) {
        const only = switchBelow(numa);
        for (const device of outer) add(only, device);
      } else {
        const first = switchBelow(numa);
        for (const group of inner) {
          const second = switchBelow(first);
          for (const device of group) add(second, device);
        }
      }
    }
  });
  tree.numberByBusId();
  nameNics(tree.system, names);
  if (models.hasNvSwitch) tree.nvSwitches([HIDDEN_NVSWITCH]);
  else tree.nvlinkMatrix(table.nvlinks);
  tree.c2c();
  return tree.system;
}

/** A slot that carries the port. */
export function slotOf({ model, speedMbps }: Models['nics'][number]): { readonly generation: PciGeneration } {
  const needed = speedMbps > 400_000 ? 6 : speedMbps > 200_000 ? 5 : model.pciGeneration;
  return { generation: needed > model.pciGeneration ? needed : model.pciGeneration };
}

/** Latency that the plugin of AWS reports for its cards, µs: 75, since p5en 35. */
export function latencyOf({ id }: NicModel): { readonly latencyUs?: number } {
  if (!id.startsWith('efa')) return {};
  return { latencyUs: id === 'efa' || id === 'efa-v2' ? 75 : 35 };
}

/** Devices by NUMA node. */
function numaNodes(table: PathTable, devices: readonly number[]): number[][] {
  const byPath = classesOf(devices, table.levelOf, levels.NODE);
  const joined: number[][] = [];
  for (const members of byPath) {
    const known = joined.find((other) => shareNode(table, members, other));
    if (known === undefined) joined.push([...members]);
    else known.push(...members);
  }
  // In the order of their first GPUs, in which NCCL finds them.
  return spreadUnplaced(table, joined)
    .map((members) => members.sort((a, b) => a - b))
    .sort((a, b) => (a[0] ?? 0) - (b[0] ?? 0));
}

/** True if GPUs of both have one affinity, and no path says that they are apart. */
function shareNode(table: PathTable, a: readonly number[], b: readonly number[]): boolean {
  const isApart = a.some((one) => b.some((other) => table.levelOf(one, other) === levels.SYS));
  if (isApart) return false;
  return a.some((one) =>
    b.some((other) => {
      const [first, second] = [table.places[one], table.places[other]];
      if (first === undefined || second === undefined) return false;
      if (first.numa !== undefined || second.numa !== undefined) return first.numa === second.numa;
      return first.cores !== undefined && first.cores === second.cores;
    }),
  );
}

/** GPUs about which nothing but NVLinks is known: half of them at each of two CPUs, up to three at one. */
function spreadUnplaced(table: PathTable, nodes: readonly number[][]): number[][] {
  const isUnplaced = ([first = 0, ...more]: readonly number[]) =>
    more.length === 0 &&
    isAlone(table, first) &&
    table.places[first]?.numa === undefined &&
    table.places[first]?.cores === undefined;
  const alone = nodes.filter(isUnplaced).flat();
  if (alone.length < 2) return [...nodes];
  const others = nodes.filter((node) => !isUnplaced(node));
  const half = alone.length < 4 ? alone.length : Math.ceil(alone.length / 2);
  return [alone.slice(0, half), alone.slice(half), ...others].filter((node) => node.length > 0);
}

/** True for a GPU to which no device has a path of PCIe. */
export function isAlone(table: PathTable, gpu: number): boolean {
  const devices = table.gpus.length + table.nics.length;
  return Array.from({ length: devices }, (_, other) => table.levelOf(gpu, other)).every((level) => level === undefined);
}

/** Devices in classes of those that are at most `most` apart, each in their order. */
function classesOf(devices: readonly number[], levelOf: PathTable['levelOf'], most: Level): number[][] {
  const classes: number[][] = [];
  for (const device of devices) {
    const near = classes.filter((each) => each.some((other) => (levelOf(device, other) ?? Infinity) <= most));
    const merged = [...near.flat(), device].sort((a, b) => a - b);
    const [first] = near;
    if (first === undefined) {
      classes.push([device]);
      continue;
    }
    const at = classes.indexOf(first);
    for (const each of near) classes.splice(classes.indexOf(each), 1);
    classes.splice(at, 0, merged);
  }
  return classes;
}

function nameNics(system: XmlElement, names: ReadonlyMap<string, string>): void {
  const visit = (element: XmlElement): void => {
    const name = names.get(element.attributes.get('busid') ?? '');
    if (name !== undefined) for (const nic of element.children) for (const net of nic.children) net.attributes.set('name', name);
    for (const child of element.children) visit(child);
  };
  visit(system);
}

/** A bus id in a domain by hundreds: tables have no bus ids. */
function busId(bus: number): string {
  return `${(bus >> 8).toString(16).padStart(4, '0')}:${(bus & 0xff).toString(16).padStart(2, '0')}:00.0`;
}
