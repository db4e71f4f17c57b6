import { describe, expect, it, test } from 'vitest';
import { fields, RECORD_BYTES, writeStep, type Flag } from '../../../../src/runtime/device/ptx/step-record.js';
import { DeviceMemory } from '../../../../testing/ptx/memory.js';
import { parseModule } from '../../../../testing/ptx/parse.js';
import { runKernels } from '../../../../testing/ptx/run.js';

/** A module with kernels of two addresses. */
const moduleOf = (...bodies: string[]): string =>
  '.version 6.3\n.target sm_75\n.address_size 64\n' +
  bodies
    .map(
      (body, i) => `.visible .entry k${i}(.param .b64 a, .param .b64 b)
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %d<8>;
  .shared .align 8 .b8 common[64];
  mov.b64 %d0, a;
  ld.param.b64 %d1, [%d0];
  ld.param.b64 %d2, [%d0+8];
  mov.b32 %r0, %tid.x;
  mov.b32 %r7, common;
${body}
  ret;
}
`,
    )
    .join('');

function runBodies(bodies: string[], { threads = 1, seed = 1, memory = new DeviceMemory() } = {}): DataView[] {
  const [a, b] = [memory.allocate('a', 64), memory.allocate('b', 64)];
  const kernels = [...parseModule(moduleOf(...bodies)).values()];
  const launches = kernels.map((kernel, i) => ({ kernel, device: `gpu ${i}`, blocks: 1, threads, parameters: { a, b } }));
  runKernels(memory, launches, { seed, quantum: 3, maxSteps: 50_000 });
  return [a, b].map((address) => memory.viewAt(address));
}

/** Data, then a flag; and a reader that waits for the flag. */
const producer = (store: string): string => `  mov.b32 %r1, 1;
  mov.b32 %r2, 7;
  st.global.b32 [%d1], %r2;
  ${store} [%d2], %r1;`;
const consumer = (load: string): string => `WAIT:
  ${load} %r1, [%d2];
  setp.eq.u32 %p0, %r1, 0;
  @%p0 bra WAIT;
  ld.global.b32 %r2, [%d1];
  st.global.b32 [%d1+16], %r2;`;

describe('data that a flag publishes', () => {
  it('arrive in every schedule with a release and an acquire', () => {
    for (let seed = 1; seed <= 50; seed++) {
      const [a] = runBodies([producer('st.release.sys.global.b32'), consumer('ld.acquire.sys.global.b32')], { seed });
      expect(a?.getUint32(16, true)).toBe(7);
    }
  });

  it.each([
    ['st.relaxed.sys.global.b32', 'ld.acquire.sys.global.b32'],
    ['st.release.sys.global.b32', 'ld.relaxed.sys.global.b32'],
    ['st.global.b32', 'ld.acquire.sys.global.b32'],
    ['st.release.sys.global.b32', 'ld.global.b32'],
  ])('race with %s and %s, in the first schedule', (store, load) => {
    expect(() => runBodies([producer(store), consumer(load)])).toThrow(
      /race at .*'(?:ld|st)\..*a release, an acquire or a barrier is missing/,
    );
  });
});

test('stores of a thread are seen late, and in another order, by threads that do not wait', () => {
  // It goes on for a while, because its end would show both.
  const writer = `  mov.b32 %r1, 1;
  st.relaxed.sys.global.b32 [%d1], %r1;
  st.relaxed.sys.global.b32 [%d2], %r1;
${'  add.u32 %r2, %r1, %r1;\n'.repeat(20)}`;
  const observer = `  ld.relaxed.sys.global.b32 %r1, [%d2];
  ld.relaxed.sys.global.b32 %r2, [%d1];
  st.global.b32 [%d1+16], %r1;
  st.global.b32 [%d1+32], %r2;`;
  const seen = new Set<string>();
  for (let seed = 1; seed <= 300; seed++) {
    const [a] = runBodies([writer, observer], { seed });
    seen.add(`${a?.getUint32(16, true)} ${a?.getUint32(32, true)}`);
  }
  // The second store before the first, too.
  expect([...seen].sort()).toEqual(['0 0', '0 1', '1 0', '1 1']);
});

