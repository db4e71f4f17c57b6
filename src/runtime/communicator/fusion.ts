import { kindOf } from '../algorithms/call.js';
import { callKinds } from '../device/kernels/kernels.js';
import type { DataType, NumericArray } from '../device/types.js';
import { InvalidArgumentError, InvalidUsageError } from '../../errors.js';
import type { QueuedCall } from '../algorithms/queued-call.js';
import { addTo } from '../../add-to.js';

/** Up to this length, synchronising with the other ranks costs more than copying the data twice. */
const FUSED_CALL_BYTES = 8 * 1024;
/** Longest exchange that calls are fused into. */
export const FUSED_BYTES = 64 * 1024;

/** The part of a communicator that fusion uses. */
export interface FusionMember {
  /** This rank's number, for errors. */
  readonly rank: number;
  /** True if results of all-reduces have the same bits when calls of these lengths become one call. */
  isFusable(type: DataType, longestBytes: number, totalBytes: number): boolean;
  /** Memory for the data of fused calls. */
  fusionArray(type: DataType, count: number): NumericArray;
}

/**
 * Fuses the calls of a group on one communicator: consecutive small all-reduces with one type and operator become one (copy
 * in, one all-reduce, copy out). The decision depends only on arguments that are equal on all ranks, and calls are fused only
 * if the results have the same bits.
 *
 * @throws InvalidUsageError `BUFFER_OVERLAP` when one call writes elements that another one uses
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

/** End of the run of fusable calls that starts at `from`. */
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

/**
 * Copies elements as bytes, because arrays of one type may have two classes. Throws if the caller has detached one since the
 * call.
 */
function copy(destination: NumericArray, to: number, source: NumericArray, from: number, count: number): void {
  if (destination.length < to + count || source.length < from + count) {
    throw new InvalidArgumentError(
      'BUFFER_DETACHED',
      'an array of a group was transferred or resized while the group was running',
    );
  }
  if (count > 0) bytesOf(destination, to, count).set(bytesOf(source, from, count));
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

/** Throws if one call writes elements that another one uses. */
function checkApart(run: readonly QueuedCall[], rank: number): void {
  const byBuffer = new Map<ArrayBufferLike, Range[]>();
  const add = (call: number, array: NumericArray, bytes: number, written: boolean): void => {
    addTo(byBuffer, array.buffer, { call, from: array.byteOffset, to: array.byteOffset + bytes, written });
  };
  run.forEach(({ send, recv, count, type }, call) => {
    if (count === 0) return;
    add(call, recv, count * type.bytes, true);
    if (send !== recv) add(call, send, count * type.bytes, false);
  });
  for (const ranges of byBuffer.values()) {
    ranges.sort((a, b) => a.from - b.from);
    // The ranges that reach furthest so far, among those written and among all.
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
    `the all-reduces of a group that are carried out together (numbers ${first} and ${second}) use the same elements, and one writes them; ` +
      'give each its own arrays, or call one after the group',
    { rank },
  );
}
