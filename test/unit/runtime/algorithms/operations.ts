import fc from 'fast-check';
import { expect } from 'vitest';
import {
  encodeCall,
  partsHash,
  type Algorithm,
  type Call,
  type CallDetails,
  type CallKind,
} from '../../../../src/runtime/algorithms/call.js';
import type { Engine } from '../../../../src/runtime/algorithms/engine.js';
import { DONE } from '../../../../src/runtime/device/kernels/kernels.js';
import type { Segment } from '../../../../src/runtime/device/segment.js';
import {
  canCombine,
  combinesPairs,
  dataTypes,
  operatorNames,
  type DataType,
  type NumericArray,
  type OperatorName,
} from '../../../../src/runtime/device/types.js';
import { elementsOf, extremePair, reduceElements, scaledSum, type Element, type Pair } from '../device/reference.js';
import { generator } from './connections/networks.js';

/** One of several ranks in one thread. */
export interface Member {
  readonly rank: number;
  readonly engine: Engine;
  readonly segment: Segment;
}

/** Types in which sums of a few small whole numbers are exact, so that their order does not matter. */
const exactTypes = dataTypes.filter(({ name }) => !name.startsWith('float8'));

/** An operation of all ranks, and where each has its arrays. */
export interface Operation {
  readonly kind: CallKind;
  readonly algorithm: Algorithm;
  readonly type: DataType;
  readonly operator: OperatorName;
  readonly root: number;
  readonly count: number;
  readonly seed: number;
}

/** Any operation of the kinds and algorithms given. */
export const operationOf = (algorithmsOf: Readonly<Record<CallKind, readonly Algorithm[]>>): fc.Arbitrary<Operation> =>
  fc
    .constantFrom(...(Object.keys(algorithmsOf) as CallKind[]))
    .chain((kind) =>
      fc.record({
        kind: fc.constant(kind),
        algorithm: fc.constantFrom(...algorithmsOf[kind]),
        type: fc.constantFrom(...exactTypes),
        operator: fc.constantFrom(...operatorNames),
        root: fc.nat(8),
        count: fc.oneof(fc.nat(3), fc.nat(200), fc.nat(3000)),
        seed: fc.nat(),
      }),
    );

/** A rank's part of an operation. */
export interface Part {
  readonly send: NumericArray;
  readonly recv: NumericArray;
  /** Expected `recv` at the end; undefined if it does not matter. */
  readonly expected: NumericArray | undefined;
  readonly call: Call;
  readonly details: CallDetails | undefined;
  /** `recv` when the rank had done its part. */
  outcome?: NumericArray;
}

/**
 * Carries out the operations one after the other, each rank at its own random pace, and compares each rank's
 * results with those of a naive reference.
 */
export async function overtake(members: readonly Member[], script: readonly Operation[], seed: number): Promise<void> {
  const n = members.length;
  const random = generator(seed);
  const parts = script.map((op) => makeParts(members, op));

  const position = members.map(() => -1);
  const statuses = members.map((): number => DONE);
  let turns = 1e6;
  while (position.some((at) => at < script.length)) {
    if (turns-- === 0) throw new Error(`no progress: ${position.join(' ')}`);
    const r = Math.floor(random() * n);
    if (position[r]! >= script.length) continue;
    const { engine } = members[r]!;
    if (statuses[r] !== DONE) statuses[r] = engine.progress(0);
    const done = parts[position[r]!]?.[r];
    if (done !== undefined && statuses[r] === DONE) leave(done);
    if (statuses[r] !== DONE) {
      // Connections are being made.
      if (!engine.polled) await new Promise((resolve) => setImmediate(resolve));
      continue;
    }
    position[r]!++;
    const part = parts[position[r]!]?.[r];
    if (part !== undefined) statuses[r] = begin(members[r]!, part);
  }

  for (const [i, all] of parts.entries()) {
    for (const [r, { outcome, expected }] of all.entries()) {
      const place = `${JSON.stringify({ ...script[i], type: script[i]!.type.name })} rank ${r} of ${n}`;
      if (expected !== undefined) expect([place, firstDifference(outcome!, expected)]).toEqual([place, undefined]);
    }
  }
  for (const [r, member] of members.entries()) for (const all of parts) freePlaced(member, all[r]!);
}

/** Keeps what a rank got and does with its arrays what a program may do, whatever other ranks are still at. */
function leave(part: Part): void {
  part.outcome = part.recv.slice();
  for (const { buffer, byteOffset, byteLength } of [part.send, part.recv])
    new Uint8Array(buffer, byteOffset, byteLength).fill(0x55);
}

/** Begins a rank's part. */
export function begin({ engine }: Member, { call, send, recv, details }: Part): number {
  return engine.begin({ code: encodeCall(call), type: call.type, root: call.root, send, recv, count: call.count, details }, 0);
}

