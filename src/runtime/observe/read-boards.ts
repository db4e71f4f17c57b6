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
  KEPT,
  LAYOUT_VERSION,
  MAGIC,
  RECORD_BYTES,
  REPORT_WORDS,
  RUNS,
  SINCE,
  slot,
  SLOT_BYTES,
  SLOT_SHIFT,
  SLOT_TEXT,
  SLOTS,
  slotStates,
  TIMES,
  waitKinds,
} from '../device/board-layout.js';
import { WaitWords } from '../device/wait-report.js';
import type { BoardFacts } from './board-facts.js';

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
  readonly hasFailed: boolean;
  /** Collectives begun so far, and those that have ended. */
  readonly begun: number;
  readonly ended: number;
  readonly waits: readonly ShownWait[];
}

/** A collective that a rank has called. */
export interface RecordedCall {
  readonly communicator: ShownCommunicator;
  /** Number among the communicator's collectives, from 0. */
  readonly number: number;
  readonly call: Call;
  readonly hasEnded: boolean;
  /** Milliseconds since 1970, where the clock was read: for calls that waited, and some others. */
  readonly beganMs: number | undefined;
  readonly endedMs: number | undefined;
}

/** Content of a rank's board. */
export interface ShownRank {
  readonly rank: number;
  readonly nRanks: number;
  readonly pid: number;
  readonly hasClosed: boolean;
  readonly facts: BoardFacts;
  /** Bytes of this rank's part of the shared memory, in use and in all. */
  readonly usedBytes: number;
  readonly heapBytes: number;
  readonly communicators: readonly ShownCommunicator[];
  /** Collectives so far; the last ones of the open communicators, one communicator after the other, oldest first. */
  readonly nCalls: number;
  readonly calls: readonly RecordedCall[];
}

/** Reads bytes of a segment; fewer at its end. */
export type ReadAt = (at: number, bytes: number) => Uint8Array;

/** Most ranks of a segment; more are damage. */
const MOST_RANKS = 1024;

/** The boards in a segment; empty if it is none of this version. */
export function readBoards(read: ReadAt): ShownRank[] {
  const [magic, version, nRanks = 0, at = 0] = wordsOf(read(BOARDS * 4, 16));
  if (magic !== MAGIC || version !== LAYOUT_VERSION || nRanks < 1 || nRanks > MOST_RANKS) return [];
  return Array.from({ length: nRanks }, (_, rank) => read(at + rank * BOARD_BYTES, BOARD_BYTES)).flatMap(
    (bytes) => readBoard(bytes) ?? [],
  );
}

/** The content of a board; undefined if no rank shows anything there. */
export function readBoard(given: Uint8Array): ShownRank | undefined {
  if (given.length < BOARD_BYTES) return undefined;
  const bytes = given.slice();
  const words = wordsOf(bytes);
  const doubles = new Float64Array(bytes.buffer);
  const state = words[header.state];
  if (state !== boardStates.open && state !== boardStates.closed) return undefined;
  const facts = readText(bytes, words[header.textLength] ?? 0, HEADER_TEXT, HEADER_BYTES) as BoardFacts | undefined;
  if (facts === undefined) return undefined;
  const originMs = doubles[headerTimes.origin] ?? 0;
  const slots = Array.from({ length: SLOTS }, (_, index) => readSlot(bytes, words, doubles, index, originMs));
  return {
    rank: words[header.rank] ?? 0,
    nRanks: words[header.nRanks] ?? 0,
    pid: words[header.pid] ?? 0,
    hasClosed: state === boardStates.closed,
    facts,
    usedBytes: doubles[headerTimes.used] ?? 0,
    heapBytes: doubles[headerTimes.heap] ?? 0,
    communicators: slots.flatMap((each) => each?.shown ?? []),
    nCalls: slots.reduce((sum, each) => sum + (each?.shown.begun ?? 0), words[header.closedCalls] ?? 0),
    calls: slots.flatMap((each) => (each === undefined ? [] : callsOf(each, bytes, words, doubles, originMs))),
  };
}

