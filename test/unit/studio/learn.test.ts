import { describe, expect, it } from 'vitest';
import { isSolution } from '../../../src/studio/exercise.js';
import { shownLearn } from '../../../src/studio/parts/learn.js';
import { planned } from '../../../src/studio/planned.js';
import { sourceOf } from '../../../src/studio/source.js';
import { stateOf, type StudioState } from '../../../src/studio/state.js';

function exercises(fragment: string) {
  const state = stateOf(fragment);
  const plan = (each: StudioState) => planned(sourceOf(each, undefined)!);
  return shownLearn({ made: plan(state), state, file: undefined, against: undefined, tables: [], width: undefined, plan })
    .exercises;
}

describe('exercises', () => {
  it('are five, with solutions of the planner', () => {
    const all = exercises('machine=dgx-h100&nodes=2');
    expect(all.map(({ solution }) => solution)).toMatchInlineSnapshot(`
      [
        "all",
        "Ring",
        "2 MiB",
        "NET",
        "14",
      ]
    `);
    for (const { solution, options } of all) expect(options ?? [solution]).toContain(solution);
  });

  it.each([
    'machine=dgx-1v&nodes=1',
    'machine=pcie-8-a6000&nodes=2',
    'machine=gb200-nvl72&nodes=1',
    'machine=hgx-a100-4&nodes=1',
  ])('of %s have their solution among the options', (fragment) => {
    for (const { solution, options, question } of exercises(fragment))
      expect(options ?? [solution], question).toContain(solution);
  });

  it('take numbers in any order', () => {
    expect(isSolution({ solution: '0 3 10' }, '10, 0 and 3')).toBe(true);
    expect(isSolution({ solution: '0 3 10' }, '0 3')).toBe(false);
    expect(isSolution({ solution: 'NVLS' }, 'nvls ')).toBe(true);
    expect(isSolution({ solution: 'none' }, '')).toBe(false);
  });
});
