import { type ChannelGraph, CrossNic, graphNames, Pattern } from '../../graph/graph.js';
import type { NodeContribution } from '../../graph/merge/contribution.js';
import { Transports } from '../../graph/transports/transports.js';
import { defaultParameters, type Parameters, parameterTable } from '../../parameters.js';
import type { Environment } from '../../simulate/environment.js';
import type { LocalSystem } from '../../topology/local-systems.js';
import { systemSummary } from '../../topology/summary.js';
import { formatGBps } from '../../topology/format.js';
import { choiceOf } from '../../tuning/choose.js';
import { algorithms, collectives, protocols } from '../../tuning/names.js';
import { describeReason } from '../../tuning/reasons.js';
import { windowsText } from '../../tuning/symmetric/reasons.js';
import { type Model, tune, type Tuning } from '../../tuning/tune.js';
import { summarizeConnections } from '../overview/connections.js';
import { formatBytes } from '../overview/format.js';
import type { Plan } from '../plan.js';
import { pathTypeNames } from '../../topology/types.js';
import { type Cost, costs } from './cost.js';

/** One of two plans that are compared. */
export interface Side {
  readonly title: string;
  readonly plan: Plan;
  /** The machine that each kind of node sees; undefined for a plan that was read from JSON. */
  readonly systems: ReadonlyMap<NodeContribution, LocalSystem> | undefined;
  /** Assumptions of simulations; the default if not given. */
  readonly simulated?: Environment;
}

/** Sections of a comparison, in the order of NCCL's decisions. */
export const sections = [
  'parameters',
  'hosts',
  'system',
  'graphs',
  'channels',
  'rings',
  'nvls',
  'transports',
  'tuning',
  'chunks',
] as const;
/** A part of a plan, as comparisons name it. */
export type Section = (typeof sections)[number];

/** One figure that differs, as text of a table. */
export interface Difference {
  readonly section: Section;
  readonly what: string;
  readonly a: string;
  readonly b: string;
}

/** Two plans, compared. A plain value. */
export interface Comparison {
  readonly titles: readonly [string, string];
  readonly differences: readonly Difference[];
  /** Costs of the differences, by collective and size: rows in which choice or time differ. */
  readonly costs: readonly Cost[];
  /** Parts that could not be compared, one sentence each. */
  readonly leftOut: readonly string[];
}

/**
 * All decisions that differ between two plans, in NCCL's order: the first is most likely the cause of the others.
 *
 * @param sizes at which times are compared, bytes
 */
export function comparePlans(a: Side, b: Side, sizes: readonly number[]): Comparison {
  const tunings = [tune(a.plan, a.plan.parameters), tune(b.plan, b.plan.parameters)] as const;
  const facts = [factsOf(a, tunings[0], sizes), factsOf(b, tunings[1], sizes)] as const;
  const keys = new Map([...facts[0], ...facts[1]].map(({ section, what }) => [`${section} ${what}`, { section, what }]));
  const valueIn = (side: readonly Fact[], section: Section, what: string) =>
    side.find((fact) => fact.section === section && fact.what === what)?.value ?? '-';
  const differences = [...keys.values()]
    .map(({ section, what }): Difference => ({
      section,
      what,
      a: valueIn(facts[0], section, what),
      b: valueIn(facts[1], section, what),
    }))
    .filter((each) => each.a !== each.b && !isNoDifference(each))
    .sort((one, other) => sections.indexOf(one.section) - sections.indexOf(other.section));
  const both = a.systems !== undefined && b.systems !== undefined;
  const unknown = new Set<Section>(['system', 'transports']);
  return {
    titles: [a.title, b.title],
    differences: differences.filter(({ section }) => both || !unknown.has(section)),
    costs: costs(...tunings, sizes),
    leftOut: both
      ? []
      : ['A plan from JSON does not hold its machines: links, transports, all-to-all and send/recv are not compared.'],
  };
}

/** True for candidates that neither side can use, and for chunks of a candidate that only one side can use. */
function isNoDifference({ section, a, b }: Difference): boolean {
  if (section === 'chunks') return a === '-' || b === '-';
  return section === 'tuning' && a.startsWith('no') && b.startsWith('no');
}

