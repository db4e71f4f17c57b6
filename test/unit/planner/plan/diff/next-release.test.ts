import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parametersFromEnvironment } from '../../../../../src/planner/parameters.js';
import { prepareCluster } from '../../../../../src/planner/plan/cluster.js';
import { ruleEffects } from '../../../../../src/planner/plan/diff/attribute.js';
import { comparePlans } from '../../../../../src/planner/plan/diff/compare.js';
import { rulesBehind } from '../../../../../src/planner/plan/diff/effect-text.js';
import { sideOf } from '../../../../../src/planner/plan/diff/side.js';
import { usualSizes } from '../../../../../src/planner/plan/overview/forecast.js';
import { planPrepared } from '../../../../../src/planner/plan/plan.js';
import { machine, machines } from '../../../../../src/planner/topology/catalogue/machines.js';
import { rulesBetween } from '../../../../../src/planner/versions/describe.js';
import type { Windows } from '../../../../../src/planner/windows.js';
import { isThorough } from '../../../../runs.js';

/**
 * The upgrade from the newest compared release to the newest covered one, on each machine of the catalogue: it fails nowhere,
 * rules explain every difference, and the page lists rules and times.
 */
const [from, to] = ['2.30.7', '2.32.6'];

interface Tried {
  readonly name: string;
  readonly count: number;
  readonly environment?: Readonly<Record<string, string>>;
  readonly windows?: Windows;
}

/** Servers for cards, lists of algorithms, and calls on symmetric windows. */
const more: readonly Tried[] = [
  ...['pcie-8-l40s', 'pcie-4-t4', 'pcie-8-a30', 'pcie-2-rtx4090'].flatMap((name) => [1, 2].map((count) => ({ name, count }))),
  { name: 'dgx-h100', count: 2, environment: { NCCL_PROTO: '^LL' } },
  { name: 'dgx-h100', count: 2, environment: { NCCL_ALGO: '^Ring' } },
  { name: 'dgx-b200', count: 2, environment: { NCCL_ALGO: 'Ring' } },
  ...['dgx-h100', 'dgx-b200', 'gb200-tray'].map((name) => ({ name, count: 1, windows: 'both' as const })),
];

/** Those without racks, whose search takes seconds. */
const quick = ['dgx-h100', 'dgx-b200', 'gb200-tray', 'gb300-tray', 'ac922', 'azure-nc-a100-v4', 'dgx-spark'];

const tried: readonly Tried[] = [...machines.flatMap(({ name }) => [1, 2].map((count) => ({ name, count }))), ...more].filter(
  ({ name }) => isThorough || quick.includes(name) || name.startsWith('pcie-'),
);

const titleOf = ({ name, count, environment = {}, windows }: Tried) =>
  [
    `${name}${count === 1 ? '' : ` x ${count}`}`,
    ...Object.entries(environment).map(([key, value]) => `${key}=${value}`),
    ...(windows === undefined ? [] : ['--windows symmetric']),
  ].join(' ');

function upgrade({ name, count, environment = {}, windows = 'none' }: Tried) {
  const cluster = { hosts: [{ machine: machine(name), count, name }] };
  const { parameters } = parametersFromEnvironment(environment, { ncclVersion: from, windows });
  const side = (ncclVersion: string) => {
    const own = { ...parameters, ncclVersion };
    const prepared = prepareCluster(cluster, own);
    return sideOf(`NCCL ${ncclVersion}`, prepared, planPrepared(prepared, own));
  };
  const { differences, costs } = comparePlans(side(from), side(to), usualSizes);
  const effects = ruleEffects({ cluster, parameters, from, to, sizes: usualSizes });
  const ratios = costs.flatMap(({ ratio }) => (ratio === null ? [] : [ratio]));
  const range =
    ratios.length === 0 ? 'possible only then' : `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
  const times = costs.length === 0 ? 'none' : `${costs.length}: ${range}`;
  const rules = effects.flatMap((effect) => effect.rules.map((rule) => rule.name));
  const unexplained = [...differences, ...costs].filter((row) => rulesBehind(effects, row).length === 0);
  return { rules, times, unexplained, effects };
}

/** Rows of the table: rules and times by `machine x hosts`. */
function documented(): Map<string, { readonly rules: string; readonly times: string }> {
  const page = readFileSync(new URL('../../../../../docs/notes/upgrades.md', import.meta.url), 'utf8');
  const section = page.split('## On the machines of the catalogue')[1]?.split('\n## ')[0] ?? '';
  const rows = [...section.matchAll(/^\| (.+) \| (.+) \| (.+) \|$/gm)].slice(1);
  return new Map(
    rows.flatMap(([, machinesOf = '', rules = '', times = '']) =>
      machinesOf.split(', ').map((title) => [title.replaceAll('`', ''), { rules, times }] as const),
    ),
  );
}

describe(`the upgrade from ${from} to ${to}`, () => {
  const known = documented();
  const changed = new Set<string>(rulesBetween(from, to).map(({ name }) => name));

  it.each(tried.map((each) => [titleOf(each), each] as const))('on %s', (title, each) => {
    const { rules, times, unexplained, effects } = upgrade(each);
    expect(unexplained).toEqual([]);
    // One rule an effect: none hides behind another.
    expect(effects.map((effect) => effect.rules.length)).toEqual(effects.map(() => 1));
    expect(rules.filter((rule) => !changed.has(rule))).toEqual([]);
    const row = known.get(title) ?? { rules: 'nothing', times: 'none' };
    expect({ rules: rules.length === 0 ? 'nothing' : rules.map((rule) => `\`${rule}\``).join(', '), times }).toEqual(row);
  });

  it('lists no machine that there is not', () => {
    const all = new Set([...machines.flatMap(({ name }) => [name, `${name} x 2`]), ...more.map(titleOf)]);
    expect([...known.keys()].filter((title) => !all.has(title))).toEqual([]);
    expect(known.size).toBeGreaterThan(20);
  });
});
