import { setMissing } from '../catalogue/build.js';
import { childNamed, createElement, descendants, type XmlElement } from '../xml/tree.js';
import type { PciDetector } from './detect-pci.js';
import { hasGpuDirect, type MachineFiles } from './machine-files.js';

/** Network devices to look for: those of NCCL's InfiniBand transport (RoCE too), or of its sockets. */
export type NetworkKind = 'ib' | 'socket';

/** A network device in the terms of a plugin of NCCL. */
export interface NetDevice {
  readonly name: string;
  /** Bus id; undefined for a device that is not on PCI. */
  readonly busId: string | undefined;
  readonly speedMbps: number;
  readonly port: number;
  readonly guid: bigint;
  readonly maxConnections: number;
  readonly gdr: boolean;
}

interface FoundNetwork {
  /** In the order of their numbers. */
  readonly devices: readonly NetDevice[];
  /** Devices that were left out, one line each. */
  readonly notes: readonly string[];
}

/**
 * The network devices of a machine: active InfiniBand and RoCE ports if there are any, otherwise interfaces for sockets, as NCCL
 * chooses without a plugin.
 */
export function findNetwork(
  files: MachineFiles,
  asked: NetworkKind | 'auto',
  interfaces: readonly string[] | undefined,
  sockets?: readonly string[],
): FoundNetwork {
  const notes: string[] = [];
  const ib = asked === 'socket' ? [] : infinibandDevices(files, hasGpuDirect(files), notes);
  return {
    notes,
    devices:
      asked === 'ib' || (asked === 'auto' && ib.length > 0)
        ? ib
        : socketDevices(files, sockets ?? chosenAmong(files, interfaces)),
  };
}

/**
 * Adds devices, or their missing attributes, to a tree, and marks them as in use. Devices that are not on PCI go below the first
 * CPU.
 */
export function addNetwork(root: XmlElement, pcis: PciDetector, devices: readonly NetDevice[]): void {
  const known = new Map(
    [...descendants(root)].flatMap((element) => (element.name === 'net' ? [[element.attributes.get('name'), element]] : [])),
  );
  devices.forEach((device, dev) => {
    const net = known.get(device.name) ?? placeOf(root, pcis, device);
    net.attributes.set('dev', String(dev));
    setMissing(net, [
      ['latency', '0'],
      ['speed', String(device.speedMbps)],
      ['port', String(device.port)],
      ['guid', `0x${device.guid.toString(16)}`],
      ['maxconn', String(device.maxConnections)],
      ['gdr', device.gdr ? '1' : '0'],
    ]);
    net.attributes.set('net', '1').set('keep', '1');
  });
}

function placeOf(root: XmlElement, pcis: PciDetector, device: NetDevice): XmlElement {
  const parent = device.busId === undefined ? (childNamed(root, 'cpu') ?? root) : pcis.device(device.busId, 'nic');
  return createElement('net', childNamed(parent, 'nic') ?? createElement('nic', parent), [['name', device.name]]);
}

/** Queue pairs that a device of the mlx family has, as NCCL reports them. */
const IB_MAX_CONNECTIONS = 131_072;
const SOCKET_MAX_CONNECTIONS = 65_536;

function infinibandDevices(files: MachineFiles, hasRdmaDriver: boolean, notes: string[]): NetDevice[] {
  const devices: NetDevice[] = [];
  /** Number of ports seen so far, by the bus id of the card's first function. */
  const portsOfCard = new Map<string, number>();
  const names = [...files.list('/sys/class/infiniband')].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  for (const name of names) {
    const folder = `/sys/class/infiniband/${name}`;
    const path = files.resolve(`${folder}/device`);
    // The functions of a card with several ports are one device to NCCL, and so are virtual functions.
    const busId = path
      ?.split('/')
      .at(-1)
      ?.replace(/[0-9a-f]{2}\.[0-9a-f]$/, '00.0');
    if (busId === undefined || !/^[0-9a-f]{4}:/.test(busId)) {
      notes.push(`InfiniBand device ${name} is no PCI device: left out`);
      continue;
    }
    for (const port of files.list(`${folder}/ports`)) {
      const state = files.readText(`${folder}/ports/${port}/state`) ?? '';
      if (!state.startsWith('4')) {
        notes.push(
          `port ${port} of ${name} is ${state === '' ? 'not readable' : state.replace(/^\d+:\s*/, '').toLowerCase()}: left out, as NCCL does`,
        );
        continue;
      }
      const earlier = portsOfCard.get(busId) ?? 0;
      portsOfCard.set(busId, earlier + 1);
      devices.push({
        name,
        busId,
        // "400 Gb/sec (4X NDR)"
        speedMbps: Math.round(Number.parseFloat(files.readText(`${folder}/ports/${port}/rate`) ?? '0') * 1000),
        port: Number(port) + earlier,
        guid: guidNumber(files.readText(`${folder}/sys_image_guid`) ?? '0'),
        maxConnections: IB_MAX_CONNECTIONS,
        gdr: hasRdmaDriver,
      });
    }
  }
  return devices;
}

/** NCCL's form of `0c42:a103:0055:62a2`: the eight bytes in network order read as a little-endian number, 0xa2625500… */
function guidNumber(text: string): bigint {
  const bytes =
    text
      .replaceAll(/[^0-9a-fA-F]/g, '')
      .padStart(16, '0')
      .match(/../g) ?? [];
  return BigInt(`0x${bytes.reverse().join('')}`);
}

/** Interfaces for sockets, of the first of these kinds that exists; sixteen at most, as in NCCL. */
const interfaceChoices = [/^ib/, /^(?!docker|lo|virbr)/, /^docker/, /^lo/, /^virbr/];
const MOST_INTERFACES = 16;

function chosenAmong(files: MachineFiles, interfaces: readonly string[] | undefined): readonly string[] {
  const usable =
    interfaces ??
    files
      .list('/sys/class/net')
      .filter((name) => isUp(files, name))
      .sort((a, b) => interfaceIndex(files, a) - interfaceIndex(files, b));
  return interfaceChoices.map((choice) => usable.filter((name) => choice.test(name))).find((names) => names.length > 0) ?? [];
}

function socketDevices(files: MachineFiles, interfaces: readonly string[]): NetDevice[] {
  return interfaces.slice(0, MOST_INTERFACES).map((name, index) => {
    const device = files.resolve(`/sys/class/net/${name}/device`)?.split('/').at(-1);
    const speed = Number(files.readText(`/sys/class/net/${name}/speed`) ?? '');
    return {
      name,
      busId: device !== undefined && /^[0-9a-f]{4}:[0-9a-f]{2}:/.test(device) ? device : undefined,
      // A virtual interface has -1 or no speed; NCCL's sockets then assume 10 Gb/s.
      speedMbps: speed > 0 ? speed : 10_000,
      port: 0,
      guid: BigInt(index),
      maxConnections: SOCKET_MAX_CONNECTIONS,
      gdr: false,
    };
  });
}

const UP = 1;

/** True if it is up and running, and not a part of a bond or bridge, which has no address of its own. */
function isUp(files: MachineFiles, name: string): boolean {
  const flags = Number(files.readText(`/sys/class/net/${name}/flags`) ?? '0');
  const state = files.readText(`/sys/class/net/${name}/operstate`) ?? '';
  return (
    (flags & UP) !== 0 && (state === 'up' || state === 'unknown') && files.resolve(`/sys/class/net/${name}/master`) === undefined
  );
}

function interfaceIndex(files: MachineFiles, name: string): number {
  return Number(files.readText(`/sys/class/net/${name}/ifindex`) ?? '0');
}
