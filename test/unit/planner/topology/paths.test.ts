import { describe, expect, it } from 'vitest';
import { InputError } from '../../../../src/errors.js';
import { defaultParameters } from '../../../../src/planner/parameters.js';
import { buildSystem } from '../../../../src/planner/topology/build/build-system.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import { localSystems } from '../../../../src/planner/topology/local-systems.js';
import { computePaths } from '../../../../src/planner/topology/paths/compute-paths.js';
import { Locality } from '../../../../src/planner/topology/paths/locality.js';
import { Reach } from '../../../../src/planner/topology/paths/reach.js';
import { PathType } from '../../../../src/planner/topology/types.js';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';
import { writeXml } from '../../../../src/planner/topology/xml/write.js';
import {
  build,
  cpu,
  gpu,
  nic,
  nvLink,
  nvSwitchLink,
  onlyLocalSystem,
  parametersWith,
  pathOf,
  pciSwitch,
  systemXml,
} from './machine.js';

const amd = 'arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49"';
const grace = 'arch="arm64"';
const c2c = '<c2c bw="43125" count="8"/>';

describe('path types', () => {
  it('within a switch, between switches, through a CPU and across CPUs', () => {
    const local = onlyLocalSystem(
      systemXml(
        cpu(0, pciSwitch('01', pciSwitch('02', gpu('03', 0) + gpu('04', 1)) + pciSwitch('05', gpu('06', 2))) + gpu('07', 3)),
        cpu(1, gpu('08', 4)),
      ),
      parametersWith({ p2pLevel: PathType.SYS }),
    );
    expect(pathOf(local, 'GPU/0-3000', 'GPU/0-3000')).toBe('LOC 5000');
    expect(pathOf(local, 'GPU/0-3000', 'GPU/0-4000')).toBe('PIX 24 DEV/0-3000 PCI/0-2000 DEV/0-4000 GPU/0-4000');
    expect(pathOf(local, 'GPU/0-3000', 'GPU/0-6000')).toBe(
      'PXB 24 DEV/0-3000 PCI/0-2000 PCI/0-1000 PCI/0-5000 DEV/0-6000 GPU/0-6000',
    );
    expect(pathOf(local, 'GPU/0-3000', 'GPU/0-7000')).toBe(
      'PHB 24 DEV/0-3000 PCI/0-2000 PCI/0-1000 CPU/0-0 DEV/0-7000 GPU/0-7000',
    );
    expect(pathOf(local, 'GPU/0-3000', 'GPU/0-8000')).toBe(
      'SYS 10 DEV/0-3000 PCI/0-2000 PCI/0-1000 CPU/0-0 CPU/0-1 DEV/0-8000 GPU/0-8000',
    );
  });

  it('over NVLink and NVSwitch', () => {
    const local = onlyLocalSystem(
      systemXml(cpu(0, gpu('01', 0, nvSwitchLink(12))), cpu(1, gpu('02', 1, nvSwitchLink(12)) + gpu('03', 2))),
    );
    expect(pathOf(local, 'GPU/0-1000', 'GPU/0-2000')).toBe('NVL 240 DEV/0-1000 NVS/0-0 DEV/0-2000 GPU/0-2000');
  });

  it('through one GPU over NVLink, never through two', () => {
    const chain = systemXml(
      cpu(
        0,
        [
          gpu('01', 0, nvLink('02', 2), 'sm="70" gdr="1"'),
          gpu('02', 1, nvLink('01', 2) + nvLink('03', 1), 'sm="70" gdr="1"'),
          gpu('03', 2, nvLink('02', 1) + nvLink('04', 2), 'sm="70" gdr="1"'),
          gpu('04', 3, nvLink('03', 2), 'sm="70" gdr="1"'),
        ].join(''),
      ),
    );
    const local = onlyLocalSystem(chain);
    expect(pathOf(local, 'GPU/0-1000', 'GPU/0-3000')).toBe('NVB 20 DEV/0-1000 DEV/0-2000 DEV/0-3000 GPU/0-3000');
    expect(pathOf(local, 'GPU/0-1000', 'GPU/0-4000')).toMatch(/^PHB /);
    expect(pathOf(onlyLocalSystem(chain, parametersWith({ nvbDisable: 1 })), 'GPU/0-1000', 'GPU/0-3000')).toMatch(/^PHB /);
  });

  it('prefer the better type, then bandwidth, then fewer hops', () => {
    const slow = nvLink('02', 1);
    const local = onlyLocalSystem(
      systemXml(
        cpu(0, pciSwitch('09', gpu('01', 0, slow, 'sm="60" gdr="1"') + gpu('02', 1, nvLink('01', 1), 'sm="60" gdr="1"'))),
      ),
    );
    expect(pathOf(local, 'GPU/0-1000', 'GPU/0-2000')).toBe('NVL 18 DEV/0-1000 DEV/0-2000 GPU/0-2000');
  });

  it('fail if a node has no reverse link, naming both nodes', () => {
    const root = systemXml(cpu(0, gpu('01', 0, nvLink('02', 1)) + gpu('02', 1)));
    const system = build(root);
    expect(() => computePaths(system, parametersWith({}))).toThrow(
      /DEV\/0-1000 has a link to DEV\/0-2000, but there is none back/,
    );
  });

  it('across PCI switches joined by a pcilink both ways are of type PXB', () => {
    const local = onlyLocalSystem(
      systemXml(
        cpu(0, pciSwitch('01', `${gpu('02', 0)}<pcilink target="0000:03:00.0"/>`)),
        cpu(1, pciSwitch('03', `${gpu('04', 1)}<pcilink target="0000:01:00.0"/>`)),
      ),
    );
    expect(pathOf(local, 'GPU/0-2000', 'GPU/0-4000')).toBe('PXB 24 DEV/0-2000 PCI/0-1000 PCI/0-3000 DEV/0-4000 GPU/0-4000');
  });
});

