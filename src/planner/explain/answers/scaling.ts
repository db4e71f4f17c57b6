import { counted } from '../../../counted.js';
import { TcclError } from '../../../errors.js';
import { formatBytes, formatRate, formatTime, predictedWay } from '../../plan/overview/format.js';
import type { ScheduledCollective } from '../../schedule/schedule.js';
import type { Draft } from '../answer.js';
import { byWay, rate } from '../format.js';
import { scheduledBusFactor } from '../../plan/prediction.js';
import { named } from '../../plan/machine-edits.js';
import { describeCounterfactual, rootsOf } from '../counterfactual/apply.js';
import type { Counterfactual } from '../counterfactual/counterfactual.js';
import type { Measured, Variant } from '../grammar/question.js';
import { ringUse } from '../../plan/overview/ring-use.js';
import { pathTypeNames } from '../../topology/types.js';
import { nodeViews, predicted, type Situation, situationWith } from '../situation.js';
import { nicsOf } from './bandwidth.js';
import { answerJudge } from './judge.js';

/** Numbers of nodes that are tried. */
const usualNodes = [1, 2, 4, 8, 16, 32, 64, 128];
const USUAL_BYTES = 2 ** 30;
const SMALL_BYTES = 2 ** 23;
const USUAL_MOST = 16;
/** More nodes take long to simulate. */
const MOST_NODES = 128;

/** Subjects of comparison: up to a number of nodes, from a number on, numbers of GPUs, with and without a feature. */
export interface ScalingQuestion {
  readonly most?: number | undefined;
  readonly beyond?: { readonly of: 'nodes' | 'gpus'; readonly least: number } | undefined;
  readonly gpus?: readonly number[];
  readonly layouts?: readonly { readonly gpus: number; readonly nodes: number }[];
  readonly feature?: Counterfactual | undefined;
  /** Figures of layouts or algorithms, of this kind. */
  readonly variants?: readonly Variant[];
  readonly kind?: Measured['kind'] | undefined;
}

