import { describe, expect, it } from 'vitest';
import { ResidualBandwidth, rounded } from '../../../../src/planner/graph/residual-bandwidth.js';
import { Routes } from '../../../../src/planner/graph/routes.js';
import { defaultRules } from '../../../../src/planner/versions/rules.js';
import { nodeName } from '../../../../src/planner/topology/system.js';
import { LinkType } from '../../../../src/planner/topology/types.js';
import { cpu, gpu, nic, onlyLocalSystem, parametersWith, pciSwitch, systemXml } from '../topology/machine.js';

/** A machine of two GPUs and a NIC, its residual bandwidth, and a function that reads it. */
function open(xml: ReturnType<typeof systemXml>) {
  const local = onlyLocalSystem(xml, parametersWith({}), 100);
  const routes = new Routes(local, defaultRules);
  const residual = new ResidualBandwidth(local, routes);
  const { links, nodes } = local.system;
  const left = (from: string, to: string, type: LinkType = LinkType.PCI) => {
    const link = links.to.findIndex(
      (end, index) => links.type[index] === type && nodeName(nodes[end]!) === to && nodeName(nodes[links.from[index]!]!) === from,
    );
    return Number(residual.left[link]!.toPrecision(6));
  };
  return { routes, residual, left, net: local.system.gpus.length };
}

const amd = 'arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="1"';
const twoBehindOneSwitch = systemXml(cpu(0, pciSwitch('01', gpu('02', 0) + gpu('03', 1) + nic('04', 0))));

describe('residual bandwidth', () => {
  it('takes bandwidth from all links of a path in one direction, and returns it', () => {
    const { routes, residual, left } = open(twoBehindOneSwitch);
    expect(residual.take(routes.between(0, 1), 10)).toBe(-1);
    expect([left('DEV/0-2000', 'PCI/0-1000'), left('PCI/0-1000', 'DEV/0-3000'), left('PCI/0-1000', 'DEV/0-2000')]).toEqual([
      14, 14, 24,
    ]);
    residual.release(routes.between(0, 1), 10);
    expect(left('DEV/0-2000', 'PCI/0-1000')).toBe(24);
  });

  it('takes nothing when one link has too little, and names the hop', () => {
    const { routes, residual, left, net } = open(twoBehindOneSwitch);
    residual.take(routes.between(net, 1), 20);
    const stuckAt = residual.take(routes.between(0, 1), 10);
    expect(routes.link[stuckAt]).toBeGreaterThanOrEqual(0);
    expect(left('DEV/0-2000', 'PCI/0-1000')).toBe(24);
    expect(left('PCI/0-1000', 'DEV/0-3000')).toBe(4);
  });

  it('leaves bandwidths rounded to a thousandth', () => {
    const nineLanes = pciSwitch('03', gpu('04', 1), 'class="0x060400" link_speed="2.5 GT/s PCIe" link_width="9"');
    const odd = systemXml(cpu(0, gpu('02', 0) + nineLanes, amd));
    const { routes, residual, left } = open(odd);
    expect(left('CPU/0-0', 'PCI/0-3000')).toBe(1.6875);
    residual.take(routes.between(0, 1), 1);
    residual.release(routes.between(0, 1), 1);
    expect(left('CPU/0-0', 'PCI/0-3000')).toBe(1.688);
  });

  it('rounds as C does, for all thousandths that a link can have', () => {
    let wrong = 0;
    for (let thousandths = 0; thousandths <= 6_000_000; thousandths++) {
      const gbps = Math.fround(thousandths / 1000);
      if (Math.fround(rounded(gbps)) !== gbps) wrong++;
    }
    expect(wrong).toBe(0);
    expect(Math.fround(rounded(Math.fround(0.0005)))).toBe(Math.fround(0.001));
  });

  it("charges 6/5 on PCI for data that a GPU sends through an Intel CPU, not for a NIC's, nor through AMD", () => {
    const across = (attributes?: string) => systemXml(cpu(0, gpu('02', 0) + gpu('03', 1) + nic('04', 0), attributes));
    const onIntel = open(across());
    onIntel.residual.take(onIntel.routes.between(0, 1), 10);
    expect([onIntel.left('DEV/0-2000', 'CPU/0-0'), onIntel.left('CPU/0-0', 'DEV/0-3000')]).toEqual([12, 12]);
    onIntel.residual.take(onIntel.routes.between(onIntel.net, 0), 10);
    expect(onIntel.left('CPU/0-0', 'DEV/0-2000')).toBe(14);

    const onAmd = open(across(amd));
    onAmd.residual.take(onAmd.routes.between(0, 1), 10);
    expect(onAmd.left('DEV/0-2000', 'CPU/0-0')).toBe(14);
  });

  it('charges an eighth in the reverse direction where a NIC writes to a GPU older than sm 80', () => {
    const old = systemXml(cpu(0, pciSwitch('01', gpu('02', 0, '', 'sm="70" gdr="1"') + nic('04', 0))));
    const { routes, residual, left, net } = open(old);
    residual.take(routes.between(net, 0), 8);
    expect([left('PCI/0-1000', 'DEV/0-2000'), left('DEV/0-2000', 'PCI/0-1000')]).toEqual([16, 23]);
    residual.release(routes.between(net, 0), 8);
    expect(left('DEV/0-2000', 'PCI/0-1000')).toBe(24);
  });

  it('names the link that lacks bandwidth: that of the hop, or the reverse one where that costs too', () => {
    const old = systemXml(
      cpu(0, pciSwitch('01', gpu('02', 0, '', 'sm="70" gdr="1"') + gpu('03', 1, '', 'sm="70" gdr="1"') + nic('04', 0))),
    );
    const { routes, residual, net } = open(old);
    expect(residual.take(routes.between(0, 1), 23)).toBe(-1);
    // 1 GB/s is left out of GPU 0; a write of the NIC to it would take an eighth of 12 there.
    const stuckAt = residual.take(routes.between(net, 0), 12);
    const { link, needed, left } = residual.shortage(stuckAt, 12);
    expect([needed, left]).toEqual([1.5, 1]);
    const forward = residual.take(routes.between(0, 1), 2);
    expect(residual.shortage(forward, 2)).toEqual({ link, needed: 2, left: 1 });
  });

  it('charges both directions of an NVLink into a POWER CPU', () => {
    const nvLinkToCpu = '<nvlink target="0000:00:00.0" count="2" tclass="0x068001"/>';
    const power = systemXml(cpu(0, gpu('02', 0, nvLinkToCpu, 'sm="70" gdr="1"') + nic('04', 0), 'arch="ppc64"'));
    const { routes, residual, left, net } = open(power);
    expect(left('DEV/0-2000', 'CPU/0-0', LinkType.NVL)).toBe(40);
    residual.take(routes.between(0, net), 10);
    expect([left('DEV/0-2000', 'CPU/0-0', LinkType.NVL), left('CPU/0-0', 'DEV/0-2000', LinkType.NVL)]).toEqual([30, 30]);
  });
});