/** The part of each rank in an operation, with arrays of values that identify their source. */
export function makeParts(members: readonly Member[], op: Operation): Part[] {
  const { kind, type } = op;
  const isScan = kind === 'scan' || kind === 'exscan';
  const operator = canCombine(op.operator, type) && !(isScan && op.operator === 'avg') ? op.operator : 'sum';
  const unit = combinesPairs(operator) ? 2 : 1;
  const count = op.count * unit;
  const n = members.length;
  const root = op.root % n;
  const shared = generator(op.seed);
  const counts = members.map(() => (shared() < 0.2 ? 0 : unit * Math.floor((shared() * 2 * op.count) / n)));
  const pairCounts = members.map(() => members.map(() => (shared() < 0.2 ? 0 : Math.floor((shared() * 2 * count) / n))));
  const total = counts.reduce((sum, part) => sum + part, 0);
  // Values repeat after 26 elements: making and adding them takes longest here.
  const values = members.map((_, rank) => {
    const period = new type.array(new ArrayBuffer(26 * type.bytes), 0, 26);
    for (let i = 0; i < 26; i++) {
      const small =
        operator === 'prod' ? 1 + ((i + rank) % 2) : ((i * 7 + rank * 3 + op.seed) % 13) - (type.name.startsWith('u') ? 0 : 6);
      type.write(period, i, small);
    }
    return elementsOf(period);
  });
  const value = (rank: number, i: number): Element => values[rank]![i % 26]!;
  const arrayOf = (length: number): NumericArray => new type.array(new ArrayBuffer(length * type.bytes), 0, length);
  const repeated = (period: readonly Element[], length: number): NumericArray => {
    const array = arrayOf(length);
    for (let i = 0; i < Math.min(26, length); i++) array[i] = period[i]!;
    for (let filled = 26; filled < length; filled *= 2) array.copyWithin(filled, 0, Math.min(filled, length - filled));
    return array;
  };
  const input = (rank: number, length: number): NumericArray => repeated(values[rank]!, length);
  const joined = (arrays: readonly NumericArray[]): NumericArray => {
    const array = arrayOf(sum(arrays.map(({ length }) => length)));
    let at = 0;
    for (const one of arrays) {
      array.set(one as never, at);
      at += one.length;
    }
    return array;
  };
  const scalarOf = (rank: number): number => 1 + ((rank + op.seed) % 3);
  const scalars = members.map((_, rank) => {
    const cell = new type.array(new ArrayBuffer(8), 0, 1);
    type.write(cell, 0, scalarOf(rank));
    return elementsOf(cell)[0]!;
  });
  const combine = (elements: Element[], i: number): Element => {
    if (operator === 'premulSum') return scaledSum(type, elements, scalars);
    if (operator !== 'minloc' && operator !== 'maxloc') return reduceElements(type, operator, elements);
    const pairs = elements.map((_, rank): Pair => [value(rank, i - (i % 2)), value(rank, i - (i % 2) + 1)]);
    return extremePair(operator, pairs)[i % 2]!;
  };
  /** Combination of the inputs of ranks 0 to r. */
  const reducedUpTo = (rank: number, length: number): NumericArray => {
    const some = members.slice(0, rank + 1);
    const period = Array.from({ length: 26 }, (_, i) =>
      combine(
        some.map((_, r) => value(r, i)),
        i,
      ),
    );
    return repeated(period, length);
  };
  const reduced = (length: number): NumericArray => reducedUpTo(n - 1, length);
  const all = (lengths: readonly number[]): NumericArray => joined(lengths.map((length, rank) => input(rank, length)));
  const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
  const before = (values: readonly number[], rank: number): number => sum(values.slice(0, rank));
  const column = (rank: number): number[] => pairCounts.map((row) => row[rank]!);
  const displacementsOf = (values: readonly number[]): number[] => values.map((_, rank) => before(values, rank));
  const even = members.map(() => count);

  return members.map(({ rank, segment }): Part => {
    // Neighbouring seeds begin alike.
    const own = generator(Math.imul(op.seed + (rank + 1) * 0x9e3779b1, 0x85ebca6b));
    const make = (length: number): NumericArray =>
      own() < 0.5 ? segment.alloc(type.array, length) : new type.array(new ArrayBuffer(length * type.bytes + 8), 8, length);
    const isRoot = rank === root;
    const part = (
      send: NumericArray,
      recv: NumericArray,
      expected: NumericArray | undefined,
      callCount: number,
      details?: CallDetails,
      hash = 0,
    ): Part => {
      const call: Call = {
        kind,
        type,
        operator,
        root: ['broadcast', 'reduce', 'gather', 'scatter'].includes(kind) ? root : hash,
        count: callCount,
        algorithm: op.algorithm,
      };
      return { send, recv, expected, call, details: operator === 'premulSum' ? { ...details, scalar: scalarOf(rank) } : details };
    };
    const filled = (array: NumericArray): NumericArray => {
      array.set(input(rank, array.length) as never);
      return array;
    };
    const inPlace = own() < 0.4;
    const slice = (array: NumericArray, from: number, length: number): NumericArray => array.subarray(from, from + length);
    switch (kind) {
      case 'barrier':
        return part(make(0), make(0), undefined, 0);
      case 'allReduce':
      case 'reduce': {
        const send = filled(make(count));
        const expected = kind === 'allReduce' || isRoot ? reduced(count) : undefined;
        return part(send, inPlace ? send : make(count), expected, count);
      }
      case 'scan': {
        const send = filled(make(count));
        return part(send, inPlace ? send : make(count), reducedUpTo(rank, count), count);
      }
      case 'exscan': {
        const send = filled(make(count));
        const recv = inPlace ? send : make(count);
        return part(send, recv, rank === 0 ? recv.slice() : reducedUpTo(rank - 1, count), count);
      }
      case 'broadcast': {
        const recv = make(count);
        const send = inPlace ? recv : make(isRoot ? count : 0);
        return part(filled(send), recv, input(root, count), count);
      }
      case 'allGather': {
        const recv = make(count * n);
        const send = inPlace ? slice(recv, rank * count, count) : make(count);
        return part(filled(send), recv, all(even), count);
      }
      case 'allGatherV': {
        const recv = make(total);
        const send = inPlace ? slice(recv, before(counts, rank), counts[rank]!) : make(counts[rank]!);
        return part(
          filled(send),
          recv,
          all(counts),
          total,
          { counts, displacements: displacementsOf(counts) },
          partsHash(counts),
        );
      }
      case 'reduceScatter': {
        const send = filled(make(count * n));
        return part(
          send,
          inPlace ? slice(send, rank * count, count) : make(count),
          reduced(count * n).slice(rank * count, (rank + 1) * count),
          count,
        );
      }
      case 'reduceScatterV': {
        const send = filled(make(total));
        const from = before(counts, rank);
        const recv = inPlace ? slice(send, from, counts[rank]!) : make(counts[rank]!);
        return part(
          send,
          recv,
          reduced(total).slice(from, from + counts[rank]!),
          total,
          { counts, displacements: displacementsOf(counts) },
          partsHash(counts),
        );
      }
      case 'allToAll': {
        const send = filled(make(count * n));
        const expected = joined(members.map((_, other) => input(other, count * n).slice(rank * count, (rank + 1) * count)));
        return part(send, inPlace ? send : make(count * n), expected, count);
      }
      case 'allToAllV': {
        const sent = pairCounts[rank]!;
        const received = column(rank);
        const expected = joined(
          members.map((_, other) => {
            const row = pairCounts[other]!;
            return input(other, sum(row)).slice(before(row, rank), before(row, rank) + row[rank]!);
          }),
        );
        const details = {
          counts: sent,
          displacements: displacementsOf(sent),
          recvCounts: received,
          recvDisplacements: displacementsOf(received),
        };
        return part(filled(make(sum(sent))), make(sum(received)), expected, 0, details);
      }
      case 'gather': {
        const recv = make(isRoot ? count * n : 0);
        const send = isRoot && inPlace ? slice(recv, rank * count, count) : make(count);
        return part(filled(send), recv, isRoot ? all(even) : undefined, count);
      }
      case 'scatter': {
        const send = filled(make(isRoot ? count * n : 0));
        const recv = isRoot && inPlace ? slice(send, rank * count, count) : make(count);
        return part(send, recv, input(root, count * n).slice(rank * count, (rank + 1) * count), count);
      }
    }
  });
}

