import { readCall, type Call } from '../algorithms/call.js';
import { readOther, type WindowCall } from '../algorithms/other-calls.js';
import type { OutOfBandCall } from '../algorithms/activity.js';
import {
  BOARD_BYTES,
  callBits,
  entry,
  ENTRY_BYTES,
  entryDoubles,
  header,
  headerTimes,
  RING_ENTRIES,
  STATE_BYTES,
} from '../device/board-layout.js';
import { typeOfCode, type DataType } from '../device/types.js';

/** A message of a rank. */
export interface RecordedMessage {
  readonly kind: 'send' | 'recv';
  readonly peer: number;
  readonly count: number;
  readonly type: DataType;
}

/** Equal operations of a window that followed each other. */
export interface RecordedOperations {
  readonly kind: 'window';
  readonly name: WindowCall;
  readonly peer: number;
  readonly count: number;
  readonly type: DataType;
  readonly times: number;
}

/** A call over the bootstrap network; `number` counts those of the communicator. */
export interface RecordedOutOfBand {
  readonly kind: 'bootstrap';
  readonly name: OutOfBandCall;
  readonly number: number;
}

/** An entry of a rank's last calls: a collective and equal ones after it, or a message. */
export interface RecordedCalls {
  readonly of:
    | { readonly kind: 'collective'; readonly call: Call; readonly first: number }
    | RecordedMessage
    | RecordedOperations
    | RecordedOutOfBand;
  /** Serial of its communicator; see ShownCommunicator. */
  readonly serial: number;
  readonly isOpen: boolean;
  /** Start of the first one, milliseconds since 1970; undefined if no clock was read for it. */
  readonly startMs: number | undefined;
  /** Milliseconds; undefined before the end, and if no clock was read then. */
  readonly durationMs: number | undefined;
}

/**
 * The last calls of a rank, the oldest first.
 * @param given its whole board
 */
export function readCalls(given: Uint8Array): RecordedCalls[] {
  if (given.length < BOARD_BYTES) return [];
  const { buffer } = given.slice();
  const words = new Int32Array(buffer);
  const floats = new Float32Array(buffer);
  const doubles = new Float64Array(buffer);
  const originMs = doubles[headerTimes.origin] ?? 0;
  const next = (words[header.recorded] ?? 0) & (RING_ENTRIES - 1);
  return Array.from({ length: RING_ENTRIES }, (_, i) => (next + i) & (RING_ENTRIES - 1)).flatMap((index): RecordedCalls[] => {
    const at = (STATE_BYTES + index * ENTRY_BYTES) / 4;
    const code = words[at + entry.call] ?? 0;
    const peer = words[at + entry.peer] ?? 0;
    const count = doubles[at / 2 + entryDoubles.count] ?? 0;
    const of = contentOf(code & CODE, peer, words[at + entry.number] ?? 0, count);
    if (code === 0 || of === undefined) return [];
    const startMs = doubles[at / 2 + entryDoubles.start] ?? 0;
    const durationMs = floats[at + entry.duration] ?? 0;
    return [
      {
        of,
        serial: code >>> callBits.serialShift,
        isOpen: durationMs < 0,
        startMs: startMs > 0 ? originMs + startMs : undefined,
        durationMs: durationMs > 0 ? durationMs : undefined,
      },
    ];
  });
}

const CODE = (1 << callBits.serialShift) - 1;

function contentOf(code: number, peer: number, number: number, count: number): RecordedCalls['of'] | undefined {
  if ((code & callBits.other) !== 0) {
    const other = readOther(code);
    if (other?.of === 'bootstrap') return { kind: 'bootstrap', name: other.name, number };
    return other && { kind: 'window', name: other.name, peer, count, type: other.type, times: number };
  }
  if ((code & (callBits.send | callBits.recv)) === 0) {
    const call = readCall(code, peer, count);
    return call && { kind: 'collective', call, first: number - 1 };
  }
  const type = typeOfCode((code >> 4) & 15);
  return type && { kind: (code & callBits.send) === 0 ? 'recv' : 'send', peer, count, type };
}
