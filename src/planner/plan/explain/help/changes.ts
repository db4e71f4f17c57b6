import { type Parameters, parametersFromEnvironment } from '../../../parameters.js';
import { linkSpeeds, type PciGeneration } from '../../../topology/catalogue/build.js';
import { type ClusterChange, withVariable } from '../../changed-cluster.js';
import { childNamed, cloneElement, createElement, descendants, detach, type XmlElement } from '../../../topology/xml/tree.js';

/** A single change of a cluster. */
export interface Change extends ClusterChange {
  readonly kind: 'parameter' | 'nic' | 'pci' | 'nvlink';
  /** The change in words: `NICs of 400 Gb/s`. */
  readonly what: string;
  readonly before: string;
  readonly after: string;
  /** Caution about the change. */
  readonly caution?: string;
}

/**
 * Single changes that are worth a try on these machines: variables first, which cost nothing, then hardware to buy or move. Equal
 * devices (links of one speed at one place, NICs of one speed) are changed together, because a single one of eight equal links
 * never helps.
 */
export function changesFor(
  machines: readonly XmlElement[],
  parameters: Parameters,
  environment: Readonly<Record<string, string>>,
): Change[] {
  return [
    ...parameterChanges(parameters, environment),
    ...nicChanges(machines),
    ...pciChanges(machines),
    ...nvlinkChanges(machines),
  ];
}

/** Values worth a try. */
const parameterValues: Readonly<Record<string, readonly string[]>> = {
  NCCL_CROSS_NIC: ['0', '1', '2'],
  NCCL_P2P_LEVEL: ['PHB', 'SYS'],
  NCCL_NET_GDR_LEVEL: ['PHB', 'SYS'],
  NCCL_PXN_DISABLE: ['1', '0'],
  NCCL_NVLS_ENABLE: ['1', '0'],
  NCCL_PROTO: ['^LL128', 'LL,LL128,Simple'],
  NCCL_ALGO: ['^tree', '^ring'],
  NCCL_MIN_NCHANNELS: ['32'],
  NCCL_NTHREADS: ['256'],
  NCCL_PAT_ENABLE: ['1'],
  NCCL_NETDEVS_POLICY: ['ALL'],
  NCCL_NET_DISABLE_INTRA: ['1'],
};

/** Variables that are set, each unset; then values worth a try, except those that are in effect already. */
function parameterChanges(parameters: Parameters, environment: Readonly<Record<string, string>>): Change[] {
  const now = JSON.stringify(parameters);
  const change = (name: string, value: string | null): Change[] => {
    const { parameters: then } = parametersFromEnvironment(withVariable(environment, { name, value }), parameters.ncclVersion);
    if (JSON.stringify(then) === now) return [];
    // Named or not excluded by ^, it is used even where NCCL considers it unsafe.
    const forcesLl128 =
      name === 'NCCL_PROTO' && value !== null && (value.startsWith('^') ? !/\bll128\b/i.test(value) : /\bll128\b/i.test(value));
    return [
      {
        kind: 'parameter',
        what: name,
        before: environment[name] ?? 'not set',
        after: value ?? 'not set',
        variable: { name, value },
        ...(forcesLl128 ? { caution: LL128_CAUTION } : {}),
      },
    ];
  };
  return [
    ...Object.keys(environment).flatMap((name) => change(name, null)),
    ...Object.entries(parameterValues).flatMap(([name, values]) => values.flatMap((value) => change(name, value))),
  ];
}

const LL128_CAUTION =
  'Beware: NCCL leaves LL128 out where a path may tear its 128 bytes apart, and requested by name it is used nevertheless; results can then be wrong.';

function named(machine: XmlElement, name: string): XmlElement[] {
  return [...descendants(machine)].filter((element) => element.name === name);
}

/** Speeds that ports come in, Mb/s. */
const portSpeeds = [10_000, 25_000, 50_000, 100_000, 200_000, 400_000, 800_000, 1_600_000];

