import { type Parameters, parametersFromEnvironment } from '../../parameters.js';
import { linkSpeeds, type PciGeneration } from '../../topology/catalogue/build.js';
import { type ClusterChange, withVariable } from '../../plan/changed-cluster.js';
import { copyNic, doubleNics, laneSpeed, named, nicDevices } from '../../plan/machine-edits.js';
import { childNamed, createElement, detach, type XmlElement } from '../../topology/xml/tree.js';

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
  NCCL_NCHANNELS_PER_NET_PEER: ['2', '4', '8'],
  NCCL_MIN_P2P_NCHANNELS: ['32'],
};

/** More values, for a question that names the variable: a plan that asks for help does not try these. */
const askedValues: Readonly<Record<string, readonly string[]>> = {
  NCCL_MAX_NCHANNELS: ['4', '8', '10'],
  NCCL_MIN_NCHANNELS: ['16', '32'],
  NCCL_MAX_CTAS: ['4', '8', '10'],
  NCCL_MIN_CTAS: ['16', '32'],
  NCCL_MAX_P2P_NCHANNELS: ['4', '8'],
  NCCL_MIN_P2P_NCHANNELS: ['16', '32'],
  NCCL_BUFFSIZE: ['1048576', '8388608', '16777216'],
  NCCL_NTHREADS: ['128', '256', '512'],
  NCCL_P2P_DISABLE: ['1'],
  NCCL_SHM_DISABLE: ['1'],
  NCCL_P2P_LEVEL: ['LOC', 'NVL', 'PIX', 'PHB', 'SYS'],
  NCCL_NET_GDR_LEVEL: ['LOC', 'PIX', 'PHB', 'SYS'],
  NCCL_NET_GDR_READ: ['0', '1'],
  NCCL_ALGO: ['Ring', 'Tree', '^ring', '^tree'],
  NCCL_PROTO: ['LL', 'LL128', 'Simple', '^LL128'],
  NCCL_COLLNET_ENABLE: ['1'],
  NCCL_NVLS_NCHANNELS: ['8', '16', '32'],
  NCCL_P2P_NET_CHUNKSIZE: ['131072', '524288', '1048576'],
  NCCL_P2P_NVL_CHUNKSIZE: ['262144', '1048576'],
  NCCL_P2P_PCI_CHUNKSIZE: ['131072', '524288'],
};

/** Values of a variable to try where a question names it; unset where it is set. */
export function valuesWorthATry(
  name: string,
  environment: Readonly<Record<string, string>>,
  parameters: Parameters,
): (string | null)[] {
  const now = JSON.stringify(parameters);
  const values = [...(name in environment ? [null] : []), ...(askedValues[name] ?? parameterValues[name] ?? [])];
  return values.filter((value) => {
    const { parameters: then } = parametersFromEnvironment(withVariable(environment, { name, value }), parameters);
    return JSON.stringify(then) !== now;
  });
}

/** Variables that are set, each unset; then values worth a try, except those that are in effect already. */
function parameterChanges(parameters: Parameters, environment: Readonly<Record<string, string>>): Change[] {
  const now = JSON.stringify(parameters);
  const change = (name: string, value: string | null): Change[] => {
    const { parameters: then } = parametersFromEnvironment(withVariable(environment, { name, value }), parameters);
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
      ? [{ kind: 'nic', what: 'NICs', before: 'one where it is', after: 'two, side by side', apply: doubleNics } as const]
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

/** NICs with no GPU beside them. */
function farNics(machine: XmlElement): XmlElement[] {
  const near = new Set(gpuSwitches(machine));
  return nicDevices(machine).filter((device) => device.parent !== undefined && !near.has(device.parent));
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
  const lane = laneSpeed(pci);
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
