import { callKinds } from '../device/kernels/call-kinds.js';
import { int32 } from '../device/types.js';
import { derivedBits, type MeetingCall } from './call.js';
import type { QueuedCall } from './queued-call.js';

const nothing = new Int32Array(0);

/**
 * The barrier with which a call over the bootstrap network begins, or a window closes.
 * @param number of the window
 */
export function meetingOf(name: MeetingCall | 'window close', number = 0): QueuedCall {
  const code = callKinds.barrier | derivedBits(name);
  return { code, type: int32, root: number, send: nothing, recv: nothing, count: 0, details: undefined };
}
