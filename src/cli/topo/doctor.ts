import { statSync } from 'node:fs';
import { counted } from '../../counted.js';
import { detect } from '../../runtime/detect/detect.js';
import { type Parameters, parametersFromEnvironment } from '../../planner/parameters.js';
import { completeSkeleton } from '../../planner/topology/catalogue/complete.js';
import { diagnose } from '../../planner/topology/doctor/diagnose.js';
import { bySeverity, type Finding, type Severity } from '../../planner/topology/doctor/finding.js';
import { descendants, shorten, type XmlElement } from '../../planner/topology/xml/tree.js';
import { inFile, InputError, InvalidUsageError, TcclError } from '../../errors.js';
import { machineOf } from '../../planner/evidence/machine-of-tools.js';
import { checkPlan } from '../../planner/plan/checks/check-plan.js';
import { prepareCluster } from '../../planner/plan/cluster.js';
import { planPrepared } from '../../planner/plan/plan.js';
import { withoutEmptyBranches } from '../../planner/topology/combine/prune.js';
import { tune } from '../../planner/tuning/tune.js';
import { isClusterFile, nodeCount, readCluster, rootsOf } from '../cluster-input.js';
import { colorsFor, print, printJson, printNotes } from '../output.js';
import { newGpuNotes, type VersionOptions, versionOf } from '../version-options.js';
import { parseTopology, readOneFile, readText, readTopologyInput, type TopologyInput } from './input.js';
import { readHardware } from './load.js';

export interface DoctorOptions extends VersionOptions {
  readonly hardware?: string;
  readonly machine?: string;
  readonly graph?: string;
  readonly nodes?: string;
  readonly json?: boolean;
}

/** Number of places of one finding in the text; JSON has all. */
const SHOWN_PLACES = 4;

/** `tccl topo doctor`; returns the exit code. */
export async function doctor(name: string, options: DoctorOptions): Promise<number> {
  const text = readText(name);
  if (text !== undefined && isClusterFile(text)) return doctorOfCluster(name, options);
  const input = readTopologyInput(name);
  const hardware = options.hardware === undefined ? undefined : readHardware(options.hardware);
  const { root, notes: evidentNotes } = inFile(input.fileName, () => {
    if (input.evidence !== undefined) return machineOf(input.evidence, hardware);
    return { root: hardware === undefined ? input.root : completeSkeleton(input.root, hardware).root, notes: [] };
  });
  const { parameters } = parametersFromEnvironment(process.env, versionOf(options));
  const ofMachine = diagnose(root, {
    notes: input.notes,
    parameters,
    ...(options.machine === undefined ? {} : { machine: machineNamed(options.machine) }),
    ...(options.graph === undefined ? {} : { graph: { root: graphNamed(options.graph), fileName: options.graph } }),
  });
  const findings = [...ofMachine, ...ofHosts(root, ofMachine, parameters, options)].sort(bySeverity);
  return show(findings, input, [...newGpuNotes(input.title, gpusOf(root), parameters), ...evidentNotes], options);
}

/** Prints findings; returns the exit code. */
function show(
  findings: readonly Finding[],
  { title, fileName }: { readonly title: string; readonly fileName: string | undefined },
  notes: readonly string[],
  { json }: DoctorOptions,
): number {
  if (json === true) printJson({ title, findings, notes }, 1);
  else {
    printFindings(findings, title, fileName);
    printNotes(notes);
  }
  return findings.some(({ severity }) => severity === 'error') ? 1 : 0;
}

/** Ranks up to which hosts are planned without being asked for. */
const MOST_PLANNED = 256;

/** Findings about hosts of a kind together; none of machines that cannot be planned. */
function ofHosts(
  root: XmlElement,
  known: readonly Finding[],
  parameters: Parameters,
  { nodes, graph }: DoctorOptions,
): Finding[] {
  const nGpus = gpusOf(root).length;
  if (graph !== undefined || nGpus === 0 || known.some(({ severity }) => severity === 'error')) return [];
  const count = nodes === undefined ? (known.some(({ code }) => code === 'no-nic') ? 1 : 2) : nodeCount(nodes);
  if (nodes === undefined && nGpus * count > MOST_PLANNED) return [];
  const environment = Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      name.startsWith('NCCL_') && value !== undefined ? [[name, value]] : [],
    ),
  );
  try {
    const machine = withoutEmptyBranches(root);
    const cluster = { hosts: [{ machine, count }] };
    const prepared = prepareCluster(cluster, parameters);
    const plan = planPrepared(prepared, parameters);
    return checkPlan({
      cluster,
      parameters,
      environment,
      prepared,
      plan,
      tuning: tune(plan, parameters),
      roots: new Map([[machine, root]]),
    });
  } catch (error) {
    if (error instanceof TcclError && nodes === undefined) return [];
    throw error;
  }
}

