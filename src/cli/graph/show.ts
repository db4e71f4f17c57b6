import { closeSync, openSync } from 'node:fs';
import { inFile, InvalidArgumentError, SystemError } from '../../errors.js';
import { graphNames, type HostGraphs } from '../../graph/graph.js';
import { graphToJson } from '../../graph/graph-json.js';
import { graphLines } from '../../graph/graph-text.js';
import { graphsToXml } from '../../graph/graph-xml.js';
import { refuseContradictions } from '../../graph/merge/contradictions.js';
import { channelCountLine, nvlsHeadLines, ringLines, treesLine } from '../../graph/merge/print.js';
import { describeMergeEvent } from '../../graph/merge/trace.js';
import { type GraphStory, StoryTeller } from '../../graph/story.js';
import { prepareCluster } from '../../plan/cluster.js';
import { type Plan, planPrepared } from '../../plan/plan.js';
import { planToJson } from '../../plan/plan-json.js';
import type { LocalSystem } from '../../topology/local-systems.js';
import { describeNote } from '../../topology/xml/notes.js';
import { type ParsedXml, parseXml } from '../../topology/xml/parse.js';
import { writeXml } from '../../topology/xml/write.js';
import { colorsFor } from '../output.js';
import { loadMachine, readBounded, readTopologyInput } from '../topo/input.js';
import { printNotes } from '../topo/show.js';

export interface GraphOptions {
  readonly nodes: string;
  readonly hardware?: string;
  readonly collnet?: boolean;
  readonly ranks?: string;
  readonly whole?: boolean;
  readonly followNccl?: boolean;
  readonly why?: boolean;
  readonly graphXml?: boolean;
  readonly json?: boolean;
}

/** Ranks of a machine that see the same of it, and their graphs. */
interface Searched {
  readonly local: LocalSystem;
  readonly graphs: HostGraphs;
  readonly stories: readonly GraphStory[];
}

/** `tccl graph`. */
export function showGraphs(name: string, options: GraphOptions): void {
  const count = nodeCount(options.nodes);
  const input = readTopologyInput(name);
  const machine = loadMachine(input, options.hardware);
  const parameters = options.collnet === true ? { ...machine.parameters, collnetEnable: 1 } : machine.parameters;
  if (options.followNccl !== true) refuseContradictions(parameters);
  const graphFile = readGraphFile(process.env['NCCL_GRAPH_FILE']);

  const tellers = new Map<string, StoryTeller>();
  const prepared = inFile(input.fileName, () => prepareCluster({ hosts: [{ machine: machine.system, count, name: machine.title }] }, parameters, {
    ...(graphFile === undefined ? {} : { graphFile }),
    ...(options.why === true ? { onSearch: (event, { ranks }) => {
      const teller = tellers.get(ranks.join()) ?? new StoryTeller();
      tellers.set(ranks.join(), teller);
      teller.listen(event);
    } } : {}),
  }));
  const mergeStory: string[] = [];
  const plan = inFile(input.fileName, () => planPrepared(prepared, parameters, {
    ...(options.why === true ? { onMerge: (event) => mergeStory.push(describeMergeEvent(event)) } : {}),
  }));
  const searched = prepared.flatMap(({ systems, host }) => systems.map((local, node): Searched[] => {
    const graphs = host.nodes[node]?.graphs;
    return graphs === undefined ? [] : [{ local, graphs, stories: tellers.get(local.ranks.join())?.stories ?? [] }];
  })).flat();

  if (options.json === true) {
    console.log(JSON.stringify({ nodes: searched.map(toJson), ...(options.why === true ? { why: mergeStory } : {}), plan: planToJson(plan) }));
  } else if (options.graphXml === true) {
    // NCCL dumps what rank 0 has found.
    for (const { local, graphs } of searched.slice(0, 1)) process.stdout.write(writeXml(graphsToXml(graphs, local)));
  } else {
    process.stdout.write([
      ...searched.map((each) => text(each, searched.length > 1)),
      channelsText(plan, options, mergeStory),
    ].join('\n'));
  }
  printNotes([...machine.notes, ...graphFile?.notes.map((note) => describeNote(note, graphFile.fileName)) ?? []]);
}