/** Gives time and bandwidth of a call by the number of nodes or GPUs, and what bounds it on one node and on several. */
export function answerScaling(
  situation: Situation,
  collective: ScheduledCollective = 'AllReduce',
  bytes: number = USUAL_BYTES,
  { most: asked, beyond, gpus = [], layouts = [], feature, variants = [], kind = 'bandwidth' }: ScalingQuestion,
): Draft {
  const [host, ...others] = situation.cluster.hosts;
  const own = host?.count ?? 1;
  if (others.length > 0)
    return {
      title: 'the cluster has several kinds of hosts',
      sentences: ['Scaling is tried with more hosts of one kind: name one machine, as dgx-h100.'],
      evidence: { collective, bytes, rows: [] },
    };
  if (variants.length > 1)
    return byLayout(
      situation,
      collective,
      bytes,
      variants.map(({ state, value }) => ({ name: variantName(state), changes: [state], measured: { kind, value } })),
    );
  if (layouts.length > 1)
    return byLayout(
      situation,
      collective,
      bytes,
      layouts.map(({ gpus: each, nodes }) => ({
        name: `${counted(nodes, 'node')} of ${counted(each, 'GPU')}`,
        changes: [
          { kind: 'gpus', count: each },
          { kind: 'nodes', count: nodes },
        ],
      })),
    );
  if (gpus.length > 1)
    return byLayout(
      situation,
      collective,
      bytes,
      gpus.map((count) => ({ name: counted(count, 'GPU'), changes: [{ kind: 'ranks', count }] })),
    );
  const perHost = Math.max(1, ...rootsOf(situation).map((root) => named(root, 'gpu').length));
  const from = beyond === undefined ? undefined : beyond.of === 'nodes' ? beyond.least : Math.ceil(beyond.least / perHost);
  const most = Math.min(
    MOST_NODES,
    Math.max(asked ?? (from === undefined ? Math.max(own, USUAL_MOST) : Math.max(own, 4 * from)), 2),
  );
  const counts =
    from === undefined
      ? [...new Set([...usualNodes.filter((count) => count <= most), own, most])]
      : [...new Set([1, from - 1, from, 2 * from, 4 * from, own])];
  const rows = counts
    .filter((count) => count >= 1 && count <= MOST_NODES)
    .sort((a, b) => a - b)
    .flatMap((count) => {
      try {
        const there = count === own ? situation : situationWith(situation, [{ kind: 'nodes', count }]);
        const row = predicted(there, collective, bytes);
        const without = feature === undefined ? undefined : predicted(situationWith(there, [feature]), collective, bytes);
        return row === undefined ? [] : [{ count, there, row, without }];
      } catch (error) {
        if (!(error instanceof TcclError)) throw error;
        return [];
      }
    });
  const [first] = rows;
  const last = rows.at(-1);
  if (first === undefined || last === undefined)
    return {
      title: 'there is nothing to exchange',
      sentences: ['One rank exchanges nothing.'],
      evidence: { collective, bytes, rows: [] },
    };
  const before = rows.find(({ count }) => count === (from ?? 0) - 1) ?? first;
  const behind = rows.find(({ count }) => count === from) ?? last;
  return {
    title: `${collective} of ${formatBytes(bytes)}: ${formatRate(before.row.busGBps)} GB/s on ${counted(before.count, 'node')}, ${formatRate(behind.row.busGBps)} on ${behind.count}`,
    sentences: [
      ...rows.map(({ count, row, without }) => {
        const other =
          feature === undefined || without === undefined
            ? ''
            : `; with ${describeCounterfactual(feature)} ${formatRate(without.busGBps)} GB/s${byWay(without)}`;
        return `${counted(count, 'node')}: ${formatTime(row.timeUs)}, ${formatRate(row.busGBps)} GB/s of bus bandwidth${byWay(row)}${other}.`;
      }),
      ...(bytes === USUAL_BYTES ? smallCalls(first, last, collective) : []),
      ...treesBeyondTwo(collective, last.count),
      ...causes(first.there, last.there, collective),
    ],
    evidence: {
      collective,
      bytes,
      rows: rows.map(({ count, row }) => ({
        nodes: count,
        timeUs: row.timeUs,
        busGBps: row.busGBps,
        way: predictedWay(row) ?? 'pairs',
      })),
    },
  };
}

function variantName(state: Counterfactual): string {
  return state.kind === 'ranks' ? counted(state.count, 'GPU') : describeCounterfactual(state);
}

/** A number of GPUs, or of GPUs and hosts, by its name. */
interface Layout {
  readonly name: string;
  readonly changes: readonly Counterfactual[];
  readonly measured?: Measured;
}

/** Bus bandwidth of layouts, with the rings that bound it. */
function byLayout(situation: Situation, collective: ScheduledCollective, bytes: number, layouts: readonly Layout[]): Draft {
  const rows = layouts.flatMap(({ name, changes, measured }) => {
    const there = situationWith(situation, changes, measured === undefined ? 'none' : 'all');
    const row = predicted(there, collective, bytes);
    if (row === undefined) return [];
    const judged = measured === undefined ? undefined : answerJudge(there, measured, collective, [], () => true);
    return [{ name, row, there, judged }];
  });
  const judged = rows.flatMap((row) => row.judged ?? []);
  // The lowest figure is the one that needs causes.
  const [lowest] = [...judged].sort((a, b) => Number(a.evidence.ratio) - Number(b.evidence.ratio));
  const [first] = rows;
  const last = rows.at(-1);
  return {
    title:
      first === undefined || last === undefined
        ? 'there is nothing to exchange'
        : lowest !== undefined
          ? rows.map(({ name, judged: own }) => `${name}: ${own?.title ?? ''}`).join('; ')
          : `${collective} of ${formatBytes(bytes)}: ${formatRate(first.row.busGBps)} GB/s of bus bandwidth on ${first.name}, ${formatRate(last.row.busGBps)} on ${last.name}`,
    sentences: [
      ...(lowest?.sentences ?? []),
      ...rows.map(({ name, row, there }) => {
        const { nRanks } = there.plan.nodes;
        return `${name}: ${formatTime(row.timeUs)}, ${formatRate(row.busGBps)} GB/s of busbw, ${formatRate(row.busGBps / scheduledBusFactor(collective, nRanks))} GB/s of algbw${byWay(row)}. ${ringsOf(there)}`;
      }),
      'Rings work side by side, each over its own links and NICs, so a layout with more links or NICs in use is faster; a ring is as fast as its slowest hop.',
      'busbw counts what a link carries, so it compares numbers of ranks; algbw falls with more ranks because the factor grows.',
    ],
    evidence: {
      collective,
      bytes,
      rows: rows.map(({ name, row, there }) => ({
        layout: name,
        timeUs: row.timeUs,
        busGBps: row.busGBps,
        channels: there.plan.nChannels,
      })),
    },
  };
}

