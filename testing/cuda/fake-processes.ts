import {
  IPC_BYTES,
  IPC_PEER_ACCESS,
  type Driver,
  type FunctionName,
  type IpcHandle,
} from '../../src/runtime/device/cuda/functions.js';
import { put, putLong } from './fake-arguments.js';
import { bytesIn } from './fake-host.js';
import type { FakeEvent, FakeMachine } from './fake-machine.js';
import type { FakeResult } from './fake-results.js';

/** First bytes of handles that processes exchange. */
const ofMemory = 0x4d454d46;
const ofEvent = 0x56454d46;

/** Parts of a driver that functions between processes and GPUs need. */
export interface ProcessParts {
  readonly machine: FakeMachine;
  readonly isPeer: (from: number, to: number) => boolean;
  /** Memory that is open. */
  readonly opened: bigint[];
  /** GPU of the current context, and that of a context. */
  readonly device: () => number;
  readonly deviceOf: (context: bigint) => number | undefined;
  readonly eventOf: (handle: bigint) => FakeEvent | undefined;
  readonly addEvent: (event: number) => bigint;
}

/** Functions by which processes share memory and events, and GPUs reach each other's memory. */
export function ofProcesses(
  parts: ProcessParts,
): Pick<Driver, 'cuCtxEnablePeerAccess' | Extract<FunctionName, `cuIpc${string}`>> {
  const { machine, isPeer, opened, device, deviceOf, eventOf, addEvent } = parts;
  return {
    cuCtxEnablePeerAccess: (context, flags) => {
      const to = deviceOf(context);
      if (to === undefined) return 201;
      if (flags !== 0) return 1;
      if (to === device() || !isPeer(device(), to)) return 217;
      if (machine.isPeer(device(), to)) return 704;
      machine.addPeer(device(), to);
      return 0;
    },
    cuIpcGetMemHandle: (out, pointer) => {
      const range = machine.rangeAt(pointer);
      return range === undefined || range.isOpened ? 1 : numbered(out, ofMemory, machine.exportRange(pointer));
    },
    cuIpcOpenMemHandle_v2: (out, handle, flags) => {
      if (flags !== IPC_PEER_ACCESS) return 1;
      const number = numberIn(handle, ofMemory);
      if (number < 0) return 400;
      const memory = machine.exported(number);
      if (memory.isOwn) return 201;
      if (memory.isFreed) return 400;
      if (memory.device !== device() && !isPeer(device(), memory.device)) return 217;
      const pointer = machine.open(number, device());
      opened.push(pointer);
      return putLong(out, pointer);
    },
    cuIpcCloseMemHandle: (pointer) => {
      if (!machine.close(pointer, device())) return 1;
      opened.splice(opened.indexOf(pointer), 1);
      return 0;
    },
    cuIpcGetEventHandle: (out, handle) => {
      const event = eventOf(handle);
      if (event?.isShared !== true) return 400;
      return event.isOpened ? 1 : numbered(out, ofEvent, event.source);
    },
    cuIpcOpenEventHandle: (out, handle) => {
      const number = numberIn(handle, ofEvent);
      if (number < 0) return 400;
      const event = machine.openEvent(number);
      return event === undefined ? 201 : putLong(out, addEvent(event));
    },
  };
}

function numbered(out: ArrayBufferView, kind: number, number: number): FakeResult {
  const view = bytesIn(out, IPC_BYTES);
  put(view, kind);
  return put(view.subarray(4), number);
}

function numberIn({ reserved }: IpcHandle, kind: number): number {
  const view = new DataView(reserved.buffer, reserved.byteOffset, IPC_BYTES);
  return view.getInt32(0, true) === kind ? view.getInt32(4, true) : -1;
}
