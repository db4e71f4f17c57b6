import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { compileKernels, differencesOf, findClang } from '../../../../testing/ptx/compiled.js';
import { runs } from '../../../runs.js';

/** PTX that clang 19 made of testing/ptx/compiled.cl. */
const text = readFileSync(join(import.meta.dirname, 'compiled.ptx'), 'utf8');

describe('PTX of another compiler', () => {
  it('has the known results', () => {
    expect(differencesOf(text, runs(2, 20))).toEqual([]);
  });

  it.each([
    ['a barrier', /bar\.sync\s+0;/g, '', /race at .* of shared memory/],
    ['an atomic operation', 'atom.global.add.u32 \t%r10, [%rd7], 1;', 'ld.global.u32 %r10, [%rd7];', 'histogram, schedule 1'],
    ['a sign', 'shr.s64 \t%rd17', 'shr.u64 \t%rd17', 'mixed, schedule 1'],
    ['a factor', 'fma.rn.f32 \t%f4, %f1, %f2, %f3', 'mov.f32 \t%f4, %f3', 'saxpy, schedule 1'],
    ['an instruction that exists', 'cvt.rzi.s64.f64', 'cvt.rmi.s64.f64', 'does not know'],
  ])('without %s is noticed', (_, from, to, why) => {
    const changed = text.replace(from, to);
    expect(changed).not.toBe(text);
    let said: string;
    try {
      said = differencesOf(changed, 1).join('\n');
    } catch (error) {
      said = (error as Error).message;
    }
    expect(said).toMatch(why);
  });
});

const clang = findClang();

it.skipIf(clang === undefined)('clang compiles the kernels (needs: clang 15 or newer, TCCL_CLANG names it)', () => {
  const file = fileURLToPath(new URL('../../../../testing/ptx/compiled.cl', import.meta.url));
  if (clang !== undefined) expect(differencesOf(compileKernels(clang, file, '-O2'), 1)).toEqual([]);
});