function nicChanges(machines: readonly XmlElement[]): Change[] {
  const speedOf = (net: XmlElement) => Number(net.attributes.get('speed') ?? 0);
  const speeds = [...new Set(machines.flatMap((machine) => named(machine, 'net')).map(speedOf))]
    .filter((speed) => speed > 0)
    .sort((a, b) => a - b);
  const faster = speeds.flatMap((speed): Change[] => {
    const next = portSpeeds.find((each) => each > speed);
    if (next === undefined) return [];
    const upgrade = (withLink: boolean) => (machine: XmlElement) => {
      for (const net of named(machine, 'net').filter((each) => speedOf(each) === speed)) {
        net.attributes.set('speed', String(next));
        const link = net.parent?.parent;
        if (withLink && link?.name === 'pci') nextGeneration(link);
      }
    };
    const gbit = (mbps: number) => `${mbps / 1000} Gb/s`;
    return [
      { kind: 'nic', what: 'NICs', before: gbit(speed), after: gbit(next), apply: upgrade(false) },
      {
        kind: 'nic',
        what: 'NICs and their PCIe links',
        before: gbit(speed),
        after: `${gbit(next)}, one PCIe generation more`,
        apply: upgrade(true),
      },
    ];
  });
  const hasNics = machines.some((machine) => named(machine, 'net').length > 0);
  const bare = machines.some((machine) => gpuSwitches(machine).some((each) => named(each, 'net').length === 0));
  const far = machines.some((machine) => farNics(machine).length > 0);
  return [
    ...faster,
    ...(hasNics
      ? [
          {
            kind: 'nic',
            what: 'NICs',
            before: 'one where it is',
            after: 'two, side by side',
            apply: (machine: XmlElement) => {
              for (const nic of nicDevices(machine)) copyNic(nic, nic.parent ?? machine, machine);
            },
          } as const,
        ]
      : []),
    ...(hasNics && bare
      ? [
          {
            kind: 'nic',
            what: 'switches and CPUs that have GPUs and no NIC',
            before: 'none',
            after: 'a NIC each',
            apply: fillBareSwitches,
          } as const,
        ]
      : []),
    ...(bare && far
      ? [
          {
            kind: 'nic',
            what: 'a NIC away from all GPUs',
            before: 'below a CPU of its own',
            after: 'beside GPUs without NIC',
            apply: moveFarNic,
          } as const,
        ]
      : []),
  ];
}

/** Devices that GPUs are attached to: PCI switches, or CPUs where there are none. */
function gpuSwitches(machine: XmlElement): XmlElement[] {
  return [
    ...new Set(
      named(machine, 'gpu')
        .map((gpu) => gpu.parent?.parent)
        .filter((parent) => parent !== undefined),
    ),
  ];
}

/** PCI devices that hold NICs. */
function nicDevices(machine: XmlElement): XmlElement[] {
  return named(machine, 'nic').flatMap(({ parent }) => (parent?.name === 'pci' ? [parent] : []));
}

/** NICs with no GPU beside them. */
function farNics(machine: XmlElement): XmlElement[] {
  const near = new Set(gpuSwitches(machine));
  return nicDevices(machine).filter((device) => device.parent !== undefined && !near.has(device.parent));
}

/** Another card like that one, with numbers of its own. */
function copyNic(device: XmlElement, parent: XmlElement, machine: XmlElement): void {
  const copy = cloneElement(device, parent);
  const busIds = new Set(named(machine, 'pci').map((pci) => pci.attributes.get('busid')));
  let bus = 0;
  while (busIds.has(busIdOf(bus))) bus++;
  copy.attributes.set('busid', busIdOf(bus));
  for (const net of named(copy, 'net')) {
    const dev =
      1 +
      Math.max(
        ...named(machine, 'net')
          .filter((other) => other !== net)
          .map((other) => Number(other.attributes.get('dev') ?? 0)),
      );
    net.attributes.set('dev', String(dev));
    net.attributes.set('name', `added_${dev}`);
    net.attributes.set('guid', `0xadded0000000${dev.toString(16).padStart(3, '0')}`);
  }
}

/** A bus in a PCI domain that machines do not use. */
function busIdOf(bus: number): string {
  return `add0:${bus.toString(16).padStart(2, '0')}:00.0`;
}

function fillBareSwitches(machine: XmlElement): void {
  const [pattern] = nicDevices(machine);
  if (pattern === undefined) return;
  for (const place of gpuSwitches(machine).filter((each) => named(each, 'net').length === 0)) copyNic(pattern, place, machine);
}