function nodeCount(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1 && count <= 1_000_000) return count;
  throw new InvalidArgumentError('ARGUMENT_RANGE', `--nodes '${text}' must be a whole number from 1 to 1000000`);
}

function readGraphFile(fileName: string | undefined): (ParsedXml & { readonly fileName: string }) | undefined {
  if (fileName === undefined || fileName === '') return undefined;
  let file: number;
  try {
    file = openSync(fileName, 'r');
  } catch (error) {
    throw new SystemError('FILE', `NCCL_GRAPH_FILE cannot be read: ${(error as Error).message}`, { file: fileName, cause: error });
  }
  try {
    return { fileName, ...parseXml(readBounded(file, fileName), { fileName }) };
  } finally {
    closeSync(file);
  }
}

function toJson({ local, graphs, stories }: Searched): object {
  return {
    ranks: local.ranks,
    graphs: Object.fromEntries(graphNames.map((name) => {
      const graph = graphs[name];
      return [name, graph === undefined ? null : graphToJson(graph, local)];
    })),
    ...(stories.length === 0 ? {} : {
      why: Object.fromEntries(graphNames.flatMap((name) => {
        const story = stories.find(({ id }) => id === graphs[name]?.id);
        return story === undefined ? [] : [[name, story.sentences] as const];
      })),
    }),
  };
}

function text({ local, graphs, stories }: Searched, isGroup: boolean): string {
  const paint = colorsFor(process.stdout);
  const lines = isGroup ? [paint.bold(`ranks ${local.ranks.join(' ')}`)] : [];
  for (const name of graphNames) {
    const graph = graphs[name];
    if (graph === undefined) continue;
    const [header = '', ...channels] = graphLines(graph, local);
    lines.push(`${paint.bold(header)}  ${paint.dim(`# ${name}`)}`, ...channels);
    const story = stories.find(({ id }) => id === graph.id);
    lines.push(...story?.sentences.map((sentence) => paint.dim(`    ${sentence}`)) ?? []);
  }
  return `${lines.join('\n')}\n`;
}

/** The channels through all ranks as NCCL writes them, with the trees of some ranks. */
function channelsText(plan: Plan, { ranks, whole = false }: GraphOptions, story: readonly string[]): string {
  const paint = colorsFor(process.stdout);
  const { nRanks } = plan.nodes;
  const firstHost = Array.from({ length: plan.hosts[0]?.host.nRanks ?? 0 }, (_, rank) => rank);
  const lines = [
    paint.bold(`${nRanks} ranks on ${plan.nodes.nNodes} nodes`),
    ...story.map((sentence) => paint.dim(`    ${sentence}`)),
    ...ringLines(plan, { whole }),
    ...(ranks === undefined ? firstHost : rankList(ranks, nRanks)).map((rank) => treesLine(plan, rank, { whole })),
    ...nvlsHeadLines(plan),
    channelCountLine(plan),
  ];
  return `${lines.join('\n')}\n`;
}

/** `0-7,64`, or `all`. */
function rankList(text: string, nRanks: number): number[] {
  if (text === 'all') return Array.from({ length: nRanks }, (_, rank) => rank);
  return text.split(',').flatMap((part) => {
    const [, first = '', last = first] = /^\s*(\d+)(?:-(\d+))?\s*$/.exec(part) ?? [];
    const from = Number(first);
    const to = Number(last);
    if (first === '' || to < from || to >= nRanks) {
      throw new InvalidArgumentError('ARGUMENT_RANGE', `--ranks '${text}' must be all, or ranks from 0 to ${nRanks - 1} as in 0-7,12`);
    }
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  });
}