describe('peer-to-peer', () => {
  const acrossSwitches = systemXml(cpu(0, pciSwitch('01', pciSwitch('02', gpu('03', 0)) + pciSwitch('04', gpu('05', 1)))));

  it('goes through the CPU of the receiver where the level forbids the direct path', () => {
    expect(pathOf(onlyLocalSystem(acrossSwitches), 'GPU/0-3000', 'GPU/0-5000')).toMatch(/^PXB /);
    expect(pathOf(onlyLocalSystem(acrossSwitches, parametersWith({ p2pLevel: PathType.PIX })), 'GPU/0-3000', 'GPU/0-5000')).toBe(
      'PHB 24 DEV/0-3000 PCI/0-2000 PCI/0-1000 CPU/0-0 PCI/0-1000 PCI/0-4000 DEV/0-5000 GPU/0-5000',
    );
    expect(
      pathOf(
        onlyLocalSystem(acrossSwitches, parametersWith({ p2pDisable: 1, p2pLevel: PathType.SYS })),
        'GPU/0-3000',
        'GPU/0-5000',
      ),
    ).toMatch(/^PHB /);
  });

  it('reaches across the CPU on AMD with at most two GPUs', () => {
    const two = [gpu('01', 0), gpu('02', 1)];
    const mayCopy = (root: ReturnType<typeof systemXml>) => {
      const system = build(root);
      return new Reach(system, computePaths(system, parametersWith({})), parametersWith({})).isPeer(0, 1);
    };
    expect(mayCopy(systemXml(cpu(0, two.join(''), amd)))).toBe(true);
    expect(mayCopy(systemXml(cpu(0, two.join(''))))).toBe(false);
    expect(mayCopy(systemXml(cpu(0, `${two.join('')}${gpu('03', 2)}`, amd)))).toBe(false);
  });

  const nvLinked = systemXml(cpu(0, gpu('01', 0, nvLink('02', 4)) + gpu('02', 1, nvLink('01', 4))));
  const refused = { refusesP2p: () => true };

  it('that the driver refuses over NVLink is an error, unless a variable ignores it', () => {
    const system = build(nvLinked);
    expect(() => computePaths(system, parametersWith({}), refused)).toThrow(InputError);
    const diverted = computePaths(system, parametersWith({ ignoreDisabledP2p: 1 }), refused);
    expect(pathOf({ system, paths: diverted }, 'GPU/0-1000', 'GPU/0-2000')).toMatch(/^PHB /);
    const unasked = computePaths(system, parametersWith({ ignoreDisabledP2p: 2 }), refused);
    expect(pathOf({ system, paths: unasked }, 'GPU/0-1000', 'GPU/0-2000')).toMatch(/^NVL /);
  });

  it('that the driver refuses over PCI goes through the CPU, without a note', () => {
    const system = build(acrossSwitches);
    expect(pathOf({ system, paths: computePaths(system, parametersWith({}), refused) }, 'GPU/0-3000', 'GPU/0-5000')).toMatch(
      /^PHB /,
    );
  });

  it.each([
    ['0x2684', true],
    ['0x2b85', true],
    ['0x2204', true],
    ['0x26b9', false],
    ['0x1b06', false],
  ])('of a card with device %s goes through the CPU: %s', (device, isRefused) => {
    const text = writeXml(machine('pcie-8-rtx4090')).replaceAll('0x2684', device);
    for (const ncclVersion of [defaultParameters.ncclVersion, '2.19.3']) {
      const parameters = { ...defaultParameters, ncclVersion };
      const system = buildSystem(parseXml(text).root, { parameters });
      expect(new Reach(system, computePaths(system, parameters), parameters).connectsByP2p(0, 1)).toBe(!isRefused);
    }
  });

  it('of GeForce cards over a bridge of NVLink is allowed', () => {
    const text = writeXml(machine('pcie-4-a6000')).replaceAll('0x2230', '0x2204');
    const system = buildSystem(parseXml(text).root, { parameters: defaultParameters });
    const reach = new Reach(system, computePaths(system, defaultParameters), defaultParameters);
    expect([reach.connectsByP2p(0, 1), reach.connectsByP2p(0, 2)]).toEqual([true, false]);
  });

  it('through a GPU that no rank uses is an error with a remedy', () => {
    const triangle = systemXml(
      cpu(0, gpu('01', 0, nvLink('02', 1)) + gpu('02', 1, nvLink('01', 1) + nvLink('03', 1)) + gpu('03', 2, nvLink('02', 1))),
    );
    const system = build(triangle);
    const paths = computePaths(system, parametersWith({}));
    const missing = { ...system, gpus: system.gpus.map((node) => (node.rank === 1 ? { ...node, dev: 9 } : node)) };
    expect(() => new Reach(missing, paths, parametersWith({})).relay(0, 2)).toThrow(
      /by way of DEV\/0-2000, which no rank uses; set NCCL_NVB_DISABLE=1/,
    );
  });
});

