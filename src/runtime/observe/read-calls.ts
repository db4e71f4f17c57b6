import { readCall, type Call } from '../algorithms/call.js';
import { readOther, type WindowCall } from '../algorithms/other-calls.js';
import type { OutOfBandCall } from '../algorithms/activity.js';
import {
  BOARD_BYTES,
  CALLS_OF_BLOCK,
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
import { defined } from '../../defined.js';

/** A message of a rank. */
interface RecordedMessage {
  readonly kind: 'send' | 'recv';
  readonly peer: number;
  readonly count: number;
  readonly type: DataType;
}

interface RecordedOperation {
  readonly kind: 'window';
  readonly name: WindowCall;
  readonly peer: number;
  readonly count: number;
  readonly type: DataType;
}

/** A call over the bootstrap network; `number` counts those of the communicator. */
interface RecordedOutOfBand {
  readonly kind: 'bootstrap';
  readonly name: OutOfBandCall;
  readonly number: number;
}

/** A collective and equal ones after it, or another call. */
export interface RecordedCalls {
  readonly of:
    | { readonly kind: 'collective'; readonly call: Call; readonly first: number }
    | RecordedMessage
    | RecordedOperation
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
  const originMs = defined(doubles[headerTimes.origin]);
  const next = defined(words[header.recorded]) & (RING_ENTRIES - 1);
  const indices = Array.from({ length: RING_ENTRIES }, (_, i) => (next + i) & (RING_ENTRIES - 1));
  const entries = indices.flatMap((index): RecordedEntry[] => {
    const at = (STATE_BYTES + index * ENTRY_BYTES) / 4;
    const code = defined(words[at + entry.call]);
    const peer = defined(words[at + entry.peer]);
    const of = contentOf(code & CODE, peer, defined(words[at + entry.number]), defined(doubles[at / 2 + entryDoubles.count]));
    if (code === 0 || of === undefined) return [];
    const isTimed = of.kind === 'collective' || (code & callBits.timed) !== 0;
    const startMs = isTimed ? defined(doubles[at / 2 + entryDoubles.start]) : 0;
    const durationMs = defined(floats[at + entry.duration]);
    return [
      {
        of,
        serial: code >>> callBits.serialShift,
        isOpen: durationMs < 0,
        startMs: startMs > 0 ? originMs + startMs : undefined,
        durationMs: durationMs > 0 ? durationMs : undefined,
        ofBlock: of.kind === 'collective' ? 1 : defined(words[at + CALLS_OF_BLOCK]),
      },
    ];
  });
  const starts = entries.flatMap(({ ofBlock }, i) => (ofBlock !== 0 || i === 0 ? [i] : []));
  return starts.flatMap((start, i) => repeated(entries.slice(start, starts[i + 1])));
}

/** `ofBlock`: calls of the block that it begins; see board-layout.ts. */
type RecordedEntry = RecordedCalls & { readonly ofBlock: number };

/** The calls of a block in their order. The beginning of the oldest one may be lost. */
function repeated(block: readonly RecordedEntry[]): RecordedCalls[] {
  const length = Math.max(block.length, Math.min(block[0]?.ofBlock ?? 0, RING_ENTRIES));
  return Array.from({ length }, (_, i) => i).flatMap((i) => {
    const call = block[i % block.length];
    return call === undefined ? [] : [i < block.length ? call : { ...call, startMs: undefined }];
  });
}

const CODE = (1 << callBits.serialShift) - 1;

function contentOf(code: number, peer: number, number: number, count: number): RecordedCalls['of'] | undefined {
  if ((code & callBits.notCollective) === 0) {
    const call = readCall(code, peer, count);
    return call && { kind: 'collective', call, first: number - 1 };
  }
  if ((code & callBits.other) !== 0) {
    const other = readOther(code);
    if (other?.of === 'bootstrap') return { kind: 'bootstrap', name: other.name, number };
    return other && { kind: 'window', name: other.name, peer, count: number >>> 0, type: other.type };
  }
  const type = typeOfCode((code >> 4) & 15);
  return type && { kind: (code & callBits.send) === 0 ? 'recv' : 'send', peer, count: number >>> 0, type };
}
