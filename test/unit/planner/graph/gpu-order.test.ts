import { describe, expect, it } from 'vitest';
import { GpuOrder, ExitDistance } from '../../../../src/planner/graph/gpu-order.js';
import { Pattern } from '../../../../src/planner/graph/graph.js';
import { ResidualBandwidth } from '../../../../src/planner/graph/residual-bandwidth.js';
import { Routes } from '../../../../src/planner/graph/routes.js';
import { defaultRules } from '../../../../src/planner/versions/rules.js';
import type { XmlElement } from '../../../../src/planner/topology/xml/tree.js';
import {
  cpu,
  gpu,
  nic,
  nvLink,
  nvSwitchLink,
  onlyLocalSystem,
  parametersWith,
  pciSwitch,
  systemXml,
} from '../topology/machine.js';

function orderIn(root: XmlElement) {
  const local = onlyLocalSystem(root, parametersWith({}), 100);
  const routes = new Routes(local, defaultRules);
  const residual = new ResidualBandwidth(local, routes);
  const order = new GpuOrder(local, routes, residual, defaultRules);
  const after = (
    gpuIndex: number,
    exitDistance: ExitDistance,
    { visited = [], pattern = Pattern.RING, entry = 0 }: { visited?: readonly number[]; pattern?: Pattern; entry?: number } = {},
  ) => {
    const used = new Uint8Array(routes.gpuCount);
    for (const other of [gpuIndex, ...visited]) used[other] = 1;
    const result = new Int32Array(16);
    return [...result.subarray(0, order.write(gpuIndex, pattern, exitDistance, entry, used, 0, result, 0))];
  };
  return { after, residual, routes };
}

/** GPU 2 stands beside the NIC; three NVLinks join 0 to 3, two 0 to 1. */
const uneven = systemXml(
  cpu(
    0,
    [
      gpu('01', 0, nvLink('02', 2) + nvLink('04', 3)),
      gpu('02', 1, nvLink('01', 2)),
      pciSwitch('10', gpu('03', 2) + nic('05', 0)),
      gpu('04', 3, nvLink('01', 3)),
    ].join(''),
  ),
);

const withSwitches = systemXml(cpu(0, ['01', '02', '03', '04'].map((bus, rank) => gpu(bus, rank, nvSwitchLink(6))).join('')));

describe('the order of GPUs', () => {
  it('within the host: the best connected first, then by number from the current one', () => {
    expect(orderIn(uneven).after(0, ExitDistance.INSIDE)).toEqual([3, 1, 2]);
    expect(orderIn(uneven).after(2, ExitDistance.INSIDE)).toEqual([3, 0, 1]);
  });

  it('has no GPU twice', () => {
    expect(orderIn(uneven).after(0, ExitDistance.INSIDE, { visited: [3] })).toEqual([1, 2]);
  });

  it('towards the NIC: the GPU beside the NIC first', () => {
    expect(orderIn(uneven).after(0, ExitDistance.OUT_NEXT)[0]).toBe(2);
  });

  it('of GPUs equally near to the NIC, the one with most residual bandwidth on its PCI link first', () => {
    const alike = systemXml(cpu(0, ['01', '02', '03'].map((bus, rank) => gpu(bus, rank)).join('') + nic('05', 0)));
    const { after, residual, routes } = orderIn(alike);
    expect(after(0, ExitDistance.OUT_NEXT)).toEqual([1, 2]);
    residual.take(routes.between(1, 0), 10);
    expect(after(0, ExitDistance.OUT_NEXT)).toEqual([2, 1]);
  });

  it('is reversed when a later GPU reaches the NIC and all are alike', () => {
    const alike = systemXml(cpu(0, ['01', '02', '03', '04'].map((bus, rank) => gpu(bus, rank)).join('') + nic('05', 0)));
    expect(orderIn(alike).after(0, ExitDistance.OUT_LATER)).toEqual([3, 2, 1]);
    expect(orderIn(alike).after(0, ExitDistance.OUT_NEXT)).toEqual([1, 2, 3]);
  });

  it('has only neighbours with NVSwitches: rings try the previous one first, trees the next one', () => {
    const { after } = orderIn(withSwitches);
    expect(after(0, ExitDistance.INSIDE)).toEqual([3, 1]);
    expect(after(0, ExitDistance.INSIDE, { visited: [3] })).toEqual([1]);
    expect(after(0, ExitDistance.INSIDE, { pattern: Pattern.BALANCED_TREE })).toEqual([1, 3]);
    expect(after(0, ExitDistance.INSIDE, { pattern: Pattern.TREE })).toEqual([1]);
  });
});
