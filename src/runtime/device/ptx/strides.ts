import type { Builder, Double } from './builder.js';

/** Places that a thread visits: from `offset`, which moves, by `stride`. */
interface Strides {
  readonly offset: Double;
  readonly stride: Double;
}

/** Emits a loop over the places before `end` that has `unroll` of them in a turn; those that are left need another loop. */
export function emitUnrolled(
  ptx: Builder,
  { offset, stride }: Strides,
  end: Double,
  unroll: number,
  emit: (offsets: readonly Double[]) => void,
): void {
  const reach = ptx.make('mul.lo.u64', stride, unroll - 1);
  ptx.while(
    () => ptx.make('setp.lt.u64', ptx.make('add.u64', offset, reach), end),
    () => {
      const offsets = [offset];
      for (let i = 1; i < unroll; i++) offsets.push(ptx.make('add.u64', offsets[i - 1] ?? offset, stride));
      emit(offsets);
      ptx.into(offset, 'add.u64', ptx.make('add.u64', offset, reach), stride);
    },
  );
}

/** Emits a loop over the places before `end`. */
export function emitEach(ptx: Builder, { offset, stride }: Strides, end: Double, emit: (offset: Double) => void): void {
  ptx.while(
    () => ptx.make('setp.lt.u64', offset, end),
    () => {
      emit(offset);
      ptx.into(offset, 'add.u64', offset, stride);
    },
  );
}
