import { counted } from '../../../counted.js';
import { TcclError } from '../../../errors.js';
import { formatBytes, formatRate, formatTime, formatWay } from '../../plan/overview/format.js';
import type { ScheduledCollective } from '../../schedule/schedule.js';
import type { Draft } from '../answer.js';
import { rate } from '../format.js';
import { nodeViews, predicted, type Situation, situationWith } from '../situation.js';
import { nicsOf } from './bandwidth.js';

/** Numbers of nodes that are tried. */
const usualNodes = [1, 2, 4, 8, 16, 32, 64, 128];
const USUAL_BYTES = 2 ** 30;
const USUAL_MOST = 16;
/** More nodes take long to simulate. */
const MOST_NODES = 128;

/** Gives time and bandwidth of a call by the number of nodes, and what bounds it on one node and on several. */
export function answerScaling(
  situation: Situation,
  collective: ScheduledCollective = 'AllReduce',
  bytes: number = USUAL_BYTES,
  asked: number | undefined,
): Draft {
  const [host, ...others] = situation.cluster.hosts;
  const own = host?.count ?? 1;
  if (others.length > 0)
    return {
      title: 'the cluster has several kinds of hosts',
      sentences: ['Scaling is tried with more hosts of one kind: name one machine, as dgx-h100.'],
      evidence: { collective, bytes, rows: [] },
    };
  const most = Math.min(MOST_NODES, Math.max(asked ?? Math.max(own, USUAL_MOST), 2));
  const counts = [...new Set([...usualNodes.filter((count) => count <= most), own, most])].filter((count) => count <= MOST_NODES);
  const rows = counts
    .sort((a, b) => a - b)
    .flatMap((count) => {
      try {
        const there = count === own ? situation : situationWith(situation, [{ kind: 'nodes', count }]);
        const row = predicted(there, collective, bytes);
        return row === undefined ? [] : [{ count, there, row }];
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
  return {
    title: `${collective} of ${formatBytes(bytes)}: ${formatRate(first.row.busGBps)} GB/s on ${counted(first.count, 'node')}, ${formatRate(last.row.busGBps)} on ${last.count}`,
    sentences: [
      ...rows.map(
        ({ count, row }) =>
          `${counted(count, 'node')}: ${formatTime(row.timeUs)}, ${formatRate(row.busGBps)} GB/s of bus bandwidth${row.choice === undefined ? '' : ` by ${formatWay(row.choice)}`}.`,
      ),
      ...causes(first.there, last.there, collective),
    ],
    evidence: {
      collective,
      bytes,
      rows: rows.map(({ count, row }) => ({
        nodes: count,
        timeUs: row.timeUs,
        busGBps: row.busGBps,
        way: row.choice === undefined ? 'pairs' : formatWay(row.choice),
      })),
    },
  };
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
