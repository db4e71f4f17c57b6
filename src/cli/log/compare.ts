import { inFile, InvalidArgumentError, InvalidUsageError } from '../../errors.js';
import { refuseContradictions } from '../../planner/graph/merge/contradictions.js';
import { Transports } from '../../planner/graph/transports/transports.js';
import { ncclVariables } from '../../planner/nccl-variables.js';
import { type Cluster, type ClusterHosts, prepareCluster } from '../../planner/plan/cluster.js';
import { comparePlan, planFinding } from '../../planner/log/checks/compare-plan.js';
import type { LogFinding } from '../../planner/log/checks/finding.js';
import type { LoggedCommunicator, LogModel } from '../../planner/log/job/model.js';
import { planPrepared } from '../../planner/plan/plan.js';
import { isOfRccl } from '../../planner/log/lines/rccl.js';
import { defaultVersion, nearestVersions } from '../../planner/versions/version.js';
import { type ClusterInput, readCluster } from '../cluster-input.js';
import { usedGpus, withUsedGpus } from './used-gpus.js';

export interface ComparisonOptions {
  readonly topology?: string;
  readonly nodes?: string;
  readonly hardware?: string;
}

/** Output of a comparison: the finding, or a sentence if all is as planned. */
interface ComparisonResult {
  readonly findings: readonly LogFinding[];
  readonly sentence: string | undefined;
}

/** Variables without effect on channels, or with files of the job, which this machine need not have. */
const notOurs = new Set([
  'NCCL_TOPO_FILE',
  'NCCL_GRAPH_FILE',
  'NCCL_TOPO_DUMP_FILE',
  'NCCL_GRAPH_DUMP_FILE',
  'NCCL_DEBUG',
  'NCCL_DEBUG_FILE',
  'NCCL_DEBUG_SUBSYS',
]);

/** Compares the largest communicator of the log with the plan for a cluster, with the settings of the log. */
export async function comparePlanned(model: LogModel, options: ComparisonOptions): Promise<ComparisonResult> {
  const { topology, nodes, hardware } = options;
  if (topology === undefined) {
    const option = nodes !== undefined ? '--nodes' : hardware !== undefined ? '--hardware' : undefined;
    if (option !== undefined)
      throw new InvalidUsageError('UNSUPPORTED', `${option} is for plans, which need a machine: give --topology, too`);
    return { findings: [], sentence: undefined };
  }
  if (isOfRccl(model))
    throw new InvalidUsageError(
      'UNSUPPORTED',
      'this is the log of RCCL (AMD), which plans otherwise than NCCL: it cannot be compared with a plan',
    );
  const [largest] = [...model.communicators].sort((a, b) => b.ranks.size - a.ranks.size);
  if (largest === undefined)
    throw new InvalidUsageError('UNSUPPORTED', 'there is no communicator in the log to compare with a plan');
  const input = await readCluster([topology], {
    ...(nodes === undefined ? {} : { nodes }),
    ...(hardware === undefined ? {} : { hardware }),
    env: settingsOf(largest),
    nccl: plannedVersion(largest),
  });
  const cluster = sized(input, largest, nodes);
  refuseContradictions(input.parameters);
  return inFile(input.fileName, () => {
    const prepared = prepareCluster(cluster, input.parameters);
    const plan = planPrepared(prepared, input.parameters);
    const machines = new Map(
      prepared.flatMap(({ host, systems }) =>
        host.nodes.flatMap((node, index) => {
          const system = systems[index];
          return system === undefined ? [] : [[node, system] as const];
        }),
      ),
    );
    const comparison = comparePlan(largest, plan, new Transports(plan, machines, input.parameters));
    const title = cluster.hosts.map(({ name, count }) => `${count} x ${name ?? topology}`).join(' + ');
    const finding = planFinding(largest, comparison, title, input.parameters.ncclVersion);
    return {
      findings: finding === undefined ? [] : [finding],
      sentence:
        finding === undefined ? `All ${comparison.compared} decisions in the log are those of the plan for ${title}.` : undefined,
    };
  });
}

/** The version of the log, or the nearest covered one. */
function plannedVersion({ ranks }: LoggedCommunicator): string {
  const text = [...ranks.values()].find(({ process }) => process.version !== undefined)?.process.version?.text;
  const version = /^[0-9]+\.[0-9]+\.[0-9]+/.exec(text ?? '')?.[0] ?? defaultVersion;
  const { older, newer } = nearestVersions(version);
  return older ?? newer ?? defaultVersion;
}

/** `NAME=VALUE` of the variables that the ranks reported. */
function settingsOf({ ranks }: LoggedCommunicator): string[] {
  const settings = new Map<string, string>();
  for (const { process } of ranks.values()) {
    for (const [name, { value }] of process.environment)
      if (ncclVariables.has(name) && !notOurs.has(name)) settings.set(name, settings.get(name) ?? value);
  }
  return [...settings].map(([name, value]) => `${name}=${value}`);
}

/**
 * The part of the cluster that the communicator uses: the number of hosts that it needs without `--nodes`, and of each host the
 * GPUs that it uses.
 *
 * @throws InvalidArgumentError where the machines have other GPUs than the log
 */
function sized({ cluster, machines, title }: ClusterInput, communicator: LoggedCommunicator, nodes: string | undefined): Cluster {
  const gpus = ({ machine }: ClusterHosts) => ('gpus' in machine ? machine.gpus.length : 0);
  const planned = cluster.hosts.reduce((sum, hosts) => sum + gpus(hosts) * hosts.count, 0);
  const { nRanks } = communicator;
  if (planned === nRanks) return cluster;
  const [first, ...others] = cluster.hosts;
  const isOne = nodes === undefined && first?.count === 1 && others.length === 0;
  if (first !== undefined && isOne && planned > 0 && nRanks % planned === 0)
    return { hosts: [{ ...first, count: nRanks / planned }] };

  const used = usedGpus(communicator);
  const expanded = cluster.hosts.flatMap((hosts) => Array.from({ length: hosts.count }, () => hosts));
  const ofHost = (number: number) => (isOne ? first : expanded.length === used?.length ? expanded[number] : undefined);
  const parts = used?.map((host, number) => {
    const hosts = ofHost(number);
    const root = machines.find(({ system }) => system === hosts?.machine)?.root;
    return hosts === undefined || root === undefined
      ? undefined
      : { ...hosts, count: 1, machine: withUsedGpus(root, host, title) };
  });
  if (parts !== undefined && parts.every((part) => part !== undefined)) return { hosts: parts };
  throw new InvalidArgumentError(
    'ARGUMENT_RANGE',
    `${title} has ${planned} ranks, and the communicator in the log has ${nRanks}${used === undefined ? '' : ` on ${used.length} hosts`}: ` +
      (used === undefined
        ? 'the GPUs that it used are unknown, because the log does not have all ranks'
        : 'give the machine that the job ran on and --nodes, or a cluster file with its hosts in the order of their ranks'),
  );
}