describe('ranks that reach each other by neither peer-to-peer nor shared memory', () => {
  it('have a system each, without the GPUs of the others', () => {
    const root = systemXml(cpu(0, gpu('01', 0) + gpu('02', 1) + nic('03', 0)));
    const locals = localSystems(build(root), parametersWith({ shmDisable: 1 }), 2);
    expect(locals.map(({ ranks, inter }) => ({ ranks, inter }))).toEqual([
      { ranks: [0], inter: true },
      { ranks: [1], inter: true },
    ]);
    expect(locals[1]?.system.gpus.map(({ rank, index, vertex }) => [rank, index, vertex])).toEqual([[1, 0, 0]]);
    expect(locals[1]?.system.hardware).toHaveLength(2);
    expect(locals[1]?.ranks).toEqual([1]);
    expect(localSystems(build(root), parametersWith({}), 2)).toHaveLength(1);
  });

  it('include ranks for which the network is faster than the path between them', () => {
    const side = (bus: number, rank: number) =>
      pciSwitch(`0${bus}`, gpu(`0${bus + 1}`, rank) + nic(`0${bus + 2}`, rank, 'speed="200000" gdr="1"'));
    const root = systemXml(cpu(0, side(1, 0)), cpu(1, side(4, 1)));
    expect(localSystems(build(root), parametersWith({}), 2)).toHaveLength(2);
    expect(localSystems(build(root), parametersWith({ netDisableIntra: 1 }), 2)).toHaveLength(1);
  });
});

