import { describe, expect, it } from 'vitest';
import { CrossNic, Pattern } from '../../../../src/planner/graph/graph.js';
import { Nics } from '../../../../src/planner/graph/nics.js';
import { Routes } from '../../../../src/planner/graph/routes.js';
import { defaultRules } from '../../../../src/planner/versions/rules.js';
import type { Parameters } from '../../../../src/planner/parameters.js';
import { PathType } from '../../../../src/planner/topology/types.js';
import type { XmlElement } from '../../../../src/planner/topology/xml/tree.js';
import { inputError } from '../topology/input-error.js';
import { cpu, gpu, nic, onlyLocalSystem, parametersWith, pciSwitch, systemXml } from '../topology/machine.js';

function nicsOf(root: XmlElement, changes: Partial<Parameters> = {}): Nics {
  const parameters = parametersWith(changes);
  const local = onlyLocalSystem(root, parameters, 100);
  return new Nics(local, new Routes(local, defaultRules), parameters);
}

/** Two switches with two GPUs and two NICs each: NETs 0 and 1 on the first, 2 and 3 on the second. */
function twoSwitches(attributes: readonly string[] = []): XmlElement {
  const net = (bus: string, dev: number) => nic(bus, dev, `speed="200000" port="1" gdr="1" ${attributes[dev] ?? ''}`);
  return systemXml(
    cpu(
      0,
      [
        pciSwitch('10', gpu('11', 0) + gpu('12', 1) + net('13', 0) + net('14', 1)),
        pciSwitch('20', gpu('21', 2) + gpu('22', 3) + net('23', 2) + net('24', 3)),
      ].join(''),
    ),
  );
}

describe('the order of NICs', () => {
  it('begins with the NIC that the GPU uses, then goes by distance', () => {
    const nics = nicsOf(twoSwitches());
    expect([...nics.orderFor(0, PathType.PIX)]).toEqual([0, 1]);
    expect([...nics.orderFor(1, PathType.PIX)]).toEqual([1, 0]);
    expect([...nics.orderFor(3, PathType.SYS)]).toEqual([3, 2, 0, 1]);
    expect([...nics.orderFor(3, -1)]).toEqual([3]);
  });

  it('for any GPU goes GPU by GPU', () => {
    expect([...nicsOf(twoSwitches()).orderFor(-1, PathType.PIX)]).toEqual([0, 1, 2, 3]);
  });

  it('obeys NCCL_NETDEVS_POLICY', () => {
    const all = nicsOf(twoSwitches(), { netDevicesPolicy: { kind: 'all' } });
    expect([...all.orderFor(1, -1)]).toEqual([1, 0]);
    const one = nicsOf(twoSwitches(), { netDevicesPolicy: { kind: 'max', count: 1 } });
    expect([...one.orderFor(1, PathType.SYS)]).toEqual([1]);
    expect([...one.orderFor(-1, PathType.SYS)]).toEqual([0, 1, 2, 3]);
  });

  it('is undefined without NICs', () => {
    expect(inputError(() => nicsOf(systemXml(cpu(0, gpu('01', 0)))).orderFor(0, PathType.SYS))).toMatchObject({
      code: 'NO_PATH',
      ncclResult: 3,
    });
  });
});

describe('the outgoing NIC of a channel', () => {
  const anyPattern = { entry: 0, pattern: Pattern.BALANCED_TREE, crossNic: CrossNic.NEVER as CrossNic, partner: -1, first: -1 };
  const refusal = (
    nics: Nics,
    exit: number,
    change: Partial<Omit<typeof anyPattern, 'pattern'>> & { pattern?: Pattern } = {},
  ) => {
    const { entry, pattern, crossNic, partner, first } = { ...anyPattern, ...change };
    return nics.refusesExit(exit, entry, pattern, crossNic, partner, first);
  };

  it('without crossing is the same port of the same card', () => {
    const nics = nicsOf(twoSwitches());
    expect([refusal(nics, 0), refusal(nics, 1)]).toEqual([undefined, 'rail']);
    expect(refusal(nics, 1, { crossNic: CrossNic.ALLOWED })).toBeUndefined();
  });

  it('or the same rail, if rails are given', () => {
    const nics = nicsOf(twoSwitches(['rail="0"', 'rail="1"', 'rail="0"', 'rail="1"']));
    expect([0, 1, 2, 3].map((exit) => refusal(nics, exit))).toEqual([undefined, 'rail', undefined, 'rail']);
  });

  it('is never in another plane', () => {
    const nics = nicsOf(twoSwitches(['plane="0"', 'plane="1"']));
    expect(refusal(nics, 1, { crossNic: CrossNic.ALLOWED })).toBe('plane');
    expect(refusal(nics, 2, { crossNic: CrossNic.ALLOWED })).toBeUndefined();
  });

  it('of a plain tree is its incoming NIC', () => {
    expect(refusal(nicsOf(twoSwitches()), 1, { pattern: Pattern.TREE, crossNic: CrossNic.ALLOWED })).toBe('other NIC');
  });

  it('of the second ring of a pair is the incoming NIC of the first, which may take any', () => {
    const nics = nicsOf(twoSwitches());
    const second = { pattern: Pattern.RING, crossNic: CrossNic.PAIRED, entry: 3, partner: 0 };
    expect([refusal(nics, 0, second), refusal(nics, 3, second)]).toEqual([undefined, 'pair']);
    expect(refusal(nics, 3, { ...second, entry: 0, partner: -1 })).toBeUndefined();
  });

  it('of the second GPU of a balanced tree is that of the first', () => {
    const nics = nicsOf(twoSwitches());
    expect([1, 2].map((exit) => refusal(nics, exit, { crossNic: CrossNic.ALLOWED, first: 1 }))).toEqual([undefined, 'other NIC']);
  });
});

describe('the bandwidth of ports', () => {
  it('is shared by NETs of one port of one card only', () => {
    const sameCard = systemXml(
      cpu(
        0,
        gpu('01', 0) +
          pciSwitch(
            '02',
            '<nic><net name="a" dev="0" guid="0x9" speed="200000" port="1" gdr="1"/><net name="b" dev="1" guid="0x9" speed="200000" port="1" gdr="1"/><net name="c" dev="2" guid="0x9" speed="200000" port="2" gdr="1"/></nic>',
            'class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16"',
          ),
      ),
    );
    const nics = nicsOf(sameCard);
    nics.borrow(0, 20);
    expect([...nics.left]).toEqual([5, 5, 25]);
    expect([nics.hasLeft(1, 6), nics.hasLeft(1, 5)]).toEqual([false, true]);
    nics.borrow(0, -20);
    expect([...nics.left]).toEqual([25, 25, 25]);
  });
});
