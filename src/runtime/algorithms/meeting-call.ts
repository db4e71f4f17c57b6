import { callKinds } from '../device/kernels/call-kinds.js';
import { int32, uint8, type DataType } from '../device/types.js';
import { derivedBits, type DeviceCall, type MeetingCall } from './call.js';
import type { QueuedCall } from './queued-call.js';

const nothing = new Int32Array(0);

/**
 * The barrier with which a call over the bootstrap network begins, a window closes, or ranks meet in a call on devices.
 * @param number of the window, or code of the call
 */
export function meetingOf(name: MeetingCall | 'window close' | 'device call', number = 0): QueuedCall {
  const code = callKinds.barrier | derivedBits(name);
  return { code, type: int32, root: number, send: nothing, recv: nothing, count: 0, details: undefined };
}

/**
 * An exchange within a call of the program on arrays of devices, by which all ranks find out that they make the same one.
 *
 * @param type of its elements
 * @param mine record of this rank; without one it is a barrier
 */
export function deviceCallOf(
  name: DeviceCall,
  type: DataType = int32,
  mine?: Uint8Array,
  all: Uint8Array = new Uint8Array(0),
): QueuedCall {
  const root = callKinds[name === 'close' ? 'barrier' : name] | (type.code << 4);
  if (mine === undefined) return meetingOf('device call', root);
  const code = callKinds.allGather | derivedBits('device call') | (uint8.code << 4);
  return { code, type: uint8, root, send: mine, recv: all, count: mine.length, details: undefined };
}