describe('paths to the network', () => {
  const rails = systemXml(
    cpu(
      0,
      pciSwitch('01', gpu('02', 0, nvSwitchLink(18), 'sm="90" gdr="1"') + nic('03', 0)) +
        pciSwitch('04', gpu('05', 1, nvSwitchLink(18), 'sm="90" gdr="1"') + nic('06', 1)),
    ),
  );

  it('go through the GPU next to the NIC for sending, and not for receiving', () => {
    const local = onlyLocalSystem(rails);
    expect(pathOf(local, 'GPU/0-2000', 'NET/0-0')).toBe('PIX 24 DEV/0-2000 PCI/0-1000 NIC/0-3000 NET/0-0');
    expect(pathOf(local, 'GPU/0-2000', 'NET/0-1')).toBe(
      'PXN 24 DEV/0-2000 NVS/0-0 DEV/0-5000 GPU/0-5000 DEV/0-5000 PCI/0-4000 NIC/0-6000 NET/0-1',
    );
    expect(pathOf(local, 'NET/0-1', 'GPU/0-2000')).toMatch(/^PHB /);
    expect(pathOf(onlyLocalSystem(rails, parametersWith({ pxnDisable: 1 })), 'GPU/0-2000', 'NET/0-1')).toMatch(/^PHB /);
    expect([...local.gpuOfNet]).toEqual([0, 1]);
  });

  it('go through the CPU where the NIC may not touch the memory of the GPU', () => {
    const expected = 'PHB 24 DEV/0-2000 PCI/0-1000 CPU/0-0 PCI/0-1000 NIC/0-3000 NET/0-0';
    expect(pathOf(onlyLocalSystem(rails, parametersWith({ netGdrLevel: PathType.LOC })), 'GPU/0-2000', 'NET/0-0')).toBe(expected);
    const without = systemXml(cpu(0, pciSwitch('01', gpu('02', 0) + nic('03', 0, 'speed="200000" gdr="0"'))));
    expect(pathOf(onlyLocalSystem(without), 'GPU/0-2000', 'NET/0-0')).toBe(expected);
  });

  it('before Ampere carry reads only if NVLink carries the other traffic', () => {
    const old = (below: string) =>
      systemXml(
        cpu(
          0,
          pciSwitch('01', gpu('02', 0, below.replace('X', '05'), 'sm="70" gdr="1"') + nic('03', 0)) +
            pciSwitch('04', gpu('05', 1, below.replace('X', '02'), 'sm="70" gdr="1"')),
        ),
      );
    const nvLinked = old('<nvlink target="0000:X:00.0" count="2" tclass="0x030200"/>');
    expect(pathOf(onlyLocalSystem(nvLinked), 'GPU/0-5000', 'NET/0-0')).toMatch(/^PXN /);
    expect(pathOf(onlyLocalSystem(nvLinked, parametersWith({ netGdrRead: 0 })), 'GPU/0-5000', 'NET/0-0')).toMatch(/^PHB /);
  });

  it('over C2C and a CPU are P2C for the nearest NIC', () => {
    const root = systemXml(
      cpu(0, gpu('01', 0, c2c, 'sm="90" gdr="1"') + nic('02', 0), grace),
      cpu(1, gpu('03', 1, c2c, 'sm="90" gdr="1"') + nic('04', 1), grace),
    );
    const local = onlyLocalSystem(root, parametersWith({ netDisableIntra: 1 }), 4);
    expect(pathOf(local, 'GPU/0-1000', 'NET/0-0')).toBe('P2C 24 DEV/0-1000 CPU/0-0 NIC/0-2000 NET/0-0');
    expect(pathOf(local, 'NET/0-0', 'GPU/0-1000')).toBe('P2C 24 NIC/0-2000 CPU/0-0 DEV/0-1000 GPU/0-1000');
    expect(pathOf(local, 'GPU/0-1000', 'CPU/0-0')).toBe('C2C 345 DEV/0-1000 CPU/0-0');
  });

  it('do not exist for an unconnected NIC', () => {
    const local = onlyLocalSystem(systemXml(cpu(0, gpu('01', 0))));
    expect(local.paths.knows(0, 5)).toBe(false);
  });
});