/** The doctor of a cluster file: each machine by itself, then all hosts together. */
async function doctorOfCluster(name: string, options: DoctorOptions): Promise<number> {
  const other = (['hardware', 'machine', 'graph', 'nodes'] as const).find((each) => options[each] !== undefined);
  if (other !== undefined)
    throw new InvalidUsageError('UNSUPPORTED', `--${other} does not go with a cluster file: write it in ${name}`);
  const input = await readCluster([name], options);
  const { cluster, parameters, environment, given, machines, simulated } = input;
  const prepared = prepareCluster(cluster, parameters, given);
  const plan = planPrepared(prepared, parameters);
  const together = checkPlan({
    ...{ cluster, parameters, environment, prepared, plan, simulated, ...given },
    tuning: tune(plan, parameters),
    roots: rootsOf(input),
  });
  const alone = machines.flatMap(({ root, title }) =>
    diagnose(root, { parameters }).map((finding) =>
      machines.length === 1 ? finding : { ...finding, problem: `${title}: ${finding.problem}` },
    ),
  );
  return show([...together, ...alone].sort(bySeverity), { title: input.title, fileName: undefined }, input.notes, options);
}

/** Compute capabilities of the GPUs, also where no graph can be built. */
function gpusOf(root: XmlElement): { readonly sm: number }[] {
  return [...descendants(root)]
    .filter(({ name }) => name === 'gpu')
    .map((gpu) => ({ sm: Number(gpu.attributes.get('sm') ?? 0) }));
}

/** A dump, or a machine by the root of its file system. */
function machineNamed(name: string): XmlElement {
  if (statSync(name, { throwIfNoEntry: false })?.isDirectory() === true) return detect({ root: name }).root;
  return rootNamed('system', readTopologyInput(name), '--machine takes a topology, or the root of a file system');
}

function graphNamed(name: string): XmlElement {
  const what = 'an NCCL_GRAPH_FILE, or what NCCL_GRAPH_DUMP_FILE wrote';
  return rootNamed('graphs', parseTopology(readOneFile(name, what)), `--graph takes ${what}`);
}

function rootNamed(expected: 'system' | 'graphs', { root, fileName }: TopologyInput, what: string): XmlElement {
  if (root.name === expected) return root;
  throw new InputError('CONTENT', `its root is <${shorten(root.name)}>, not <${expected}>: ${what}`, {
    line: root.line,
    column: root.column,
    ...(fileName === undefined ? {} : { file: fileName }),
  });
}

function printFindings(findings: readonly Finding[], title: string, fileName: string | undefined): void {
  const colors = colorsFor(process.stdout);
  const paint: Record<Severity, (text: string) => string> = { error: colors.red, warning: colors.yellow, info: colors.cyan };
  for (const { severity, code, places, problem, consequence, remedy } of findings) {
    print(`${paint[severity](severity)} ${colors.bold(code)}: ${problem}`);
    for (const place of places.slice(0, SHOWN_PLACES)) {
      const at = [fileName, place.line, place.column].filter((part) => part !== undefined && part !== 0).join(':');
      print(`  at ${place.element}${at === '' ? '' : ` ${colors.dim(at)}`}`);
    }
    if (places.length > SHOWN_PLACES) print(`  and ${places.length - SHOWN_PLACES} more places`);
    print(`  cost: ${consequence}`);
    print(`  do:   ${remedy}`, '');
  }
  const count = (severity: Severity, word: string) => {
    const number = findings.filter((finding) => finding.severity === severity).length;
    return number === 0 ? [] : [counted(number, word)];
  };
  const counts = [...count('error', 'error'), ...count('warning', 'warning'), ...count('info', 'remark')];
  print(counts.length === 0 ? `${title}: nothing to complain of` : `${title}: ${counts.join(', ')}`);
}
