import { readSync, writeSync } from 'node:fs';
import {
  FILE_DESCRIPTOR,
  memoryAccess,
  memoryProperties,
  multicastObject,
  ON_DEVICE,
  type Driver,
  type FunctionName,
} from '../../src/runtime/device/cuda/functions.js';
import { put, putLong } from './fake-arguments.js';
import type { FakeMachine } from './fake-machine.js';

/** Bytes that memory which is created apart from its address is a multiple of, and those of a multicast object. */
const GRANULARITY = 1 << 16;
const MULTICAST_GRANULARITY = 1 << 17;
/** Handles: their numbers in the machine are added. */
const FIRST_HANDLE = 0x5a00_0000_0000n;
/** Times of 1 ms that a call waits for other processes, where a driver waits for ever. */
const MOST_PAUSES = 20_000;

/** Parts of a driver that functions of virtual memory need. */
export interface VirtualParts {
  readonly machine: FakeMachine;
  readonly devices: number;
  readonly hasMulticast: boolean;
  /** True if a GPU has memory for so many bytes more. */
  readonly hasRoom: (device: number, bytes: number) => boolean;
  /** Things that were not given back, by name: handles, addresses, mappings, bound memory. */
  readonly left: Set<string>;
}

type Names =
  | Extract<FunctionName, `cuMulticast${string}`>
  | 'cuMemGetAllocationGranularity'
  | 'cuMemCreate'
  | 'cuMemRelease'
  | 'cuMemExportToShareableHandle'
  | 'cuMemImportFromShareableHandle'
  | 'cuMemAddressReserve'
  | 'cuMemAddressFree'
  | 'cuMemMap'
  | 'cuMemUnmap'
  | 'cuMemSetAccess';

/**
 * Memory that is created apart from its addresses, and multicast objects. As with a driver, memory cannot be bound, and a
 * multicast object not mapped, before all GPUs are added, nor accessed before all are bound: these calls wait. Another order is
 * refused.
 */