describe('the NIC of a GPU', () => {
  const machine = (gpus: number, nics: number) =>
    systemXml(
      cpu(
        0,
        pciSwitch(
          '01',
          Array.from({ length: gpus }, (_, rank) => gpu((0x10 + rank).toString(16), rank)).join('') +
            Array.from({ length: nics }, (_, dev) => nic((0x20 + dev).toString(16), dev)).join(''),
        ),
      ),
    );

  /** Per GPU the NET of channels 0 to 3. */
  const choices = (gpus: number, nics: number, changes = {}) => {
    const system = build(machine(gpus, nics));
    const parameters = parametersWith(changes);
    const locality = new Locality(system, computePaths(system, parameters), parameters);
    return Array.from({ length: gpus }, (_, index) => [0, 1, 2, 3].map((channel) => locality.netOfGpu(index, channel)));
  };

  it('alternates between two by the number of the GPU', () => {
    expect(choices(2, 2)).toEqual([
      [0, 0, 0, 0],
      [1, 1, 1, 1],
    ]);
  });

  it('mirrors bits so that neighbours use distant ones', () => {
    expect(choices(4, 4).map(([net]) => net)).toEqual([0, 2, 1, 3]);
  });

  it('alternates where a GPU has several', () => {
    expect(choices(1, 2)).toEqual([[0, 1, 0, 1]]);
    expect(choices(2, 2, { netDevicesPolicy: { kind: 'all' } })).toEqual([
      [0, 1, 0, 1],
      [1, 0, 1, 0],
    ]);
    expect(choices(1, 4, { netDevicesPolicy: { kind: 'max', count: 3 } })).toEqual([[0, 1, 2, 0]]);
  });

  it('is an error that names a GPU without one', () => {
    const system = build(systemXml(cpu(0, gpu('01', 0))));
    const locality = new Locality(system, computePaths(system, parametersWith({})), parametersWith({}));
    expect(() => locality.netOfGpu(0, 0)).toThrow('GPU/0-1000 (rank 0) reaches no network device');
  });
});

describe('totals for the search', () => {
  const pair = systemXml(cpu(0, gpu('01', 0, nvLink('02', 4)) + gpu('02', 1, nvLink('01', 4)) + nic('03', 0)));

  it('are those of the machine, or of its network when ranks are outside', () => {
    expect(onlyLocalSystem(pair)).toMatchObject({ inter: false, maxGBps: 80, totalGBps: 80 });
    expect(onlyLocalSystem(pair, parametersWith({}), 4)).toMatchObject({ inter: true, maxGBps: 24, totalGBps: 80 });
  });

  it('are that of the GPU itself for a single rank', () => {
    expect(onlyLocalSystem(systemXml(cpu(0, gpu('01', 0))))).toMatchObject({ maxGBps: 5000, totalGBps: 5000 });
  });
});

describe('NVLink SHARP', () => {
  const two = (sm: number) =>
    systemXml(
      cpu(0, gpu('01', 0, nvSwitchLink(18), `sm="${sm}" gdr="1"`) + gpu('02', 1, nvSwitchLink(18), `sm="${sm}" gdr="1"`)),
    );

  it('needs NVSwitches, two GPUs and Hopper, and can be turned on or off by a variable', () => {
    expect(onlyLocalSystem(two(90)).nvls).toBe(true);
    expect(onlyLocalSystem(two(80)).nvls).toBe(false);
    expect(onlyLocalSystem(systemXml(cpu(0, gpu('01', 0, nvSwitchLink(18), 'sm="90" gdr="1"')))).nvls).toBe(false);
    expect(onlyLocalSystem(two(90), parametersWith({ nvlsEnable: 0 })).nvls).toBe(false);
    expect(onlyLocalSystem(two(80), parametersWith({ nvlsEnable: 1 })).nvls).toBe(true);
    const olderFirst = (older: number) =>
      systemXml(
        cpu(0, gpu('01', older, nvSwitchLink(18), 'sm="70" gdr="1"') + gpu('02', 1 - older, nvSwitchLink(18), 'sm="90" gdr="1"')),
      );
    expect([0, 1].map((older) => onlyLocalSystem(olderFirst(older)).nvls)).toEqual([false, true]);
  });

  it('is unavailable with several ranks on one GPU', () => {
    const shared = systemXml(
      cpu(
        0,
        pciSwitch(
          '01',
          `<gpu dev="0" rank="0" sm="90" gdr="1">${nvSwitchLink(18)}</gpu><gpu dev="0" rank="1" sm="90" gdr="1"/>`,
          'class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"',
        ),
      ),
    );
    expect(onlyLocalSystem(shared).nvls).toBe(false);
    expect(() => onlyLocalSystem(shared, parametersWith({ nvlsEnable: 1 }))).toThrow(
      'NCCL_NVLS_ENABLE=1 does not go with several ranks on one GPU',
    );
  });
});
