import { describe, expect, it } from 'vitest';
import { defaultParameters } from '../../../../src/planner/parameters.js';
import { type DeviceEditName, withDeviceEdits } from '../../../../src/planner/plan/device-edits.js';
import { plan } from '../../../../src/planner/plan/plan.js';
import { buildSystem } from '../../../../src/planner/topology/build/build-system.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import { writeXml } from '../../../../src/planner/topology/xml/write.js';

function edited(name: string, ...edits: readonly (readonly [DeviceEditName, string])[]) {
  return withDeviceEdits(
    machine(name),
    edits.map(([what, device]) => ({ what, device })),
  );
}

const systemOf = (root: ReturnType<typeof machine>) => buildSystem(root, { parameters: defaultParameters });

const widthOf = (root: ReturnType<typeof machine>, busId: string) =>
  new RegExp(`<pci busid="${busId}"[^>]* link_width="(\\d+)"`).exec(writeXml(root))?.[1];

describe('changes of a device', () => {
  it('remove the NVLinks between two GPUs alone, and halve the lanes of a switch', () => {
    const count = (root: ReturnType<typeof machine>) => writeXml(root).split('<nvlink').length;
    expect(count(edited('dgx-1v', ['no-nvlinks', 'gpu0+gpu3']))).toBe(count(machine('dgx-1v')) - 2);
    expect(count(edited('dgx-1v', ['half-nvlinks', 'gpu0+gpu3']))).toBe(count(machine('dgx-1v')));
    expect(() => edited('dgx-1v', ['no-nvlinks', 'gpu0+gpu7'])).toThrow('no NVLink joins them');
    expect(widthOf(edited('dgx-1v', ['half-lanes', '0000:05:00.0']), '0000:05:00.0')).toBe('8');
  });

  it('add an NVLink between two GPUs, or one to those that join them', () => {
    const links = (root: ReturnType<typeof machine>) => systemOf(root).links.bandwidthGBps.reduce((sum, gbps) => sum + gbps, 0);
    const count = (root: ReturnType<typeof machine>) => writeXml(root).split('<nvlink').length;
    const more = edited('dgx-1v', ['add-nvlink', 'gpu0+gpu7']);
    expect(count(more)).toBe(count(machine('dgx-1v')) + 2);
    const wider = edited('dgx-1v', ['add-nvlink', 'gpu0+gpu3']);
    expect(count(wider)).toBe(count(machine('dgx-1v')));
    expect(links(wider)).toBeGreaterThan(links(machine('dgx-1v')));
    expect(links(wider)).toBe(links(more));
    expect(() => edited('dgx-1v', ['add-nvlink', 'gpu0'])).toThrow('it joins two GPUs');
    expect(() => edited('dgx-1v', ['add-nvlink', 'gpu0+mlx5_0'])).toThrow('it joins two GPUs');
  });

  it('leave the machine as it was, and halve a speed twice', () => {
    const original = machine('dgx-h100');
    const before = writeXml(original);
    const edit = { what: 'half-speed', device: 'mlx5_1' } as const;
    const speeds = systemOf(withDeviceEdits(original, [edit, edit])).nets.map(({ bandwidthGBps }) => bandwidthGBps);
    expect(speeds).toEqual([50, 12.5, 50, 50, 50, 50, 50, 50]);
    expect(writeXml(original)).toBe(before);
  });

  it.each([
    ['half-lanes', 'mlx5_1'],
    ['half-lanes', 'gpu3'],
    ['half-nvlinks', 'gpu3'],
    ['no-nvlinks', 'gpu3'],
  ] as const)('%s of %s slow the rings down', (what, device) => {
    const speed = (root: ReturnType<typeof machine>) => {
      const { graphs } = plan({ hosts: [{ machine: root, count: 2 }] });
      return graphs.ring.nChannels * graphs.ring.bwInter;
    };
    expect(speed(edited('dgx-h100', [what, device]))).toBeLessThan(speed(machine('dgx-h100')));
  });

  it('of NVLinks between GPUs change both sides', () => {
    const text = writeXml(edited('dgx-1v', ['no-nvlinks', 'gpu0']));
    const before = writeXml(machine('dgx-1v'));
    const count = (xml: string) => xml.match(/<nvlink/g)?.length ?? 0;
    expect(count(before) - count(text)).toBe(8);
  });

  it('add a card that can be planned and changed itself', () => {
    const root = edited('dgx-h100', ['another', 'mlx5_1'], ['half-speed', 'added_8'], ['another', 'gpu3']);
    const { gpus, nets } = systemOf(root);
    expect([gpus.length, nets.length, nets.find(({ dev }) => dev === 8)?.bandwidthGBps]).toEqual([9, 9, 25]);
    expect(plan({ hosts: [{ machine: root, count: 2 }] }).nodes.nRanks).toBe(18);
  });

  it.each([
    ['half-speed', 'mlx5_99', /the machine has no device mlx5_99/],
    ['half-speed', 'gpu3', /half the speed of gpu3: only a network device with a speed has one/],
    ['half-nvlinks', 'mlx5_1', /half the NVLinks of mlx5_1: it has no NVLinks/],
  ] as const)('%s of %s says what is wrong', (what, device, message) => {
    expect(() => edited('dgx-h100', [what, device])).toThrow(message);
  });
});