interface Fact {
  readonly section: Section;
  readonly what: string;
  readonly value: string;
}

function factsOf({ plan, systems }: Side, tuning: Tuning, sizes: readonly number[]): Fact[] {
  const { nodes, graphs, agreement } = plan;
  return [
    ...parameterFacts(plan.parameters),
    fact('hosts', 'hosts', plan.hosts.map(({ name, count }) => (count === 1 ? name : `${count} x ${name}`)).join(' + ')),
    fact('hosts', 'ranks', nodes.nRanks),
    fact('hosts', 'nodes', nodes.nNodes),
    fact(
      'hosts',
      'compute capability',
      agreement.minCompCap === agreement.maxCompCap
        ? agreement.minCompCap / 10
        : `${agreement.minCompCap / 10} to ${agreement.maxCompCap / 10}`,
    ),
    ...(systems === undefined ? [] : systemFacts(plan, systems)),
    ...graphNames.flatMap((name) => graphFacts(name, graphs[name])),
    fact('channels', 'channels', plan.nChannels),
    fact('channels', 'send and receive channels a peer', plan.p2p.channelsPerPeer),
    fact('channels', 'tree depth', plan.trees.depth),
    ...nodes.kinds.map((kind, index) => fact('rings', `rings of ${kindName(plan, index)}`, ringText(kind.graphs.ring))),
    fact('nvls', 'NVLS channels', plan.nvls?.nChannels ?? 0),
    fact('nvls', 'NVLS heads', plan.nvls?.nHeads ?? 0),
    fact('nvls', 'reduction in the network', plan.collnet === undefined ? 'no' : 'yes'),
    ...(systems === undefined ? [] : transportFacts(plan, systems)),
    ...tuningFacts(tuning),
    ...chunkFacts(tuning, sizes),
    fact('chunks', 'send and receive', formatBytes(plan.p2p.chunkBytes)),
  ];
}

function fact(section: Section, what: string, value: string | number): Fact {
  return { section, what, value: String(value) };
}

function parameterFacts(parameters: Parameters): Fact[] {
  const { windows } = parameters;
  const ofWindows = windows === 'none' ? [] : [fact('parameters', 'buffers in symmetric windows', windowsText(windows))];
  const ofVariables = parameterTable
    .filter(({ field }) => JSON.stringify(parameters[field]) !== JSON.stringify(defaultParameters[field]))
    .map(({ field, variable }) =>
      fact(
        'parameters',
        variable,
        typeof parameters[field] === 'object' ? JSON.stringify(parameters[field]) : String(parameters[field]),
      ),
    );
  return [...ofVariables, ...ofWindows];
}

function kindName(plan: Plan, kind: number): string {
  const own = plan.nodes.kinds[kind];
  const name = plan.hosts.find(({ host }) => own !== undefined && host.nodes.includes(own))?.name ?? '';
  // If both clusters have one kind of machine, these are compared whatever their names.
  return plan.nodes.kinds.length === 1 ? 'a node' : `${name} (kind ${kind})`;
}

function systemFacts(plan: Plan, systems: ReadonlyMap<NodeContribution, LocalSystem>): Fact[] {
  return plan.nodes.kinds.flatMap((kind, index) => {
    const local = systems.get(kind);
    if (local === undefined) return [];
    const name = kindName(plan, index);
    return [
      fact('system', `hardware of ${name}`, systemSummary(local.system)),
      fact('system', `best path ${local.inter ? 'GPU to NIC' : 'between GPUs'} in ${name}`, `${formatGBps(local.maxGBps)} GB/s`),
      fact('system', `links of a GPU in ${name}`, `${formatGBps(local.totalGBps)} GB/s`),
    ];
  });
}

