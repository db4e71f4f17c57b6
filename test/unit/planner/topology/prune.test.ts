import { describe, expect, it } from 'vitest';
import { buildSystem } from '../../../../src/planner/topology/build/build-system.js';
import { withoutEmptyBranches } from '../../../../src/planner/topology/combine/prune.js';
import { nodeName } from '../../../../src/planner/topology/system.js';
import { parametersWith } from './machine.js';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';

const bridge = (busId: string, inside: string) =>
  `<pci busid="0000:${busId}:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">${inside}</pci>`;
const file = `<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">
    ${bridge(
      '10',
      `<pci busid="0000:11:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="80" rank="0" gdr="1"/></pci>
      <pci busid="0000:12:00.0" class="0x010802" link_speed="16.0 GT/s PCIe" link_width="4"/>`,
    )}
    ${bridge('20', bridge('21', ''))}
  </cpu>
  <cpu numaid="1" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49"/>
  <cpu numaid="2" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">
    <nic><net name="mlx5_0" dev="0" speed="100000" port="1" guid="0x1" maxconn="1024" gdr="1"/></nic>
  </cpu>
</system>`;

describe('a file with unused parts', () => {
  it('loses drives, empty bridges and NUMA nodes without devices', () => {
    const { root } = parseXml(file);
    const names = (element: typeof root) => buildSystem(element, { parameters: parametersWith({}) }).nodes.map(nodeName);
    expect(names(root)).toContain('CPU/0-1');
    expect(names(withoutEmptyBranches(root))).toEqual([
      'GPU/0-11000',
      'PCI/0-10000',
      'CPU/0-0',
      'CPU/0-2',
      'NIC/0-0',
      'NET/0-0',
      'DEV/0-11000',
    ]);
    expect(names(root)).toContain('PCI/0-21000');
  });

  it('without a GPU in use is unchanged', () => {
    const { root } = parseXml(file.replace(' rank="0"', ''));
    expect(withoutEmptyBranches(root)).toBe(root);
  });
});
