import type { Address, Builder, Double, Lane, Shape, Word } from './builder.js';
import { Reduction, type Arithmetic } from './reduction.js';
import type { RecordReader, Workers } from './record-reader.js';
import { emitEach, emitUnrolled } from './strides.js';

/** Accesses of 16 bytes that a thread has in flight. NCCL has 8 since Ampere and 4 before; sums in float32 need the registers. */
const UNROLL = 4;
const UNROLL_WIDE = 2;

/**
 * The data of a step in ordinary memory: destination[…] = source[0] ∘ source[1] ∘ …
 *
 *     head        vectors of 16 bytes        tail
 *     e e e | 16 16 16 16 | 16 16 16 16 | 16 | e e
 *
 * If all arrays have the same address modulo 16, elements up to the first multiple of 16 are the head, and those after the
 * last whole vector the tail. Otherwise all elements are the head.
 */
export function emitBody(ptx: Builder, record: RecordReader, workers: Workers, arithmetic: Arithmetic): void {
  const reduction = new Reduction(ptx, record, arithmetic);
  const bytes = record.double('bytes');
  const { head, middle } = emitParts(ptx, record, reduction, bytes);

  ptx.note('vectors');
  const end = ptx.make('add.u64', head, middle);
  const offset = ptx.make('add.u64', head, ptx.make('mul.wide.u32', workers.index, 16));
  const stride = ptx.make('mul.wide.u32', workers.count, 16);
  const unroll = arithmetic.accumulator === 'float32' ? UNROLL_WIDE : UNROLL;
  emitUnrolled(ptx, { offset, stride }, end, unroll, (offsets) => {
    emitPacks(ptx, reduction, offsets, vectorOf(arithmetic));
  });
  emitEach(ptx, { offset, stride }, end, (at) => {
    emitPacks(ptx, reduction, [at], vectorOf(arithmetic));
  });

  ptx.note('head and tail');
  const rest = ptx.make('sub.u64', bytes, middle);
  const strides = {
    offset: ptx.make('mul.wide.u32', workers.index, arithmetic.bytes),
    stride: ptx.make('mul.wide.u32', workers.count, arithmetic.bytes),
  };
  emitEach(ptx, strides, rest, (at) => {
    const isHead = ptx.make('setp.lt.u64', at, head);
    const place = ptx.make('selp.b64', at, ptx.make('add.u64', at, middle), isHead);
    emitPacks(ptx, reduction, [place], elementOf(arithmetic));
  });
}

/** Lengths in bytes of the head and of the vectors. */
function emitParts(
  ptx: Builder,
  record: RecordReader,
  { nSources }: Reduction,
  bytes: Double,
): { readonly head: Double; readonly middle: Double } {
  const first = record.double('sources');
  const differences = ptx.make('mov.b64', 0);
  const compare =
    (field: 'sources' | 'destinations') =>
    (index: Word): void => {
      const difference = ptx.make('xor.b64', first, record.pointer(field, index));
      ptx.into(differences, 'or.b64', differences, difference);
    };
  ptx.count(1, nSources, compare('sources'));
  ptx.count(0, record.word('nDestinations'), compare('destinations'));
  const isAligned = ptx.make('setp.eq.u64', ptx.make('and.b64', differences, 15), 0);
  const toAligned = ptx.make('and.b64', ptx.make('sub.u64', 0, first), 15);
  const head = ptx.make('selp.b64', ptx.make('min.u64', toAligned, bytes), bytes, isAligned);
  return { head, middle: ptx.make('and.b64', ptx.make('sub.u64', bytes, head), -16n & 0xffffffffffffffffn) };
}

/** A vector of elements. */
function vectorOf({ bytes }: Arithmetic): Shape {
  return bytes === 8 ? { bits: 64, count: 2 } : { bits: 32, count: 4 };
}

function elementOf({ bytes }: Arithmetic): Shape {
  return { bits: (8 * bytes) as Shape['bits'] };
}

/** Combines what is at some offsets of all sources, and writes it to all destinations. */
function emitPacks(ptx: Builder, reduction: Reduction, offsets: readonly Double[], shape: Shape): void {
  const places = (base: Double): Address[] =>
    offsets.map((offset) => ({ space: 'global', base: ptx.make('add.u64', base, offset) }));
  const load = (base: Double): Lane[] => places(base).flatMap((address) => ptx.load(address, shape));
  const results = reduction.emit(load);
  const lanes = results.length / offsets.length;
  reduction.eachDestination((base) => {
    places(base).forEach((address, i) => ptx.store(address, shape.bits, results.slice(i * lanes, (i + 1) * lanes)));
  });
}