function graphFacts(
  name: string,
  graph: Pick<ChannelGraph, 'nChannels' | 'bwIntra' | 'bwInter' | 'typeIntra' | 'typeInter' | 'pattern' | 'crossNic'>,
): Fact[] {
  const channels = fact('graphs', `${name}: channels`, graph.nChannels);
  if (graph.nChannels === 0) return [channels];
  return [
    channels,
    fact('graphs', `${name}: GB/s of all channels`, formatGBps(graph.nChannels * graph.bwInter)),
    fact('graphs', `${name}: GB/s within a node`, formatGBps(graph.bwIntra)),
    fact('graphs', `${name}: GB/s out of a node`, formatGBps(graph.bwInter)),
    fact('graphs', `${name}: farthest GPUs`, pathTypeNames[graph.typeIntra]),
    fact('graphs', `${name}: farthest NIC`, pathTypeNames[graph.typeInter]),
    fact('graphs', `${name}: NICs of a channel`, crossNicNames[graph.crossNic]),
    ...(name === 'tree' ? [fact('graphs', 'tree: pattern', graph.pattern === Pattern.TREE ? 'plain' : 'balanced')] : []),
  ];
}

const crossNicNames: Readonly<Record<CrossNic, string>> = {
  [CrossNic.NEVER]: 'one',
  [CrossNic.ALLOWED]: 'any two',
  [CrossNic.PAIRED]: 'pairs',
};

/** The first rings of a node, bounded. */
function ringText(ring: ChannelGraph): string {
  const rows = Array.from({ length: ring.nChannels }, (_, channel) =>
    [...ring.intra.subarray(channel * ring.gpuCount, (channel + 1) * ring.gpuCount)].join(' '),
  );
  const shown = [...new Set(rows)];
  return `${shown.length} different${shown.length === 0 ? '' : `: ${shown.join(' | ')}`}`;
}

function transportFacts(plan: Plan, systems: ReadonlyMap<NodeContribution, LocalSystem>): Fact[] {
  const summary = summarizeConnections(plan, new Transports(plan, systems, plan.parameters));
  const total = summary.p2p + summary.shm + summary.net;
  const share = (part: number, of = total) => (of === 0 ? 'none' : `${Math.round((100 * part) / of)} %`);
  return [
    fact(
      'transports',
      'peer-to-peer',
      `${share(summary.p2p)}${summary.p2pPaths.length === 0 ? '' : ` (${summary.p2pPaths.join(' ')})`}`,
    ),
    fact('transports', 'shared memory', share(summary.shm)),
    fact('transports', 'network', share(summary.net)),
    fact('transports', 'of these with GPU Direct RDMA', share(summary.gdr, summary.net)),
    fact('transports', 'of these by way of another GPU (PXN)', share(summary.pxn, summary.net)),
  ];
}

function tuningFacts({ model }: Tuning): Fact[] {
  return [...collectives]
    .reverse()
    .flatMap((collective) =>
      algorithms.flatMap((algorithm) =>
        protocols.map((protocol) =>
          fact('tuning', `${collective} ${algorithm} ${protocol}`, modelText(model[collective][algorithm][protocol])),
        ),
      ),
    );
}

function modelText({ bandwidthGBps, latencyUs, disabled: [reason] }: Model): string {
  if (reason !== undefined) return `no: ${describeReason(reason)}`;
  return bandwidthGBps === 0 ? 'no' : `${formatGBps(bandwidthGBps)} GB/s, ${formatGBps(latencyUs)} us`;
}

/** Chunks of every candidate of a call. They have no effect in NCCL's model, but on real times. */
function chunkFacts(tuning: Tuning, sizes: readonly number[]): Fact[] {
  return [...collectives]
    .reverse()
    .flatMap((collective) =>
      algorithms.flatMap((algorithm) =>
        protocols.flatMap((protocol) =>
          tuning.model[collective][algorithm][protocol].bandwidthGBps === 0
            ? []
            : fact(
                'chunks',
                `${collective} ${algorithm} ${protocol}`,
                chunkText(
                  sizes.map((bytes) => ({
                    bytes,
                    chunkBytes: choiceOf(tuning, collective, bytes, { algorithm, protocol, timeUs: 0 }).chunkBytes,
                  })),
                ),
              ),
        ),
      ),
    );
}

/** `32 KiB, 64 KiB from 4 MiB`. */
function chunkText(chunks: readonly { readonly bytes: number; readonly chunkBytes: number }[]): string {
  return chunks
    .filter(({ chunkBytes }, index) => chunkBytes !== chunks[index - 1]?.chunkBytes)
    .map(({ bytes, chunkBytes }, index) => `${formatBytes(chunkBytes)}${index === 0 ? '' : ` from ${formatBytes(bytes)}`}`)
    .join(', ');
}
