import { counted } from '../../../counted.js';
import { LAST_RESORT_GBPS } from '../../graph/graph.js';
import { parametersFromEnvironment } from '../../parameters.js';
import { findMachine } from '../../topology/catalogue/machines.js';
import { canJoinPorts, mergeGroups, mergeNics } from '../../topology/combine/merge-nics.js';
import { type Finding, Findings } from '../../topology/doctor/finding.js';
import { formatGBps } from '../../topology/format.js';
import { type ClusterChange, withVariable } from '../changed-cluster.js';
import { named } from '../machine-edits.js';
import { Losses, MEASURED_CALL, type PlannedCluster, topologiesOf } from './planned.js';

/** Input of a check. */
interface Checked {
  readonly subject: PlannedCluster;
  readonly losses: Losses;
  readonly findings: Findings;
}

/** Gain of a change from which a fault is reported. */
const LEAST_GAIN = 1.02;

/**
 * Finds faults of a cluster that no machine shows by itself: in how its hosts fit together, in its variables, and in what the
 * search made of it. Each has the bus bandwidth of an all-reduce of 1 GiB that is predicted with the fault and without.
 */
export function checkPlan(subject: PlannedCluster): Finding[] {
  const checked: Checked = { subject, losses: new Losses(subject), findings: new Findings() };
  checkSearches(checked);
  checkNicCounts(checked);
  checkPlanes(checked);
  checkCrossNic(checked);
  checkMergedPorts(checked);
  checkDomain(checked);
  checkRanges(checked);
  return checked.findings.list();
}

/** `12.2 instead of 47 GB/s of bus bandwidth in AllReduce of 1 GiB`. */
function lossText(is: number, couldBe: number): string {
  const rate = (gbps: number) => formatGBps(Number(gbps.toPrecision(3)));
  if (couldBe <= is) return `${rate(is)} GB/s of bus bandwidth with and without are predicted for ${MEASURED_CALL}`;
  return `${rate(is)} instead of ${rate(couldBe)} GB/s of bus bandwidth are predicted for ${MEASURED_CALL}`;
}

/** Variables that give the search other paths or NICs, to try where it found nothing. */
const searchRemedies: readonly NonNullable<ClusterChange['variable']>[] = [
  { name: 'NCCL_PXN_DISABLE', value: '1' },
  { name: 'NCCL_CROSS_NIC', value: '1' },
  { name: 'NCCL_NET_GDR_LEVEL', value: 'SYS' },
  { name: 'NCCL_NETDEVS_POLICY', value: 'ALL' },
];

/** Checks for graphs of which no search found a channel, so that NCCL takes the GPUs in the order of their numbers. */
function checkSearches({ subject, losses, findings }: Checked): void {
  const { graphs } = subject.plan;
  const dead = (['ring', 'tree'] as const).filter(
    (name) => graphs[name].nChannels > 0 && graphs[name].bwIntra === LAST_RESORT_GBPS,
  );
  if (dead.length === 0) return;
  const tried = searchRemedies
    .filter(({ name, value }) => subject.environment[name] !== value)
    .flatMap((variable) => {
      const gbps = losses.with({ variable });
      return gbps === undefined ? [] : [{ variable, gbps }];
    });
  const best = tried.reduce<(typeof tried)[number] | undefined>(
    (most, each) => (most === undefined || each.gbps > most.gbps ? each : most),
    undefined,
  );
  const helps = best !== undefined && best.gbps > losses.is * LEAST_GAIN;
  const isAsked = subject.environment['NCCL_ALGO']?.toLowerCase().includes('tree') === true;
  findings.add(undefined, {
    code: 'search-failed',
    severity: dead.includes('ring') || isAsked ? 'error' : 'warning',
    problem: `no search found a ${dead.join(' or a ')}; NCCL takes one channel through the GPUs in the order of their numbers`,
    consequence: `${
      dead.includes('tree')
        ? 'rings get no more channels than trees, and NCCL_ALGO=Tree crashes'
        : 'all calls go through that channel'
    }: ${helps ? lossText(losses.is, best.gbps) : `${formatGBps(Number(losses.is.toPrecision(3)))} GB/s of bus bandwidth are predicted for ${MEASURED_CALL}`}`,
    gbps: { is: losses.is, couldBe: helps ? best.gbps : losses.is },
    remedy: helps
      ? `${best.variable.name}=${best.variable.value ?? ''}; do not set NCCL_ALGO=Tree`
      : 'tccl explain CLUSTER what would help; tccl upgrade CLUSTER compares versions of NCCL',
  });
}