function ringsOf(situation: Situation): string {
  const [view] = nodeViews(situation);
  if (view === undefined) return '';
  const { ring } = view.kind.graphs;
  const { ringGBps } = ringUse(situation.plan, view.kind, view.local);
  const nics = situation.plan.nodes.nNodes > 1 ? `, over ${counted(nicsOf(view).count, 'NIC')} of a node` : '';
  return `Rings: ${counted(ring.nChannels, 'channel')} of the search, ${rate(ringGBps)} in all, farthest GPUs ${pathTypeNames[ring.typeIntra]}${nics}.`;
}

interface Scaled {
  readonly count: number;
  readonly there: Situation;
}

/** A small call beside the large one: latency grows with nodes, and costs it most. */
function smallCalls(first: Scaled, last: Scaled, collective: ScheduledCollective): string[] {
  const [one, many] = [first, last].map(({ there }) => predicted(there, collective, SMALL_BYTES));
  return one === undefined || many === undefined || first.count === last.count
    ? []
    : [
        `${collective} of ${formatBytes(SMALL_BYTES)}: ${formatRate(one.busGBps)} GB/s on ${counted(first.count, 'node')}${byWay(one)}, ${formatRate(many.busGBps)} on ${last.count}${byWay(many)}.`,
      ];
}

/** Trees gain over rings on two nodes only. */
function treesBeyondTwo(collective: ScheduledCollective, nodes: number): string[] {
  return collective === 'AllReduce' && nodes > 2
    ? [
        'Trees, and NVLSTree between nodes, send each byte once between two nodes, where a ring sends it almost twice: bus bandwidth can pass the network there. From three nodes on a node in the middle of a tree sends to two others, so its NICs carry as much as in a ring, and the gain ends.',
      ]
    : [];
}

function causes(one: Situation, many: Situation, collective: ScheduledCollective): string[] {
  const [within] = nodeViews(one);
  const [view] = nodeViews(many);
  if (within === undefined || view === undefined || many.plan.nodes.nNodes === one.plan.nodes.nNodes) return [];
  const nics = nicsOf(view);
  const gpus = Math.max(1, view.local.system.gpus.length);
  const sentences =
    one.plan.nodes.nNodes === 1
      ? [
          `On one node only the links of the GPUs count, ${rate(within.local.totalGBps)} each. From two nodes on, all data that leave a node share its ${counted(nics.count, 'NIC')} of ${rate(nics.gbps)} together: ${rate(nics.gbps / gpus)} for each of its GPUs.`,
        ]
      : [];
  if (collective === 'AllToAll')
    sentences.push('Of an all-to-all over N nodes (N - 1) / N goes over the NICs: half on two nodes, almost all on many.');
  else if (collective !== 'SendRecv')
    sentences.push(
      'A ring takes two steps more for each further node, a tree one level for each doubling: this costs small calls most.',
    );
  return sentences;
}