test('threads of a block see each other’s stores after a barrier, and race without', () => {
  const exchange = (barrier: string): string => `  mul.lo.u32 %r1, %r0, 4;
  add.u32 %r2, %r7, %r1;
  st.shared.b32 [%r2], %r0;
  ${barrier}
  xor.b32 %r3, %r1, 4;
  add.u32 %r4, %r7, %r3;
  ld.shared.b32 %r5, [%r4];
  cvt.u64.u32 %d3, %r1;
  add.u64 %d4, %d1, %d3;
  st.global.b32 [%d4], %r5;`;
  const [a] = runBodies([exchange('bar.sync 0;')], { threads: 2 });
  expect([a?.getUint32(0, true), a?.getUint32(4, true)]).toEqual([1, 0]);
  expect(() => runBodies([exchange('')], { threads: 2 })).toThrow('race');
});

describe('an access is refused', () => {
  it.each([
    ['outside of its memory', 'ld.global.b32 %r1, [%d1+64];', 'out of bounds: 4 bytes at 64 of a'],
    ['of no memory', 'mov.b64 %d3, 4096;\n  ld.global.b32 %r1, [%d3];', 'no memory at 0x1000'],
    ['that is not aligned', 'ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%d1+8];', 'misaligned: 16 bytes at 8 of a'],
    ['outside of shared memory', 'ld.shared.b64 %d3, [%r7+64];', 'out of bounds: 8 bytes at 64 of shared memory'],
    ['outside of the parameters', 'ld.param.b64 %d3, [%d0+16];', 'out of bounds: 8 bytes at 16 of the parameters'],
  ])('%s', (_, body, message) => {
    expect(() => runBodies([`  ${body}`])).toThrow(message);
  });
});

describe('the text is refused', () => {
  it.each([
    ['an unknown instruction', 'mul24.lo.u32 %r1, %r0, %r0;', 'does not know: mul24.lo.u32'],
    ['another rounding', 'add.rz.f32 %r1, %r0, %r0;', 'does not know'],
    ['a scope that is narrower than the system', 'ld.acquire.gpu.global.b32 %r1, [%d1];', 'does not know'],
    ['a register of another width', 'add.u32 %d1, %r0, %r0;', '%d1 is no register of 32 bits'],
    ['an unknown label', 'bra NOWHERE;', 'does not know'],
    ['an unknown declaration', '.local .b8 x[4];', 'not understood'],
  ])('for %s', (_, body, message) => {
    expect(() => runBodies([`  ${body}`])).toThrow(message);
  });
});

test('a barrier that a thread does not reach is an error', () => {
  const body = '  setp.eq.u32 %p0, %r0, 0;\n  @%p0 bra END;\n  bar.sync 0;\nEND:\n  mov.b32 %r1, 0;';
  expect(() => runBodies([body], { threads: 3 })).toThrow('diverge');
});

test('a record holds 64 arrays and eight flags of each kind, and no more', () => {
  const view = new DataView(new ArrayBuffer(RECORD_BYTES));
  const many = (n: number): bigint[] => Array.from({ length: n }, (_, i) => BigInt(i));
  const flags = (n: number): Flag[] => many(n).map((address) => ({ address, value: 2n }));
  const step = { bytes: 4, sources: many(64), destinations: many(64), scalars: many(64), waits: flags(8), posts: flags(8) };
  writeStep(view, 0, step);
  // No table is over another one.
  expect(new BigUint64Array(view.buffer, fields.waits, 32)).toEqual(
    BigUint64Array.from([...flags(8), ...flags(8)].flatMap(({ address, value }) => [address, value])),
  );
  for (const table of ['sources', 'destinations', 'scalars'] as const)
    expect(new BigUint64Array(view.buffer, fields[table], 64)).toEqual(BigUint64Array.from(many(64)));
  expect(() => writeStep(view, 0, { ...step, sources: many(65) })).toThrow('at most 64 sources, not 65');
  expect(() => writeStep(view, 0, { ...step, posts: flags(9) })).toThrow('at most 8 posts, not 9');
});
