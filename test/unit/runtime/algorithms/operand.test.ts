import { expect, test } from 'vitest';
import { Operand } from '../../../../src/runtime/algorithms/operand.js';
import { loadLibc } from '../../../../src/runtime/device/libc.js';
import { Segment } from '../../../../src/runtime/device/segment.js';
import { createMemory } from '../../../../src/runtime/device/shared-memory.js';

const { libc } = loadLibc();

test.each([
  ['with the C library', libc],
  ['without it', undefined],
])('an array that is transferred during a call is refused, unless no element of it is used, %s', (_, libc) => {
  const segment = Segment.ofThreads(createMemory(), 0, 1);
  const room = segment.allocateBytes(64);
  for (const length of [0, 5]) {
    const array = new Float64Array(length);
    const operand = new Operand(segment, libc);
    operand.use(array);
    operand.write(0, 8 * length, room);
    structuredClone(array.buffer, { transfer: [array.buffer] });
    for (const act of [
      () => operand.write(0, 8 * length, room),
      () => operand.copyTo(room, 0, 8 * length),
      () => operand.checkAttached(8 * length),
    ]) {
      if (length === 0) act();
      else expect(act).toThrow(expect.objectContaining({ code: 'BUFFER_DETACHED' }));
    }
  }
});