/** The first element that differs. It costs a hundredth of what `toEqual` does, and little where all bytes are equal. */
export function firstDifference(array: NumericArray, expected: ArrayLike<Element>): object | undefined {
  if (ArrayBuffer.isView(expected) && array.constructor === expected.constructor && bytesOf(array).equals(bytesOf(expected)))
    return undefined;
  if (array.length !== expected.length) return { length: array.length, expected: expected.length };
  for (let i = 0; i < expected.length; i++)
    if (array[i] !== expected[i]) return { at: i, is: String(array[i]), expected: String(expected[i]) };
  return undefined;
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);
}

/** Frees arrays of the segment; of overlapping views, the longer one. */
function freePlaced({ segment }: Member, { send, recv }: Part): void {
  const overlap =
    send.buffer === recv.buffer &&
    send.byteOffset < recv.byteOffset + recv.byteLength &&
    recv.byteOffset < send.byteOffset + send.byteLength;
  const arrays = overlap ? [send.length > recv.length ? send : recv] : [send, recv];
  for (const array of arrays) if (segment.overlaps(array, 0, Infinity)) attempt(() => segment.free(array));
}

/** The error of a call. */
export function attempt(call: () => unknown): unknown {
  try {
    call();
    return undefined;
  } catch (error) {
    return error;
  }
}
