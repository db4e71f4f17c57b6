import { describe, expect, it } from 'vitest';
import { parametersFromEnvironment } from '../../../../../src/planner/parameters.js';
import { prepareCluster } from '../../../../../src/planner/plan/cluster.js';
import { ruleEffects } from '../../../../../src/planner/plan/diff/attribute.js';
import { comparePlans, type Comparison } from '../../../../../src/planner/plan/diff/compare.js';
import { describeEffect, rulesBehind } from '../../../../../src/planner/plan/diff/effect-text.js';
import { comparisonHtml } from '../../../../../src/view/page/diff-page.js';
import type { PredictedCall } from '../../../../../src/planner/plan/diff/predicted-cost.js';
import { sideOf } from '../../../../../src/planner/plan/diff/side.js';
import { applyOverrides } from '../../../../../src/planner/plan/overrides.js';
import { planPrepared } from '../../../../../src/planner/plan/plan.js';
import { machine } from '../../../../../src/planner/topology/catalogue/machines.js';
import type { Windows } from '../../../../../src/planner/windows.js';
import { defaultRules, mixedVersion, rulesOf } from '../../../../../src/planner/versions/rules.js';

const sizes = [8, 2 ** 16, 2 ** 20, 2 ** 24, 2 ** 28, 2 ** 30];

interface UpgradeOptions {
  readonly environment?: Record<string, string>;
  readonly nicSpeedMbps?: number;
  readonly calls?: readonly PredictedCall[];
  readonly windows?: Windows;
}

function upgrade(
  name: string,
  count: number,
  from: string,
  to: string,
  { environment = {}, nicSpeedMbps, calls = [], windows = 'none' }: UpgradeOptions = {},
) {
  const root = applyOverrides(machine(name), nicSpeedMbps === undefined ? {} : { nicSpeedMbps });
  const cluster = { hosts: [{ machine: root, count, name }] };
  const { parameters } = parametersFromEnvironment(environment, { ncclVersion: from, windows });
  const side = (ncclVersion: string) => {
    const own = { ...parameters, ncclVersion };
    const prepared = prepareCluster(cluster, own);
    return sideOf(`NCCL ${ncclVersion}`, prepared, planPrepared(prepared, own));
  };
  const comparison: Comparison = comparePlans(side(from), side(to), sizes);
  return { comparison, effects: ruleEffects({ cluster, parameters, from, to, sizes, calls }) };
}

const names = ({ effects }: ReturnType<typeof upgrade>) => effects.flatMap(({ rules }) => rules.map(({ name }) => name));

describe('rules between one version and another', () => {
  it('are those of the newer one up to a place, then those of the older one', () => {
    const way = rulesOf({ ncclVersion: mixedVersion('2.26.2', '2.30.7', 1) });
    expect([way.hardwareNodes, way.pathsByType]).toEqual([true, false]);
    expect(rulesOf({ ncclVersion: mixedVersion('2.26.2', '2.30.7', 1000) })).toEqual(defaultRules);
  });
});

