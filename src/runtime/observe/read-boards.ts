import { decodeActivity, ACTIVITY_WORDS, type Activity } from '../algorithms/activity.js';
import { readCall, type Call } from '../algorithms/call.js';
import {
  BOARDS,
  boardStates,
  BOARD_BYTES,
  header,
  HEADER_BYTES,
  HEADER_TEXT,
  headerTimes,
  LAYOUT_VERSION,
  MAGIC,
  REPORT_WORDS,
  slot,
  SLOT_BYTES,
  SLOT_TEXT,
  SLOTS,
  slotStates,
  slotTimes,
  STATE_BYTES,
  waitKinds,
} from '../device/board-layout.js';
import { WaitWords } from '../device/wait-report.js';
import type { BoardFacts } from './board-facts.js';
import { defined } from '../../defined.js';

/** A wait that a rank shows. */
export interface ShownWait {
  readonly activity: Activity;
  /** Milliseconds since 1970. */
  readonly sinceMs: number;
  /** Time without progress when the rank showed it, milliseconds. */
  readonly stillMs: number;
  /** Ranks of the communicator that hold it up, as far as the rank knows. */
  readonly late: readonly number[];
}

export interface ShownCommunicator {
  readonly id: string;
  readonly name: string | undefined;
  readonly rank: number;
  readonly nRanks: number;
  /** Its members as ranks of the job, in order, if they fit. */
  readonly members: readonly number[] | undefined;
  /** Marks its calls in the ring; see read-calls.ts. */
  readonly serial: number;
  readonly hasFailed: boolean;
  /** Collectives begun so far, and those that have ended. */
  readonly begun: number;
  readonly ended: number;
  readonly waits: readonly ShownWait[];
  /** The last collective that waited. */
  readonly waited: WaitedCall | undefined;
}

/** A collective that has waited. */
interface WaitedCall {
  /** Number among the communicator's collectives, from 0. */
  readonly number: number;
  readonly call: Call;
  readonly hasEnded: boolean;
  /** Its place among all calls of the rank that waited. */
  readonly order: number;
}

/** Content of a rank's board. */
export interface ShownRank {
  readonly rank: number;
  readonly nRanks: number;
  readonly pid: number;
  /** Number of its thread in the kernel; that of the process for a rank that is one. */
  readonly thread: number;
  readonly hasClosed: boolean;
  readonly facts: BoardFacts;
  /** Bytes of this rank's part of the shared memory, in use and in all. */
  readonly usedBytes: number;
  readonly heapBytes: number;
  readonly communicators: readonly ShownCommunicator[];
  /** Collectives so far, also of closed communicators. */
  readonly nCalls: number;
}

/** Reads bytes of a segment; fewer at its end. */
export type ReadAt = (at: number, bytes: number) => Uint8Array;

/** Most ranks of a segment; more are damage. */
const MOST_RANKS = 1024;

/** Addresses of the boards in a segment; empty if it is none of this version. */
export function boardsIn(read: ReadAt): number[] {
  const [magic, version, nRanks = 0, at = 0] = wordsOf(read(BOARDS * 4, 16));
  if (magic !== MAGIC || version !== LAYOUT_VERSION || nRanks < 1 || nRanks > MOST_RANKS) return [];
  return Array.from({ length: nRanks }, (_, rank) => at + rank * BOARD_BYTES);
}

/**
 * The content of a board; undefined if no rank shows anything there.
 * @param given its first STATE_BYTES, or more
 */
export function readBoard(given: Uint8Array): ShownRank | undefined {
  if (given.length < STATE_BYTES) return undefined;
  const bytes = given.slice(0, STATE_BYTES);
  const words = wordsOf(bytes);
  const doubles = new Float64Array(bytes.buffer);
  const state = words[header.state];
  if (state !== boardStates.open && state !== boardStates.closed) return undefined;
  const facts = readText(bytes, defined(words[header.textLength]), HEADER_TEXT, HEADER_BYTES) as BoardFacts | undefined;
  if (facts === undefined) return undefined;
  const originMs = defined(doubles[headerTimes.origin]);
  const communicators = Array.from(
    { length: SLOTS },
    (_, index) => readSlot(bytes, words, doubles, index, originMs) ?? [],
  ).flat();
  return {
    rank: defined(words[header.rank]),
    nRanks: defined(words[header.nRanks]),
    pid: defined(words[header.pid]),
    thread: defined(words[header.thread]),
    hasClosed: state === boardStates.closed,
    facts,
    usedBytes: defined(doubles[headerTimes.used]),
    heapBytes: defined(doubles[headerTimes.heap]),
    communicators,
    nCalls: communicators.reduce((sum, { begun }) => sum + begun, defined(words[header.closedCalls])),
  };
}

function readSlot(
  bytes: Uint8Array,
  words: Int32Array,
  doubles: Float64Array,
  index: number,
  originMs: number,
): ShownCommunicator | undefined {
  const from = HEADER_BYTES + index * SLOT_BYTES;
  const at = from / 4;
  const state = words[at + slot.state];
  if (state !== slotStates.open && state !== slotStates.failed) return undefined;
  const text = readText(bytes, defined(words[at + slot.textLength]), from + SLOT_TEXT, from + SLOT_BYTES) as
    { readonly id: string; readonly name?: string; readonly members?: readonly number[] } | undefined;
  if (text === undefined) return undefined;
  const begun = defined(words[at + slot.begun]);
  const waited = readWaited(words, doubles, at);
  const ended = waited?.number === begun - 1 && !waited.hasEnded ? begun - 1 : begun;
  const waits = Object.values(waitKinds).flatMap((kind): ShownWait[] => {
    const report = new WaitWords(words, at + slot.reports + kind * REPORT_WORDS, REPORT_WORDS).latest();
    const activity = report && decodeActivity(report.words);
    if (report === undefined || activity === undefined) return [];
    // The report of a call that has ended since.
    if (activity.kind === 'collective' && (activity.number !== begun - 1 || ended === begun)) return [];
    return [
      {
        activity,
        sinceMs: originMs + defined(doubles[from / 8 + slotTimes.since + kind]),
        stillMs: defined(report.words[ACTIVITY_WORDS]),
        late: report.words.slice(ACTIVITY_WORDS + 1),
      },
    ];
  });
  return {
    id: text.id,
    name: text.name,
    rank: defined(words[at + slot.rank]),
    nRanks: defined(words[at + slot.nRanks]),
    members: text.members,
    serial: defined(words[at + slot.serial]),
    hasFailed: state === slotStates.failed,
    begun,
    ended,
    waits,
    waited,
  };
}

function readWaited(words: Int32Array, doubles: Float64Array, at: number): WaitedCall | undefined {
  const [count = 0, order = 0] = doubles.subarray(at / 2 + slotTimes.count);
  const number = defined(words[at + slot.waited]);
  const call = readCall(defined(words[at + slot.code]), defined(words[at + slot.root]), count);
  if (number === 0 || call === undefined) return undefined;
  return { number: Math.abs(number) - 1, call, hasEnded: number < 0, order };
}

function wordsOf(bytes: Uint8Array): Int32Array {
  return new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
}

function readText(bytes: Uint8Array, length: number, at: number, end: number): unknown {
  if (length <= 0 || at + length > end) return undefined;
  try {
    return JSON.parse(new TextDecoder().decode(bytes.subarray(at, at + length)));
  } catch {
    return undefined;
  }
}
