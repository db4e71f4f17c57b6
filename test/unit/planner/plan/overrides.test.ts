import { describe, expect, it } from 'vitest';
import { InputError } from '../../../../src/errors.js';
import { defaultParameters } from '../../../../src/planner/parameters.js';
import { applyOverrides, type Overrides } from '../../../../src/planner/plan/overrides.js';
import { buildSystem } from '../../../../src/planner/topology/build/build-system.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';

const systemWith = (name: string, overrides: Overrides) =>
  buildSystem(applyOverrides(machine(name), overrides), { parameters: defaultParameters });

describe('overrides', () => {
  it('remove GPUs and renumber ranks', () => {
    const { gpus, nets } = systemWith('dgx-h100', { gpus: [7, 2, 4] });
    expect(gpus.map(({ dev, rank }) => [dev, rank]).sort()).toEqual([
      [2, 0],
      [4, 1],
      [7, 2],
    ]);
    expect(nets).toHaveLength(8);
    expect(
      systemWith('dgx-h100', { gpus: 4 })
        .gpus.map(({ dev }) => dev)
        .sort(),
    ).toEqual([0, 1, 2, 3]);
  });

  it('remove NICs, and switches that become unused', () => {
    const whole = systemWith('pcie-8-l40s', {});
    const none = systemWith('pcie-8-l40s', { nics: 0 });
    expect(whole.nets.length).toBeGreaterThan(0);
    expect(none.nets).toHaveLength(0);
    expect(none.pcis.length).toBeLessThanOrEqual(whole.pcis.length);
    expect(systemWith('dgx-h100', { nics: ['mlx5_3', 'mlx5_5'] }).nets.map(({ dev }) => dev)).toEqual([3, 5]);
  });

  it('set the speed of NICs and whether they reduce', () => {
    const { nets } = systemWith('dgx-h100', { nicSpeedMbps: 200_000, sharp: true });
    expect(new Set(nets.map(({ bandwidthGBps, coll }) => `${bandwidthGBps} ${coll}`))).toEqual(new Set(['25 true']));
  });

  it.each([
    ['pcie-4-rtx4090', {}, true],
    ['pcie-4-rtx4090', { p2p: true }, false],
    ['pcie-4-l40s', {}, false],
    ['pcie-4-l40s', { p2p: false }, true],
  ])('say whether the driver refuses P2P: %s, %j', (name, overrides, refuses) => {
    for (const ncclVersion of ['2.19.3', defaultParameters.ncclVersion]) {
      const system = buildSystem(applyOverrides(machine(name), overrides), { parameters: { ...defaultParameters, ncclVersion } });
      expect(new Set(system.gpus.map(({ refusesPciP2p }) => refusesPciP2p))).toEqual(new Set([refuses]));
    }
  });

  it.each([
    [16, 16, 4],
    [2, 2, 1],
    [18, 18, 5],
    [71, 71, 18],
    [Array.from({ length: 16 }, (_, index) => 8 + index), 16, 4],
  ])('count GPUs of a rack from host to host: %j', (gpus, ranks, trays) => {
    const system = systemWith('gb300-nvl72', { gpus });
    expect(system.gpus.map(({ rank }) => rank).sort((a, b) => a - b)).toEqual(Array.from({ length: ranks }, (_, rank) => rank));
    expect(system.nets).toHaveLength(trays * 4);
    expect(new Set(system.gpus.map(({ systemId }) => systemId)).size).toBe(trays);
  });

  it('leave the given tree unchanged', () => {
    const root = machine('dgx-h100');
    applyOverrides(root, { gpus: 1, nics: 1, sharp: true });
    expect(buildSystem(root, { parameters: defaultParameters }).gpus).toHaveLength(8);
    expect(applyOverrides(root, {})).toBe(root);
  });

  it.each([
    [{ gpus: [9] }, /no GPU 9; the machine has 0, 1, /],
    [{ gpus: 9 }, /no 9 GPUs; the machine has 8/],
    [{ gpus: [] }, /no GPU is left/],
    [{ nics: ['mlx5_77'] }, /no NIC mlx5_77; did you mean mlx5_7\?/],
    [{ nics: 9 }, /no 9 NICs; the machine has 8/],
  ] satisfies [Overrides, RegExp][])('%j is refused', (overrides, message) => {
    expect(() => applyOverrides(machine('dgx-h100'), overrides)).toThrow(InputError);
    expect(() => applyOverrides(machine('dgx-h100'), overrides)).toThrow(message);
  });

  it('refuse a GPU beyond the last of a rack', () => {
    expect(() => applyOverrides(machine('gb200-nvl72'), { gpus: [72] })).toThrow('there is no GPU 72; the machine has 0 to 71');
  });
});