/** Checks for hosts with different numbers of NICs. */
function checkNicCounts({ subject, losses, findings }: Checked): void {
  const { kinds, nNodes } = subject.plan.nodes;
  const counts = kinds.map(({ netDevices }) => netDevices);
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  if (nNodes < 2 || least === most) return;
  const rich = subject.cluster.hosts.find(
    (_, index) => subject.prepared[index]?.host.nodes.some(({ netDevices }) => netDevices === most) === true,
  );
  const couldBe =
    rich === undefined
      ? undefined
      : losses.of({ ...subject, cluster: { hosts: subject.cluster.hosts.map((host) => ({ ...host, machine: rich.machine })) } });
  const names = subject.prepared.map(({ name, host }) => `${name} ${host.nodes[0]?.netDevices ?? 0}`);
  findings.add(undefined, {
    code: 'nic-counts-differ',
    severity: 'warning',
    problem: `hosts have different numbers of NICs: ${[...new Set(names)].slice(0, 4).join(', ')}`,
    consequence: `NCCL goes on (NCCL_IGNORE_NET_MISMATCH=${subject.parameters.ignoreNetMismatch}), a job can hang in its first calls, and all hosts keep to the least${
      couldBe === undefined ? '' : `: ${lossText(losses.is, Math.max(couldBe, losses.is))}`
    }`,
    ...(couldBe === undefined ? {} : { gbps: { is: losses.is, couldBe: Math.max(couldBe, losses.is) } }),
    remedy:
      'repair the NIC that is missing, or name the same ones on all hosts (NCCL_IB_HCA); NCCL_IGNORE_NET_MISMATCH=0 makes NCCL refuse such hosts',
  });
}

/** Checks that a NIC has the same number on hosts of all kinds: rings join NICs of one number. */
function checkPlanes({ subject, losses, findings }: Checked): void {
  if (subject.plan.nodes.nNodes < 2) return;
  const kinds = [...topologiesOf(subject)].map(([root, name]) => ({
    name,
    nets: new Map(named(root, 'net').map((net) => [net.attributes.get('name') ?? '', net.attributes.get('dev') ?? ''])),
  }));
  const [first, ...others] = kinds;
  if (first === undefined) return;
  for (const other of others) {
    const sameNames =
      first.nets.size === other.nets.size && [...first.nets.keys()].every((net) => net !== '' && other.nets.has(net));
    const crossed = sameNames ? [...first.nets].filter(([net, dev]) => other.nets.get(net) !== dev) : [];
    if (crossed.length === 0) continue;
    const part = 1 - crossed.length / first.nets.size;
    findings.add(undefined, {
      code: 'planes-crossed',
      severity: 'warning',
      problem: `${crossed
        .map(([net]) => net)
        .slice(0, 4)
        .join(
          ', ',
        )} ${crossed.length === 1 ? 'has' : 'have'} other numbers on ${other.name} than on ${first.name}, so ${counted(crossed.length, 'NIC')} of ${first.nets.size} ${crossed.length === 1 ? 'is' : 'are'} joined with one of another plane or rail`,
      consequence: `where planes or rails have switches of their own, these pairs do not reach each other; where a spine joins them, all of their data crosses it: ${lossText(losses.is * part, losses.is)} without the spine`,
      gbps: { is: losses.is * part, couldBe: losses.is },
      remedy:
        'give NICs the same order on all hosts: NCCL_IB_HCA with = and the same list, or rules of udev that name devices by their slot',
    });
  }
}

/** Checks for rings that may not change the NIC, where that costs bandwidth. */
function checkCrossNic({ subject, losses, findings }: Checked): void {
  const value = subject.environment['NCCL_CROSS_NIC'];
  if (value === undefined || subject.plan.nodes.nNodes < 2 || [1, 2].includes(subject.parameters.crossNic)) return;
  const couldBe = losses.with({ variable: { name: 'NCCL_CROSS_NIC', value: null } });
  if (couldBe === undefined || couldBe <= losses.is * LEAST_GAIN) return;
  findings.add(undefined, {
    code: 'cross-nic-off',
    severity: 'warning',
    problem: `NCCL_CROSS_NIC=${value} lets no ring leave a host by another port or NIC than it enters`,
    consequence: lossText(losses.is, couldBe),
    gbps: { is: losses.is, couldBe },
    remedy: 'unset NCCL_CROSS_NIC, unless rails or planes are not joined by switches',
  });
}