function moveFarNic(machine: XmlElement): void {
  const [device] = farNics(machine);
  const place = gpuSwitches(machine).find((each) => named(each, 'net').length === 0);
  if (device === undefined || place === undefined) return;
  detach(device);
  device.parent = place;
  place.children.push(device);
}

const roles = { gpu: 'PCIe links of GPUs', nic: 'PCIe links of NICs', switch: 'PCIe links of switches' } as const;

function roleOf(pci: XmlElement): keyof typeof roles {
  if (childNamed(pci, 'gpu') !== undefined) return 'gpu';
  return childNamed(pci, 'nic') === undefined ? 'switch' : 'nic';
}

function generationOf(pci: XmlElement): PciGeneration | undefined {
  const lane = Number.parseFloat(pci.attributes.get('link_speed') ?? '');
  return ([3, 4, 5, 6] as const).find((each) => Number.parseFloat(linkSpeeds[each]) === lane);
}

function nextGeneration(pci: XmlElement): void {
  const generation = generationOf(pci);
  if (generation !== undefined && generation < 6) pci.attributes.set('link_speed', linkSpeeds[(generation + 1) as PciGeneration]);
}

/** Links of one role, generation and width together: with the next generation, and with all lanes. */
function pciChanges(machines: readonly XmlElement[]): Change[] {
  const keyOf = (pci: XmlElement) => [roleOf(pci), generationOf(pci) ?? '?', pci.attributes.get('link_width') ?? ''].join();
  const classes = new Map(machines.flatMap((machine) => named(machine, 'pci')).map((pci) => [keyOf(pci), pci]));
  return [...classes].flatMap(([key, pci]): Change[] => {
    const generation = generationOf(pci);
    const width = Number(pci.attributes.get('link_width') ?? 16);
    if (generation === undefined || width === 0) return [];
    const alike = (machine: XmlElement) => named(machine, 'pci').filter((each) => keyOf(each) === key);
    const what = roles[roleOf(pci)];
    const before = `Gen${generation} x${width}`;
    return [
      ...(width < 16
        ? [
            {
              kind: 'pci',
              what,
              before,
              after: `Gen${generation} x${2 * width}`,
              apply: (machine: XmlElement) => {
                for (const each of alike(machine)) each.attributes.set('link_width', String(2 * width));
              },
            } as const,
          ]
        : []),
      ...(generation < 6
        ? [
            {
              kind: 'pci',
              what,
              before,
              after: `Gen${generation + 1} x${width}`,
              apply: (machine: XmlElement) => {
                for (const each of alike(machine)) nextGeneration(each);
              },
            } as const,
          ]
        : []),
    ];
  });
}

/** NVLinks of a bridge between two cards. */
const BRIDGE_LINKS = 4;

function nvlinkChanges(machines: readonly XmlElement[]): Change[] {
  const links = machines.flatMap((machine) => named(machine, 'nvlink'));
  if (links.length > 0) {
    return [
      {
        kind: 'nvlink',
        what: 'each NVLink connection',
        before: 'as it is',
        after: 'one link more',
        apply: (machine) => {
          for (const link of named(machine, 'nvlink'))
            link.attributes.set('count', String(1 + Number(link.attributes.get('count') ?? 1)));
        },
      },
    ];
  }
  if (!machines.some((machine) => named(machine, 'gpu').length > 1)) return [];
  return [
    {
      kind: 'nvlink',
      what: 'GPUs',
      before: 'no NVLink',
      after: `a bridge of ${BRIDGE_LINKS} NVLinks between each two`,
      apply: (machine) => {
        const gpus = named(machine, 'gpu');
        for (let first = 0; first + 1 < gpus.length; first += 2) {
          const [one, other] = [gpus[first], gpus[first + 1]];
          if (one !== undefined && other !== undefined) {
            bridge(one, other);
            bridge(other, one);
          }
        }
      },
    },
  ];
}

function bridge(from: XmlElement, to: XmlElement): void {
  createElement('nvlink', from, [
    ['target', to.parent?.attributes.get('busid') ?? ''],
    ['count', String(BRIDGE_LINKS)],
    ['tclass', '0x030200'],
  ]);
}