export function ofVirtualMemory(parts: VirtualParts): Pick<Driver, Names> {
  const { machine, devices, hasMulticast, hasRoom, left } = parts;
  const objectOf = (handle: bigint): number | undefined => machine.objectOf(Number(handle - FIRST_HANDLE));
  const named = (out: ArrayBufferView, handle: number): 0 => {
    left.add(`handle ${handle}`);
    return putLong(out, FIRST_HANDLE + BigInt(handle));
  };
  const waitFor = (call: string, what: string, isThere: () => boolean): void => {
    for (let pauses = 0; !isThere(); pauses++) {
      if (pauses === MOST_PAUSES) throw new Error(`${call} waits for ever: ${what}`);
      machine.pause();
    }
  };
  const allAdded = (call: string, object: number): void =>
    waitFor(call, 'not all GPUs were added', () => machine.nAdded(object) === machine.object(object).nDevices);
  /** GPU of the properties of memory; undefined for others than the fake knows. */
  const deviceIn = (properties: ArrayBufferView): number | undefined => {
    const { bytes, type, handleTypes, locationType, locationId } = memoryProperties;
    const view = new DataView(properties.buffer, properties.byteOffset, bytes);
    const fields = [type, handleTypes, locationType].map((field) => view.getUint32(field, true));
    const device = view.getUint32(locationId, true);
    return fields.join() === [ON_DEVICE, FILE_DESCRIPTOR, ON_DEVICE].join() && device < devices ? device : undefined;
  };
  const readObject = (properties: ArrayBufferView): { nDevices: number; size: number; kinds: number } => {
    const view = new DataView(properties.buffer, properties.byteOffset, multicastObject.bytes);
    const [size, kinds] = [multicastObject.size, multicastObject.handleTypes].map((at) => Number(view.getBigUint64(at, true)));
    return { nDevices: view.getUint32(multicastObject.nDevices, true), size: size ?? 0, kinds: kinds ?? 0 };
  };
  return {
    cuMemGetAllocationGranularity: (out, properties) => (deviceIn(properties) === undefined ? 1 : putLong(out, GRANULARITY)),
    cuMemCreate: (out, bytes, properties, flags) => {
      const device = deviceIn(properties);
      if (device === undefined || flags !== 0n || bytes === 0 || bytes % GRANULARITY !== 0) return 1;
      return hasRoom(device, bytes) ? named(out, machine.create(device, bytes)) : 2;
    },
    cuMemRelease: (handle) => {
      if (objectOf(handle) === undefined) return 1;
      machine.releaseHandle(Number(handle - FIRST_HANDLE));
      left.delete(`handle ${handle - FIRST_HANDLE}`);
      return 0;
    },
    cuMemExportToShareableHandle: (out, handle, kind, flags) => {
      const object = objectOf(handle);
      return object === undefined || kind !== FILE_DESCRIPTOR || flags !== 0n ? 1 : put(out, descriptorOf(machine, object));
    },
    cuMemImportFromShareableHandle: (out, fd, kind) => {
      const object = kind === FILE_DESCRIPTOR ? objectIn(Number(fd)) : undefined;
      return object === undefined ? 1 : named(out, machine.openObject(object));
    },
    cuMemAddressReserve: (out, bytes, alignment, address, flags) => {
      if (bytes === 0 || bytes % GRANULARITY !== 0 || alignment % GRANULARITY !== 0 || address !== 0n || flags !== 0n) return 1;
      const pointer = machine.reserve(bytes);
      left.add(`addresses ${pointer}`);
      return putLong(out, pointer);
    },
    cuMemAddressFree: (pointer, bytes) => {
      if (!machine.unreserve(pointer, bytes)) return 1;
      left.delete(`addresses ${pointer}`);
      return 0;
    },
    cuMemMap: (pointer, bytes, offset, handle, flags) => {
      const object = objectOf(handle);
      if (object === undefined || offset !== 0 || flags !== 0n) return 1;
      if (machine.object(object).nDevices > 0) allAdded('cuMemMap', object);
      if (!machine.map(pointer, bytes, object)) return 1;
      left.add(`mapping ${pointer}`);
      return 0;
    },
    cuMemUnmap: (pointer, bytes) => {
      if (!machine.unmap(pointer, bytes)) return 1;
      left.delete(`mapping ${pointer}`);
      return 0;
    },
    cuMemSetAccess: (pointer, bytes, access, count) => {
      const object = machine.mapped(pointer, bytes);
      const view = new DataView(access.buffer, access.byteOffset, memoryAccess.bytes);
      const { locationType, locationId, flags, readAndWrite } = memoryAccess;
      const [type, device = 0, rights] = [locationType, locationId, flags].map((field) => view.getUint32(field, true));
      if (object === undefined || count !== 1 || type !== ON_DEVICE || rights !== readAndWrite || device >= devices) return 1;
      const { nDevices } = machine.object(object);
      if (nDevices > 0) waitFor('cuMemSetAccess', 'not all memory was bound', () => machine.nBound(object) === nDevices);
      machine.admit(pointer, device);
      return 0;
    },
    cuMulticastGetGranularity: (out, properties, option) => {
      if (!hasMulticast) return 801;
      return readObject(properties).nDevices < 2 || option > 1 ? 1 : putLong(out, MULTICAST_GRANULARITY);
    },
    cuMulticastCreate: (out, properties) => {
      if (!hasMulticast) return 801;
      const { nDevices, size, kinds } = readObject(properties);
      if (nDevices < 2 || size === 0 || size % MULTICAST_GRANULARITY !== 0 || kinds !== FILE_DESCRIPTOR) return 1;
      return named(out, machine.create(0, size, nDevices));
    },
    cuMulticastAddDevice: (handle, device) => {
      const object = objectOf(handle);
      if (object === undefined || machine.object(object).nDevices === 0 || device >= devices) return 1;
      return machine.addMember(object, device) ? 0 : 1;
    },
    cuMulticastBindMem: (handle, offset, memory, memoryOffset, bytes, flags) => {
      const [object, part] = [objectOf(handle), objectOf(memory)];
      if (object === undefined || part === undefined || offset !== 0 || memoryOffset !== 0 || flags !== 0n) return 1;
      if (machine.object(object).nDevices === 0 || machine.object(part).nDevices !== 0) return 1;
      if (machine.object(object).bytes !== bytes || machine.object(part).bytes !== bytes) return 1;
      allAdded('cuMulticastBindMem', object);
      if (!machine.bind(object, part)) return 1;
      left.add(`bound ${object} ${machine.object(part).device}`);
      return 0;
    },
    cuMulticastUnbind: (handle, device, offset, bytes) => {
      const object = objectOf(handle);
      if (object === undefined || offset !== 0 || machine.object(object).bytes !== bytes) return 1;
      if (!machine.unbind(object, device)) return 1;
      left.delete(`bound ${object} ${device}`);
      return 0;
    },
  };
}

const MARK = 'object of the fake driver ';

const FILE_BYTES = 64;

/** A descriptor that another process may get, of a file that has the number of the object. */
function descriptorOf(machine: FakeMachine, object: number): number {
  const fd = machine.makeFile(FILE_BYTES);
  writeSync(fd, `${MARK}${object}`, 0);
  return fd;
}

function objectIn(fd: number): number | undefined {
  const bytes = new Uint8Array(FILE_BYTES);
  try {
    const text = new TextDecoder().decode(bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, 0)));
    return text.startsWith(MARK) ? Number(text.slice(MARK.length).replaceAll('\0', '')) : undefined;
  } catch {
    return undefined;
  }
}