/** A communicator, with its number among those that the board has shown. */
interface Slot {
  readonly shown: ShownCommunicator;
  readonly number: number;
}

function readSlot(
  bytes: Uint8Array,
  words: Int32Array,
  doubles: Float64Array,
  index: number,
  originMs: number,
): Slot | undefined {
  const from = HEADER_BYTES + index * SLOT_BYTES;
  const at = from / 4;
  const state = words[at + slot.state];
  if (state !== slotStates.open && state !== slotStates.failed) return undefined;
  const text = readText(bytes, words[at + slot.textLength] ?? 0, from + SLOT_TEXT, from + SLOT_BYTES) as
    { readonly id: string; readonly name?: string } | undefined;
  if (text === undefined) return undefined;
  const begun = words[at + slot.begun] ?? 0;
  const ended = words[at + slot.waiting] === begun ? begun - 1 : begun;
  const waits = Object.values(waitKinds).flatMap((kind): ShownWait[] => {
    const report = new WaitWords(words, at + slot.reports + kind * REPORT_WORDS, REPORT_WORDS).heard();
    const activity = report && decodeActivity(report.words);
    if (report === undefined || activity === undefined) return [];
    // The report of a call that has ended since.
    if (activity.kind === 'collective' && (activity.number !== begun - 1 || ended === begun)) return [];
    return [
      {
        activity,
        sinceMs: originMs + (doubles[from / 8 + SINCE + kind] ?? 0),
        stillMs: report.words[ACTIVITY_WORDS] ?? 0,
        late: report.words.slice(ACTIVITY_WORDS + 1),
      },
    ];
  });
  const shown = {
    id: text.id,
    name: text.name,
    rank: words[at + slot.rank] ?? 0,
    nRanks: words[at + slot.nRanks] ?? 0,
    hasFailed: state === slotStates.failed,
    begun,
    ended,
    waits,
  };
  return { shown, number: words[at + slot.number] ?? 0 };
}

/** The last calls of a communicator, from its runs and times. */
function callsOf(
  { shown, number }: Slot,
  bytes: Uint8Array,
  words: Int32Array,
  doubles: Float64Array,
  originMs: number,
): RecordedCall[] {
  const floats = new Float32Array(bytes.buffer);
  const times = new Map<number, { readonly beganMs: number; readonly durationMs: number }>();
  for (let at = TIMES / 4; at < BOARD_BYTES / 4; at += RECORD_BYTES / 4)
    if (words[at] === number)
      times.set(words[at + 1] ?? 0, { beganMs: originMs + (doubles[at / 2 + 1] ?? 0), durationMs: floats[at + 4] ?? 0 });
  const runs: { readonly first: number; readonly call: Call | undefined }[] = [];
  const recorded = words[header.runs] ?? 0;
  for (let index = Math.max(0, recorded - KEPT); index < recorded; index++) {
    const at = (RUNS + (index & (KEPT - 1)) * RECORD_BYTES) / 4;
    if (words[at + 5] !== number) continue;
    const call = readCall((words[at] ?? 0) & (2 ** SLOT_SHIFT - 1), words[at + 1] ?? 0, doubles[at / 2 + 1] ?? 0);
    runs.push({ first: words[at + 4] ?? 0, call });
  }
  const calls: RecordedCall[] = [];
  runs.forEach(({ first, call }, index) => {
    const end = runs[index + 1]?.first ?? shown.begun + 1;
    if (call === undefined) return;
    for (let count = Math.max(first, shown.begun - KEPT + 1); count < end; count++) {
      const time = times.get(count);
      const hasEnded = count <= shown.ended;
      calls.push({
        communicator: shown,
        number: count - 1,
        call,
        hasEnded,
        beganMs: time?.beganMs,
        endedMs: time !== undefined && hasEnded && time.durationMs > 0 ? time.beganMs + time.durationMs : undefined,
      });
    }
  });
  return calls;
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
