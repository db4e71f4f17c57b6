import { counted } from '../../../counted.js';
import { diagnose } from '../../topology/doctor/diagnose.js';
import type { LogFinding } from './finding.js';
import { loggedTopology } from '../machine/logged-topology.js';
import type { LogModel } from '../job/model.js';
import { isOfRccl } from '../lines/rccl.js';
import type { LoggedMachine, LoggedWire } from '../job/system-block.js';

/** Finds faults of the machines that NCCL printed: links that differ by direction or from links of the same kind. */
export function checkMachines({ machines, hits }: Pick<LogModel, 'machines' | 'hits'>): LogFinding[] {
  if (isOfRccl({ hits })) return [];
  const findings = machines.flatMap((machine) => [
    ...oneWay(machine),
    ...fewerLinks(machine),
    ...slowPcie(machine),
    ...doctored(machine),
  ]);
  const kinds = new Map<string, LogFinding[]>();
  for (const finding of findings) kinds.set(finding.code, [...(kinds.get(finding.code) ?? []), finding]);
  return [...kinds.values()].flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    return [
      {
        ...first,
        problem: others.length === 0 ? first.problem : `${first.problem}; and ${counted(others.length, 'more')} like this`,
      },
    ];
  });
}

/** Checks that NVLink between two GPUs has the same lanes in both directions. */
function oneWay({ host, wires }: LoggedMachine): LogFinding[] {
  const pairs = wires.filter(({ type, from, to }) => type === 'NVL' && from.startsWith('GPU') && to.startsWith('GPU'));
  return pairs.flatMap((wire): LogFinding[] => {
    const back = pairs.find(({ from, to }) => from === wire.to && to === wire.from);
    if (back === undefined || back.gbps <= wire.gbps * 1.01) return [];
    return [
      {
        code: 'nvlink-asymmetric',
        severity: 'error',
        kind: 'fault',
        explains: ['bandwidth-low'],
        problem: `NVLink between ${gpu(wire.from)} and ${gpu(wire.to)} of ${host} has ${wire.gbps} GB/s one way and ${back.gbps} the other`,
        cause: 'lanes of the bridge or cable are down as one GPU sees them, or a topology file (NCCL_TOPO_FILE) says so',
        remedy:
          '`nvidia-smi nvlink -s` on both GPUs; reseat or replace the NVLink bridge; unset NCCL_TOPO_FILE if the file is wrong',
        places: [wire.place, back.place],
      },
    ];
  });
}

/** Checks that all GPUs on an NVSwitch have the same number of NVLinks. */
function fewerLinks({ host, wires }: LoggedMachine): LogFinding[] {
  const toSwitch = wires.filter(({ type, from, to }) => type === 'NVL' && from.startsWith('GPU') && to.startsWith('NVS'));
  const most = Math.max(0, ...toSwitch.map(({ gbps }) => gbps));
  const fewer = toSwitch.filter(({ gbps }) => gbps < most * 0.99);
  const [first] = fewer;
  if (first === undefined) return [];
  return [
    {
      code: 'nvlink-degraded',
      severity: 'error',
      kind: 'fault',
      explains: ['bandwidth-low'],
      problem: `${fewer
        .map(({ from }) => gpu(from))
        .slice(0, 4)
        .join(', ')} of ${host} ${fewer.length === 1 ? 'has' : 'have'} ${first.gbps} GB/s of NVLink, others ${most}`,
      cause: 'NVLinks of that GPU are down',
      remedy: '`nvidia-smi nvlink -s`; `dmesg -T` (Xid); reset the GPU or drain the host',
      places: fewer.slice(0, 4).map(({ place }) => place),
    },
  ];
}

/** Checks PCIe links among the GPUs of a host, which are alike: a link with half the speed of the others has trained down. */
function slowPcie({ host, wires }: LoggedMachine): LogFinding[] {
  const links = new Map<string, LoggedWire>();
  for (const wire of wires) if (wire.type === 'PCI' && /^(?:GPU|DEV)/.test(wire.to)) links.set(wire.to, wire);
  const most = Math.max(0, ...[...links.values()].map(({ gbps }) => gbps));
  const slow = [...links.values()].filter(({ gbps }) => gbps <= most / 2);
  const [first] = slow;
  if (first === undefined || slow.length >= links.size / 2) return [];
  return [
    {
      code: 'pcie-slow',
      severity: 'warning',
      kind: 'cost',
      explains: ['bandwidth-low'],
      problem: `the PCIe link of ${slow
        .map(({ to }) => gpu(to))
        .slice(0, 4)
        .join(', ')} on ${host} has ${first.gbps} GB/s, others ${most}`,
      cause: 'the link trained down to fewer lanes or a lower generation, or sits in a slower slot',
      remedy: '`lspci -vvv` (LnkSta); reseat the card',
      places: slow.slice(0, 4).map(({ place }) => place),
    },
  ];
}

/** Findings of the doctor that a block of a log proves, and that no other check makes. */
const doctorCodes: ReadonlySet<string> = new Set([
  'link-bottleneck',
  'nic-link-slow',
  'gdr-too-far',
  'nic-across-sockets',
  'nic-shared-uplink',
]);

/** Findings of the topology doctor on the machine, as remarks: they are about its design rather than faults. */
function doctored(machine: LoggedMachine): LogFinding[] {
  const root = loggedTopology(machine);
  const [first] = machine.wires;
  if (root === undefined || first === undefined) return [];
  return diagnose(root)
    .filter(({ code }) => doctorCodes.has(code))
    .map(({ code, problem, consequence, remedy, places }) => ({
      code: `topology-${code}`,
      severity: 'info' as const,
      kind: 'note' as const,
      problem: `${machine.host}, as NCCL prints it: ${places[0] === undefined ? '' : `${places[0].element} `}${problem}`,
      cause: consequence,
      remedy,
      places: [first.place],
    }));
}

/** Short name of `GPU/0-17000`: `GPU 17000`. */
function gpu(name: string): string {
  return name.replace(/^\w+\/(?:[0-9a-fA-F]{1,8}-)?/, 'GPU ');
}
