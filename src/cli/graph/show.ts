import { counted } from '../../counted.js';
import { inFile, InvalidArgumentError } from '../../errors.js';
import { graphNames, type HostGraphs } from '../../planner/graph/graph.js';
import { graphToJson } from '../../planner/graph/graph-json.js';
import { graphLines } from '../../planner/graph/graph-text.js';
import { graphsToXml } from '../../planner/graph/graph-xml.js';
import { refuseContradictions } from '../../planner/graph/merge/contradictions.js';
import { channelCountLine, nvlsHeadLines, ringLines, treesLine } from '../../planner/graph/merge/print.js';
import { describeMergeEvent } from '../../planner/graph/merge/trace.js';
import { type GraphReport, SearchReport } from '../../planner/graph/search-report.js';
import { type GraphSteps, SearchSteps } from '../../planner/graph/search-steps.js';
import { prepareCluster } from '../../planner/plan/cluster.js';
import { type Plan, planPrepared } from '../../planner/plan/plan.js';
import { planToJson } from '../../planner/plan/plan-json.js';
import type { LocalSystem } from '../../planner/topology/local-systems.js';
import { nodeName } from '../../planner/topology/system.js';
import { writeXml } from '../../planner/topology/xml/write.js';
import { readCluster } from '../cluster-input.js';
import type { ClusterOptions } from '../cluster-options.js';
import { colorsFor, print, printData, printJson, printNotes, writeFile } from '../output.js';

export interface GraphOptions extends ClusterOptions {
  readonly ranks?: string;
  readonly whole?: boolean;
  readonly followNccl?: boolean;
  readonly why?: boolean;
  readonly steps?: string | boolean;
  readonly graphXml?: boolean;
  readonly json?: boolean;
}

/** Lines of steps of each graph, unless asked for another number. */
const DEFAULT_STEPS = 20;

/** Ranks of a machine with the same system, and their graphs. */
interface Searched {
  readonly machine: string;
  readonly local: LocalSystem;
  readonly graphs: HostGraphs;
  readonly reports: readonly GraphReport[];
  readonly steps: readonly GraphSteps[];
}

/** `tccl graph`. */
export async function showGraphs(name: string, options: GraphOptions): Promise<void> {
  const { cluster, fileName, parameters, environment, given, notes } = await readCluster([name], options);
  if (options.followNccl !== true) refuseContradictions(parameters);

  const reports = new Map<string, SearchReport>();
  const steps = new Map<string, SearchSteps>();
  const mostSteps = stepCount(options.steps);
  const prepared = inFile(fileName, () =>
    prepareCluster(cluster, parameters, {
      ...given,
      ...(options.why === true || mostSteps > 0
        ? {
            wantsPaths: mostSteps > 0,
            onSearch: (event, { machine, ranks }) => {
              const key = reportKey(machine, ranks);
              if (mostSteps > 0) {
                const listed = steps.get(key) ?? new SearchSteps(mostSteps);
                steps.set(key, listed);
                listed.listen(event);
              }
              if (options.why !== true) return;
              const report = reports.get(key) ?? new SearchReport();
              reports.set(key, report);
              report.listen(event);
            },
          }
        : {}),
    }),
  );
  const mergeStory: string[] = [];
  const plan = inFile(fileName, () =>
    planPrepared(prepared, parameters, {
      ...(options.why === true ? { onMerge: (event) => mergeStory.push(describeMergeEvent(event)) } : {}),
    }),
  );
  const searched = prepared
    .filter(({ host }, index) => prepared.findIndex((other) => other.host === host) === index)
    .flatMap(({ name: machine, systems, host }) =>
      systems.flatMap((local, node): Searched[] => {
        const graphs = host.nodes[node]?.graphs;
        return graphs === undefined
          ? []
          : [
              {
                machine,
                local,
                graphs,
                reports: reports.get(reportKey(machine, local.ranks))?.graphs ?? [],
                steps: steps.get(reportKey(machine, local.ranks))?.graphs ?? [],
              },
            ];
      }),
    );

  const dump = graphDump(environment, plan, searched);
  if (dump.file !== undefined) writeFile(dump.file, dump.xml);
  if (options.json === true) {
    printJson({ nodes: searched.map(toJson), ...(options.why === true ? { why: mergeStory } : {}), plan: planToJson(plan) });
  } else if (options.graphXml === true) {
    printData(dump.xml);
  } else {
    print(...searched.flatMap((each) => [...searchedLines(each, searched), '']), ...channelsLines(plan, options, mergeStory));
  }
  printNotes(notes);
}

/** Lines of steps for each graph. */
function stepCount(option: string | boolean | undefined): number {
  if (option === undefined || option === false) return 0;
  if (option === true) return DEFAULT_STEPS;
  if (option === 'all') return Infinity;
  if (/^[1-9]\d{0,8}$/.test(option)) return Number(option);
  throw new InvalidArgumentError('ARGUMENT_RANGE', `--steps '${option}' must be all, or a number of lines for each graph`);
}

