import type { Builder, Double, Lane, Word } from './builder.js';
import { assign } from './elements.js';
import { PlainPacks } from './plain-packs.js';
import type { RecordReader, Workers } from './record-reader.js';
import { Reduction, type Arithmetic } from './reduction.js';
import { emitEach, emitUnrolled } from './strides.js';
import type { Wire } from './wires.js';

/**
 * The data of a step that has operands on a wire: the last ones, whose packs hold all data in order. Operands in ordinary
 * memory may begin anywhere; those on the wire begin at a multiple of 16 and have room for a whole last pack.
 */
export function emitWireBody(ptx: Builder, record: RecordReader, workers: Workers, arithmetic: Arithmetic, wire: Wire): void {
  const reduction = new Reduction(ptx, record, arithmetic);
  const bytes = record.double('bytes');
  const nPlain: PlainCounts = {
    sources: ptx.make('sub.u32', reduction.nSources, record.word('nWireSources')),
    destinations: ptx.make('sub.u32', record.word('nDestinations'), record.word('nWireDestinations')),
  };
  const packs = new PlainPacks(ptx, arithmetic.bytes, wire.bytes);
  const onWire = (base: Double, offset: Double): Double =>
    ptx.make('add.u64', base, wire.bytes === 16 ? offset : ptx.make('mul.lo.u64', offset, 16 / wire.bytes));

  const emitPacks = (offsets: readonly Double[], areWhole: boolean): void => {
    const leftAt = (offset: Double): [Double?] => (areWhole ? [] : [ptx.make('sub.u64', bytes, offset)]);
    const results = reduction.emit((base, index) => {
      const loaded = packs.registers(offsets.length);
      const set = (lanes: readonly Lane[]): void => lanes.forEach((lane, i) => assign(ptx, loaded[i] ?? lane, lane));
      ptx.either(
        ptx.make('setp.lt.u32', index === 0 ? ptx.make('mov.b32', 0) : index, nPlain.sources),
        () => set(offsets.flatMap((offset) => packs.load(ptx.make('add.u64', base, offset), ...leftAt(offset)))),
        () => {
          const { load } = wire;
          if (load !== undefined) set(offsets.flatMap((offset) => load(onWire(base, offset))));
        },
      );
      return loaded;
    });
    const lanes = results.length / offsets.length;
    reduction.eachDestination((base, index) => {
      offsets.forEach((offset, i) => {
        const values = results.slice(i * lanes, (i + 1) * lanes);
        ptx.either(
          ptx.make('setp.lt.u32', index, nPlain.destinations),
          () => packs.store(ptx.make('add.u64', base, offset), values, ...leftAt(offset)),
          () => wire.store(onWire(base, offset), values),
        );
      });
    });
  };

  const strides = {
    offset: ptx.make('mul.wide.u32', workers.index, wire.bytes),
    stride: ptx.make('mul.wide.u32', workers.count, wire.bytes),
  };
  if (wire.unroll > 1)
    emitUnrolled(ptx, strides, wholePacks(ptx, record, wire, bytes, nPlain), wire.unroll, (offsets) => {
      emitPacks(offsets, true);
    });
  emitEach(ptx, strides, bytes, (offset) => {
    emitPacks([offset], false);
  });
}

/** Operands in ordinary memory, which come before those on the wire. */
interface PlainCounts {
  readonly sources: Word;
  readonly destinations: Word;
}

/** Bytes of whole packs if all operands in ordinary memory are aligned to them, else 0. */
function wholePacks(ptx: Builder, record: RecordReader, wire: Wire, bytes: Double, nPlain: PlainCounts): Double {
  const bits = ptx.make('mov.b64', 0);
  for (const field of ['sources', 'destinations'] as const)
    ptx.count(0, nPlain[field], (index) => {
      ptx.into(bits, 'or.b64', bits, record.pointer(field, index));
    });
  const isAligned = ptx.make('setp.eq.u64', ptx.make('and.b64', bits, wire.bytes - 1), 0);
  const whole = ptx.make('sub.u64', bytes, ptx.make('and.b64', bytes, wire.bytes - 1));
  return ptx.make('selp.b64', whole, ptx.make('mov.b64', 0), isAligned);
}
