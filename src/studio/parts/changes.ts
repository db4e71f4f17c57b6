import { ruleEffects } from '../../planner/plan/diff/attribute.js';
import { comparePlans } from '../../planner/plan/diff/compare.js';
import { costCells, describeEffect } from '../../planner/plan/diff/effect-text.js';
import { sideOf } from '../../planner/plan/diff/side.js';
import { usualSizes } from '../../planner/plan/overview/forecast.js';
import { defaultVersion } from '../../planner/versions/version.js';
import { withDifferences } from '../../view/machine/highlight.js';
import type { Changes, ShownChanges } from '../messages.js';
import { type NamedText, refuseOtherCount } from '../source.js';
import { machinesIn, settingsOf, type StudioState, unset } from '../state.js';
import { beliefPicture } from './choice.js';
import { machinePictures } from './machine.js';
import type { PartInput } from './input.js';

const MOST_ROWS = 200;
/** Width of each of two pictures side by side, on every screen. */
const SIDE_WIDTH = 400;

/** Differences that the settings make, or from another machine. */
export function shownChanges(input: PartInput): ShownChanges {
  return { view: 'changes', changes: changesOf(input) };
}

/** Differences from the same cluster without version, variables and removed devices; undefined where nothing is set. */
function changesOf({ made, state, file, against, plan, width = SIDE_WIDTH }: PartInput): Changes | undefined {
  const { nccl } = state;
  const set = settingsOf(state);
  if (set.length === 0 && state.against === '') return undefined;
  const other = state.against === '' ? undefined : otherState({ ...state, ...unset }, state.against, against);
  const plain = other === undefined ? plan({ ...state, ...unset }, file) : plan(other, against);
  if (plain === undefined) return undefined;
  if (other !== undefined) refuseOtherCount(state.against, plain.source.ownCount, machinesIn(state.against).count ?? 1);
  const from = other === undefined ? 'as it is' : plain.source.title;
  const to = [...(other === undefined ? [] : [made.source.title]), ...set].join(', ');
  const { differences, costs } = comparePlans(
    sideOf(from, plain.prepared, plain.plan),
    sideOf(to, made.prepared, made.plan),
    usualSizes,
  );
  const onlyVersion = nccl !== undefined && set.length === 1 && other === undefined && differences.length + costs.length > 0;
  const effects = onlyVersion
    ? ruleEffects({
        cluster: plain.source.cluster,
        parameters: plain.source.parameters,
        from: defaultVersion,
        to: nccl,
        sizes: usualSizes,
        options: plain.source.given,
      })
    : [];
  return {
    from: `${from} (NCCL ${defaultVersion})`,
    to,
    rules: effects.map(describeEffect).flatMap(({ rules, changes }) => {
      const lines = rules.map(({ about, before, after, source }) => `${about} Before: ${before}. After: ${after}. (${source})`);
      return [{ name: rules.map(({ name }) => name).join(' + '), lines: [...lines, ...changes] }];
    }),
    calls: costs.slice(0, MOST_ROWS).map(costCells),
    isMarked: other === undefined,
    pictures: [
      ...pairs(machinePictures(plain, width), machinePictures(made, width)).map(([a, b]) =>
        other === undefined ? ([withDifferences(a, b), withDifferences(b, a)] as const) : ([a, b] as const),
      ),
      [beliefPicture(plain.tuning, width), beliefPicture(made.tuning, width)],
    ],
    decisions: differences.slice(0, MOST_ROWS).map(({ section, what, a, b }) => [section, what, a, b]),
  };
}

/** The state of the machine that is compared with. */
function otherState(plain: StudioState, against: string, file: NamedText | undefined): StudioState {
  const { name, count = plain.nodes } = machinesIn(against);
  return {
    ...plain,
    nodes: count,
    channel: undefined,
    ...(file === undefined ? { machine: name, file: undefined } : { file: file.name }),
    fileSet: [],
    hardware: '',
  };
}

/** Elements of the same place in both lists. */
function pairs<Each>(a: readonly Each[], b: readonly Each[]): (readonly [Each, Each])[] {
  return a.flatMap((each, index) => {
    const other = b[index];
    return other === undefined ? [] : [[each, other] as const];
  });
}