/** Checks ports that NCCL merges when it starts, while a plan of the file has them apart. */
function checkMergedPorts({ subject, losses, findings }: Checked): void {
  const { parameters, plan } = subject;
  if (plan.nodes.nNodes < 2 || !canJoinPorts(parameters)) return;
  const groups = [...topologiesOf(subject).keys()].map((root) => mergeGroups(root, parameters).length);
  const count = Math.max(0, ...groups);
  if (count === 0) return;
  const merged = losses.with({
    apply: (machine) => {
      mergeNics(machine, parameters);
    },
  });
  if (merged === undefined) return;
  const isOff = parameters.ibMergeNics === 0;
  const [is, couldBe] = isOff ? [losses.is, Math.max(merged, losses.is)] : [merged, Math.max(merged, losses.is)];
  const isLoss = couldBe > is * LEAST_GAIN;
  findings.add(undefined, {
    code: 'ports-merged',
    severity: isLoss ? 'warning' : 'info',
    problem: isOff
      ? `NCCL_IB_MERGE_NICS=0 keeps the ports of ${counted(count, 'card')} apart`
      : `NCCL merges the ports of ${counted(count, 'card')} into one device each when it starts; a topology file, and this plan, have them apart`,
    consequence: isLoss
      ? lossText(is, couldBe)
      : `${formatGBps(Number(merged.toPrecision(3)))} GB/s merged and ${formatGBps(Number(losses.is.toPrecision(3)))} apart are predicted for ${MEASURED_CALL}`,
    gbps: { is, couldBe },
    remedy: isLoss
      ? isOff
        ? 'unset NCCL_IB_MERGE_NICS'
        : 'NCCL_IB_MERGE_NICS=0, or NCCL_NET_MERGE_LEVEL=LOC'
      : 'nothing; tccl topo show FILE --merge-nics shows them merged',
  });
}

/** GPUs that a tray of a rack has, and a rack. */
const GPUS_OF_TRAY = 4;
const GPUS_OF_RACK = 72;

/** Checks for trays of a rack that are planned as nodes of a network: without IMEX, NVLink ends at each of them. */
function checkDomain({ subject, losses, findings }: Checked): void {
  const { cluster, prepared, plan } = subject;
  const nHosts = cluster.hosts.reduce((sum, { count }) => sum + count, 0);
  const systems = prepared.flatMap((hosts) => hosts.systems.map(({ system }) => system));
  const isTray = systems.every(
    ({ gpus, nvSwitches, hostHashes }) =>
      gpus.length === GPUS_OF_TRAY &&
      nvSwitches.length > 0 &&
      hostHashes.length === 1 &&
      gpus.every(({ sm }) => sm === 100 || sm === 103),
  );
  if (!isTray || nHosts < 2 || plan.nodes.nNodes !== nHosts || nHosts * GPUS_OF_TRAY > GPUS_OF_RACK) return;
  const family = systems.every(({ gpus }) => gpus.every(({ sm }) => sm === 100)) ? 'gb200' : 'gb300';
  const rack = `${family}-nvl${nHosts * GPUS_OF_TRAY}`;
  const machine = findMachine(rack)?.build();
  const couldBe =
    machine === undefined ? undefined : losses.of({ ...subject, cluster: { hosts: [{ machine, count: 1, name: rack }] } });
  if (couldBe === undefined || couldBe <= losses.is * LEAST_GAIN) return;
  findings.add(undefined, {
    code: 'domain-split',
    severity: 'warning',
    problem: `${nHosts} trays of a rack are ${nHosts} nodes here, joined by the network`,
    consequence: `if they are trays of one rack, NVLink between them is not used: ${lossText(losses.is, couldBe)}`,
    gbps: { is: losses.is, couldBe },
    remedy: `run nvidia-imex on all of them with the same nodes_config.cfg, give containers /dev/nvidia-caps-imex-channels, and look that nvidia-smi -q shows one ClusterUUID and CliqueId (NCCL_MNNVL_ENABLE=1 then fails instead of falling back); plan ${rack} to see it`,
  });
}

/** Checks variables with values outside their range, of which NCCL makes something else without a word. */
function checkRanges({ subject, losses, findings }: Checked): void {
  const { environment, parameters } = subject;
  for (const { variable, message, isMisread } of parametersFromEnvironment(environment, parameters).notes) {
    if (isMisread !== true) continue;
    const without = parametersFromEnvironment(withVariable(environment, { name: variable, value: null }), parameters);
    const isSame = JSON.stringify(without.parameters) === JSON.stringify(parameters);
    const couldBe = isSame ? losses.is : losses.with({ variable: { name: variable, value: null } });
    const isLoss = couldBe !== undefined && couldBe > losses.is * LEAST_GAIN;
    findings.add(undefined, {
      code: 'variable-range',
      severity: isLoss ? 'warning' : 'info',
      problem: message,
      consequence:
        couldBe === undefined
          ? 'NCCL takes something else than was meant'
          : isLoss
            ? lossText(losses.is, couldBe)
            : `none for ${MEASURED_CALL}: ${formatGBps(Number(losses.is.toPrecision(3)))} GB/s of bus bandwidth with and without it`,
      ...(couldBe === undefined ? {} : { gbps: { is: losses.is, couldBe } }),
      remedy: `unset ${variable}, or give it a value within its range (tccl explain ${variable})`,
    });
  }
}