describe('the rules behind an upgrade', () => {
  it('of calls on symmetric windows are rules of windows', () => {
    const none = upgrade('dgx-b200', 1, '2.30.7', '2.31.2');
    const both = upgrade('dgx-b200', 1, '2.30.7', '2.31.2', { windows: 'both' });
    expect(names(none)).not.toContain('symmetricModel');
    expect(names(both)).toContain('symmetricModel');
    const scattered = both.comparison.costs.find(({ collective, bytes }) => collective === 'ReduceScatter' && bytes === 2 ** 16);
    expect([scattered?.a, scattered?.b]).toMatchObject([{ kernel: 'ReduceScatter_LDMC' }, { kernel: 'ReduceScatter_LL' }]);
    expect(scattered && rulesBehind(both.effects, scattered)).toEqual(['symmetricModel']);
  });

  it('of two H100 hosts from 2.21 to 2.27 are four, and each difference has one of them', () => {
    const made = upgrade('dgx-h100', 2, '2.21.5', '2.27.5');
    expect(names(made)).toEqual(['pairedPatterns', 'treeUs', 'ringNodeSteps', 'chunksOfWholeLines']);
    for (const row of [...made.comparison.differences, ...made.comparison.costs])
      expect(rulesBehind(made.effects, row)).not.toEqual([]);
    const broadcast = made.comparison.costs.find(({ collective, bytes }) => collective === 'Broadcast' && bytes === 2 ** 30);
    expect(broadcast && rulesBehind(made.effects, broadcast)).toEqual(['treeUs']);
  });

  it('are the same in reverse', () => {
    const back = upgrade('dgx-h100', 2, '2.27.5', '2.21.5');
    expect(new Set(names(back))).toEqual(new Set(['pairedPatterns', 'treeUs', 'ringNodeSteps', 'chunksOfWholeLines']));
  });

  it('explain all that differs on hosts of B200', () => {
    const { comparison, effects } = upgrade('dgx-b200', 2, '2.26.2', '2.30.7');
    expect(comparison.differences.length).toBeGreaterThan(10);
    for (const row of [...comparison.differences, ...comparison.costs]) expect(rulesBehind(effects, row)).not.toEqual([]);
  });

  // aws/aws-ofi-nccl sets NCCL_NVLSTREE_MAX_CHUNKSIZE for it: 64 KiB from four nodes on.
  it('show smaller chunks of NVLSTree, and the version since which a variable sets them', () => {
    const chunks = ({ comparison }: ReturnType<typeof upgrade>) =>
      comparison.differences.filter(({ section, what }) => section === 'chunks' && what === 'AllReduce NVLSTree Simple');
    const made = upgrade('dgx-h100', 4, '2.19.1', '2.19.3');
    const [row] = chunks(made);
    expect(row).toMatchObject({
      a: '32 KiB, 64 KiB from 16 MiB, 128 KiB from 256 MiB, 256 KiB from 1 GiB',
      b: '32 KiB, 64 KiB from 16 MiB',
    });
    expect(row && rulesBehind(made.effects, row)).toEqual(['nvlsTreeChunk']);
    expect(made.effects.map(describeEffect).flatMap(({ rules }) => rules.map(({ undo }) => undo))).toContain(
      'NCCL_NVLSTREE_MAX_CHUNKSIZE, but not in 2.19.3: NCCL_NVLSTREE_MAX_CHUNKSIZE is there since 2.20.3',
    );
    expect(chunks(upgrade('dgx-h100', 2, '2.19.1', '2.19.3'))).toEqual([]);
    // The variable keeps chunks as large as those of NVLS, which bound them since 2.21.
    const later = upgrade('dgx-h100', 4, '2.20.5', '2.21.5', { environment: { NCCL_NVLSTREE_MAX_CHUNKSIZE: '524288' } });
    expect(chunks(later)[0]?.b).toBe('32 KiB, 64 KiB from 16 MiB, 128 KiB from 256 MiB');
  });

  it('are found for messages between pairs by their simulated times', () => {
    const calls = [2 ** 12, 2 ** 22, 2 ** 29].map((bytes) => ({ collective: 'SendRecv', bytes }) as const);
    const made = upgrade('gh200-4', 8, '2.19.4', '2.20.5', { nicSpeedMbps: 200_000, calls });
    const deciding = made.effects.filter(({ predicted }) => predicted.length > 0);
    expect(deciding.map(({ rules }) => rules.map(({ name }) => name))).toEqual([['p2pNetChannels']]);
    expect(deciding[0]?.predicted.map(({ bytes, ratio }) => [bytes, ratio > 1.6])).toEqual([
      [2 ** 22, true],
      [2 ** 29, true],
    ]);
    expect(deciding.map(describeEffect)[0]?.changes.at(-1)).toMatch(
      /^SendRecv of 4 MiB to 512 MiB, 1\.\d\d to 1\.\d\d of the time by the simulation$/,
    );
    expect(rulesBehind(made.effects, { collective: 'SendRecv', bytes: 2 ** 22 })).toEqual(['p2pNetChannels']);
    expect(rulesBehind(made.effects, { collective: 'SendRecv', bytes: 2 ** 12 })).toEqual([]);
  });

  it('are found where the plans are the same but messages are divided otherwise', () => {
    const made = upgrade('dgx-a100', 2, '2.26.2', '2.30.7', { calls: [{ collective: 'AllToAll', bytes: 2 ** 19 }] });
    expect(made.comparison.differences).toEqual([]);
    expect(names(made)).toEqual(['p2pLl']);
  });

  it('are empty for equal plans', () => {
    expect(names(upgrade('dgx-a100', 2, '2.26.2', '2.30.7'))).toEqual([]);
  });

  it('are described in words, with the variable that sets them, and on a page', () => {
    const { comparison, effects } = upgrade('dgx-h100', 2, '2.21.5', '2.27.5', { environment: { NCCL_CROSS_NIC: '1' } });
    const texts = effects.map(describeEffect);
    const rings = texts.find(({ title }) => title === 'pairedPatterns');
    expect(rings?.rules[0]?.undo).toContain('NCCL_CROSS_NIC');
    const trees = texts.find(({ title }) => title === 'treeUs');
    expect(trees?.changes.join('\n')).toMatch(/Broadcast of \d+ [MG]iB( to \d+ [MG]iB)?, 0\.\d\d( to \d\.\d\d)? of the time/);
    const html = comparisonHtml(comparison, effects);
    expect(html).toContain('<h3>treeUs</h3>');
    expect(html).toContain('NCCL 2.27.5');
    expect(html).not.toContain('undefined');
  });
});
