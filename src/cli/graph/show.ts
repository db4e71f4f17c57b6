import { closeSync, openSync } from 'node:fs';
import pc from 'picocolors';
import { inFile, InvalidArgumentError, SystemError } from '../../errors.js';
import { graphNames, type HostGraphs } from '../../graph/graph.js';
import { graphToJson } from '../../graph/graph-json.js';
import { graphLines } from '../../graph/graph-text.js';
import { graphsToXml } from '../../graph/graph-xml.js';
import { searchHost } from '../../graph/search-host.js';
import { type GraphStory, StoryTeller } from '../../graph/story.js';
import { type LocalSystem, localSystems } from '../../topology/local-systems.js';
import { describeNote } from '../../topology/xml/notes.js';
import { type ParsedXml, parseXml } from '../../topology/xml/parse.js';
import { writeXml } from '../../topology/xml/write.js';
import { loadMachine, readBounded, readTopologyInput } from '../topo/input.js';
import { printNotes } from '../topo/show.js';

export interface GraphOptions {
  readonly nodes: string;
  readonly hardware?: string;
  readonly collnet?: boolean;
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
  const nodes = nodeCount(options.nodes);
  const input = readTopologyInput(name);
  const machine = loadMachine(input, options.hardware);
  const graphFile = readGraphFile(process.env['NCCL_GRAPH_FILE']);
  const locals = inFile(input.fileName, () => localSystems(machine.system, machine.parameters, nodes * machine.system.gpus.length));
  const searched = locals.map((local): Searched => {
    const teller = options.why === true ? new StoryTeller() : undefined;
    const graphs = inFile(graphFile?.fileName ?? input.fileName, () => searchHost(local, machine.parameters, {
      collnet: options.collnet === true,
      ...(graphFile === undefined ? {} : { graphFile: graphFile.root }),
      ...(teller === undefined ? {} : { trace: teller.listen }),
    }));
    return { local, graphs, stories: teller?.stories ?? [] };
  });

  if (options.json === true) {
    console.log(JSON.stringify(searched.map(toJson), null, 1));
  } else if (options.graphXml === true) {
    // NCCL dumps what rank 0 has found.
    for (const { local, graphs } of searched.slice(0, 1)) process.stdout.write(writeXml(graphsToXml(graphs, local)));
  } else {
    process.stdout.write(searched.map((each) => text(each, searched.length > 1)).join('\n'));
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
  const paint = pc.createColors(process.stdout.isTTY);
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