/** The graphs that NCCL would dump at the rank of `NCCL_GRAPH_DUMP_FILE_RANK` (0 by default), and the file's name. */
function graphDump(
  environment: Readonly<Record<string, string>>,
  { nodes }: Plan,
  searched: readonly Searched[],
): { readonly file: string | undefined; readonly xml: string } {
  const rank = Number(environment['NCCL_GRAPH_DUMP_FILE_RANK'] ?? 0);
  if (!(Number.isInteger(rank) && rank >= 0 && rank < nodes.nRanks)) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `NCCL_GRAPH_DUMP_FILE_RANK=${environment['NCCL_GRAPH_DUMP_FILE_RANK'] ?? ''}: there are ranks 0 to ${nodes.nRanks - 1}, so NCCL would dump nothing`,
    );
  }
  const kind = nodes.kinds[nodes.kindOfNode[nodes.rankToNode[rank] ?? 0] ?? 0];
  const found = searched.find(({ graphs }) => graphs === kind?.graphs);
  const file = environment['NCCL_GRAPH_DUMP_FILE'];
  return {
    file: file === '' ? undefined : file,
    xml: found === undefined ? '' : writeXml(graphsToXml(found.graphs, found.local)),
  };
}

function reportKey(machine: string, ranks: readonly number[]): string {
  return `${machine} ${ranks.join()}`;
}

function toJson({ local, graphs, reports }: Searched): object {
  return {
    ranks: local.ranks,
    graphs: Object.fromEntries(
      graphNames.map((name) => {
        const graph = graphs[name];
        return [name, graph === undefined ? null : graphToJson(graph, local)];
      }),
    ),
    ...(reports.length === 0
      ? {}
      : {
          why: Object.fromEntries(
            graphNames.flatMap((name) => {
              const report = reports.find(({ id }) => id === graphs[name]?.id);
              return report === undefined ? [] : [[name, report.sentences] as const];
            }),
          ),
        }),
  };
}

function searchedLines({ machine, local, graphs, reports, steps }: Searched, all: readonly Searched[]): string[] {
  const paint = colorsFor(process.stdout);
  const several = all.some((other) => other.machine !== machine);
  const lines = all.length > 1 ? [paint.bold(`${several ? `${machine}: ` : ''}ranks ${local.ranks.join(' ')}`)] : [];
  for (const name of graphNames) {
    const graph = graphs[name];
    if (graph === undefined) continue;
    const [header = '', ...channels] = graphLines(graph, local);
    lines.push(`${paint.bold(header)}  ${paint.dim(`# ${name}`)}`, ...channels);
    const report = reports.find(({ id }) => id === graph.id);
    lines.push(...(report?.sentences.map((sentence) => paint.dim(`    ${sentence}`)) ?? []));
    const listed = steps.find(({ id }) => id === graph.id);
    lines.push(...(listed?.lines.map((line) => paint.dim(`    ${line}`)) ?? []));
    if (listed !== undefined && listed.more > 0)
      lines.push(paint.dim(`    and ${counted(listed.more, 'line')} more (--steps all)`));
  }
  const names = local.system.gpus.map((gpu) => `${gpu.rank} ${nodeName(gpu)}`);
  lines.push(paint.dim(`Ranks: ${names.join(', ')}`));
  return lines;
}

/** The channels through all ranks in the form of NCCL's log, with the trees of some ranks. */
function channelsLines(plan: Plan, { ranks, whole = false }: GraphOptions, report: readonly string[]): string[] {
  const paint = colorsFor(process.stdout);
  const { nRanks } = plan.nodes;
  const firstHost = Array.from({ length: plan.hosts[0]?.host.nRanks ?? 0 }, (_, rank) => rank);
  return [
    paint.bold(`${counted(nRanks, 'rank')} on ${counted(plan.nodes.nNodes, 'node')}`),
    ...report.map((sentence) => paint.dim(`    ${sentence}`)),
    ...ringLines(plan, { whole }),
    ...(ranks === undefined ? firstHost : rankList(ranks, nRanks)).map((rank) => treesLine(plan, rank, { whole })),
    ...nvlsHeadLines(plan),
    channelCountLine(plan),
  ];
}

/** `0-7,64`, or `all`. */
function rankList(text: string, nRanks: number): number[] {
  if (text === 'all') return Array.from({ length: nRanks }, (_, rank) => rank);
  return text.split(',').flatMap((part) => {
    const [, first = '', last = first] = /^\s*(\d+)(?:-(\d+))?\s*$/.exec(part) ?? [];
    const from = Number(first);
    const to = Number(last);
    if (first === '' || to < from || to >= nRanks) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `--ranks '${text}' must be all, or ranks from 0 to ${nRanks - 1} as in 0-7,12`,
      );
    }
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  });
}
