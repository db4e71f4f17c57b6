import { kindOf } from '../algorithms/call.js';
import { callKinds } from '../device/kernels/kernels.js';
import type { DataType, NumericArray } from '../device/types.js';
import { InvalidArgumentError, InvalidUsageError } from '../../errors.js';
import type { QueuedCall } from '../algorithms/queued-call.js';

/** A call up to this length costs more for meeting the other ranks than for two copies of its data. */
const FUSED_CALL_BYTES = 8 * 1024;
/** Longest exchange that calls are fused into. */
export const FUSED_BYTES = 64 * 1024;

/** The part of a communicator that fusion uses. */
export interface FusionMember {
  /** This rank's number there, for errors. */
  readonly rank: number;
  /** True if results of all-reduces are the same bits when calls of these lengths are one call of their sum. */
  isFusable(type: DataType, longestBytes: number, totalBytes: number): boolean;
  /** Memory for what fused calls exchange. */
  fusionArray(type: DataType, count: number): NumericArray;
}

/**
 * The calls of a group on one communicator, in which small all-reduces of one type and operator that follow each other
 * have become one: copy in, one all-reduce, copy out. What is fused follows only from what all ranks call alike, and
 * only where the results have the same bits.
 *
 * @throws InvalidUsageError `BUFFER_OVERLAP` when one of them writes what another reads or writes
 */
export function fuse(calls: readonly QueuedCall[], member: FusionMember): QueuedCall[] {
  const result: QueuedCall[] = [];
  for (let from = 0; from < calls.length;) {
    const to = endOfRun(calls, from, member);
    const run = calls.slice(from, to);
    const [first] = run;
    if (first !== undefined) result.push(run.length === 1 ? first : fused(run, first, member));
    from = to;
  }
  return result;
}

/** End of the run of calls from `from` on that can become one. */
function endOfRun(calls: readonly QueuedCall[], from: number, member: FusionMember): number {
  const first = calls[from];
  if (first === undefined || !isSmall(first)) return from + 1;
  let total = first.count;
  let longest = first.count;
  let to = from + 1;
  for (; to < calls.length; to++) {
    const next = calls[to];
    if (next?.code !== first.code || !isSmall(next)) break;
    const { type } = next;
    total += next.count;
    longest = Math.max(longest, next.count);
    if (total * type.bytes > FUSED_BYTES || !member.isFusable(type, longest * type.bytes, total * type.bytes)) break;
  }
  return to;
}

function isSmall({ code, type, count, details }: QueuedCall): boolean {
  return kindOf(code) === callKinds.allReduce && count * type.bytes <= FUSED_CALL_BYTES && details === undefined;
}

function fused(run: readonly QueuedCall[], { code, type, root }: QueuedCall, member: FusionMember): QueuedCall {
  checkApart(run, member.rank);
  const count = run.reduce((sum, call) => sum + call.count, 0);
  const room = member.fusionArray(type, count);
  return {
    code,
    type,
    root,
    count,
    send: room,
    recv: room,
    details: undefined,
    parts: run,
    before: () => {
      let at = 0;
      for (const call of run) {
        copy(room, at, call.send, 0, call.count);
        at += call.count;
      }
    },
    after: () => {
      let at = 0;
      for (const call of run) {
        copy(call.recv, 0, room, at, call.count);
        at += call.count;
      }
    },
  };
}

/** Copies elements, as bytes: arrays of one type may be of two classes. The caller may have taken one away since the call. */
function copy(destination: NumericArray, to: number, source: NumericArray, from: number, count: number): void {
  if (destination.length < to + count || source.length < from + count) {
    throw new InvalidArgumentError(
      'BUFFER_DETACHED',
      'an array of a group was transferred or resized away while the group was under way',
    );
  }
  bytesOf(destination, to, count).set(bytesOf(source, from, count));
}

function bytesOf(array: NumericArray, from: number, count: number): Uint8Array {
  const { BYTES_PER_ELEMENT: bytes } = array;
  return new Uint8Array(array.buffer, array.byteOffset + from * bytes, count * bytes);
}

interface Range {
  readonly call: number;
  readonly from: number;
  readonly to: number;
  readonly written: boolean;
}

/** Refuses calls of which one writes what another one uses. */
function checkApart(run: readonly QueuedCall[], rank: number): void {
  const byBuffer = new Map<ArrayBufferLike, Range[]>();
  const add = (call: number, array: NumericArray, bytes: number, written: boolean): void => {
    const ranges = byBuffer.get(array.buffer) ?? [];
    ranges.push({ call, from: array.byteOffset, to: array.byteOffset + bytes, written });
    byBuffer.set(array.buffer, ranges);
  };
  run.forEach(({ send, recv, count, type }, call) => {
    if (count === 0) return;
    add(call, recv, count * type.bytes, true);
    if (send !== recv) add(call, send, count * type.bytes, false);
  });
  for (const ranges of byBuffer.values()) {
    ranges.sort((a, b) => a.from - b.from);
    // What reaches furthest so far, of the written ones and of all.
    let written: Range | undefined;
    let any: Range | undefined;
    for (const range of ranges) {
      const other = range.written ? any : written;
      if (other !== undefined && other.to > range.from && other.call !== range.call) throw inEachOthersWay(other, range, rank);
      if (range.written && (written === undefined || range.to > written.to)) written = range;
      if (any === undefined || range.to > any.to) any = range;
    }
  }
}

function inEachOthersWay(a: Range, b: Range, rank: number): InvalidUsageError {
  const [first, second] = [Math.min(a.call, b.call) + 1, Math.max(a.call, b.call) + 1];
  return new InvalidUsageError(
    'BUFFER_OVERLAP',
    `the all-reduces of a group that are carried out together (number ${first} and ${second} of them) use the same elements, and one writes them; ` +
      'give each its own arrays, or call one after the group',
    { rank },
  );
}
