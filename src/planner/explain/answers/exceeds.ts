import { formatBytes, formatRate, formatWay } from '../../plan/overview/format.js';
import { scheduledBusFactor } from '../../plan/prediction.js';
import type { ScheduledCollective } from '../../schedule/schedule.js';
import type { Collective } from '../../tuning/names.js';
import type { Draft } from '../answer.js';
import { rate } from '../format.js';
import { nodeViews, predicted, type Situation } from '../situation.js';
import { expectedRow, isModelled, nicsOf } from './bandwidth.js';

/** Sizes at which bus bandwidth is compared with the NICs. */
const sizes: readonly number[] = [2 ** 25, 2 ** 28, 2 ** 30, 2 ** 32, 2 ** 34];

/** Explains how bus bandwidth passes the speed of the NICs, or that it does not. */
export function answerExceeds(
  situation: Situation,
  collective: ScheduledCollective = 'AllReduce',
  asked: readonly number[] = [],
): Draft {
  const { plan } = situation;
  const { nNodes } = plan.nodes;
  if (nNodes === 1) return withinNode(situation, isModelled(collective) ? collective : 'AllReduce');
  const nics = nodeViews(situation).map(nicsOf);
  const weakest = nics.reduce((least, each) => (each.gbps < least.gbps ? each : least), nics[0] ?? { count: 0, gbps: 0 });
  return isModelled(collective)
    ? ofCollective(situation, collective, weakest.gbps, asked)
    : ofPairs(situation, collective, weakest);
}

/** On one node: NVLink SHARP passes the speed of NVLinks, and nothing else does. */
function withinNode(situation: Situation, collective: Collective): Draft {
  const { nRanks } = situation.plan.nodes;
  const rows = sizes.flatMap((bytes) => {
    const row = predicted(situation, collective, bytes);
    return row?.choice === undefined ? [] : [{ ...row, choice: row.choice }];
  });
  const [best] = [...rows].sort((a, b) => b.busGBps - a.busGBps);
  const links = Math.min(...nodeViews(situation).map(({ local }) => local.totalGBps));
  const factor = scheduledBusFactor(collective, nRanks);
  if (best === undefined)
    return { title: 'one rank exchanges nothing', sentences: ['There is one rank.'], evidence: { nNodes: 1, nRanks } };
  const ring = expectedRow(situation, collective, best.bytes, { algorithm: 'Ring' });
  const isAbove = best.busGBps > 1.02 * links;
  return {
    title: isAbove
      ? `${formatWay(best.choice)} sends each byte once; bus bandwidth counts ${formatFactor(factor)} times the size`
      : `no: bus bandwidth of ${collective} stays below the links of the GPUs here`,
    sentences: [
      `${collective} of ${formatBytes(best.bytes)} reaches ${formatRate(best.busGBps)} GB/s of bus bandwidth by ${formatWay(best.choice)}, ${formatRate(best.busGBps / factor)} GB/s of algbw; NCCL counts ${rate(links)} for the links of a GPU. Nothing goes over the network.`,
      'With NVLink SHARP the NVSwitch adds and copies: each GPU sends and receives about its data once, where a ring takes 2 (n - 1) / n times. Bus bandwidth counts as for a ring, so it can pass the speed of the NVLinks (450 GB/s each way of an H100, sold as 900).',
      ...(ring === undefined
        ? []
        : [`NCCL_ALGO=Ring measures the links: ${formatRate(ring.busGBps)} GB/s are to be expected of it.`]),
    ],
    evidence: {
      nNodes: 1,
      nRanks,
      collective,
      linksGBps: links,
      busFactor: factor,
      busGBps: best.busGBps,
      way: formatWay(best.choice),
    },
  };
}

function ofCollective(situation: Situation, collective: ScheduledCollective, nicsGBps: number, asked: readonly number[]): Draft {
  const { nNodes, nRanks } = situation.plan.nodes;
  const rows = [...asked, ...sizes].flatMap((bytes) => {
    const row = predicted(situation, collective, bytes);
    return row?.choice === undefined ? [] : [{ ...row, choice: row.choice }];
  });
  const above = rows.filter(({ busGBps }) => busGBps > 1.02 * nicsGBps);
  const [first] = [...above].sort((a, b) => b.busGBps - a.busGBps);
  const factor = scheduledBusFactor(collective, nRanks);
  const evidence = {
    collective,
    nNodes,
    nicsGBps,
    busFactor: factor,
    rows: rows.map(({ bytes, busGBps, choice }) => ({ bytes, busGBps, way: formatWay(choice) })),
  };
  if (first === undefined) {
    const most = rows.reduce((best, row) => (row.busGBps > best.busGBps ? row : best), rows[0] ?? noRow);
    return {
      title: `no: bus bandwidth of ${collective} stays below the NICs here`,
      sentences: [
        `The NICs of a node carry ${rate(nicsGBps)} together; ${collective} reaches ${formatRate(most.busGBps)} GB/s at ${formatBytes(most.bytes)}.`,
        nNodes > 2
          ? 'A ring carries over the NICs what bus bandwidth counts. In a tree over more than two nodes, those in the middle send to two others, so it gains nothing either.'
          : 'NCCL takes Ring at large sizes here, and a ring carries over the NICs what bus bandwidth counts. With a tree over two nodes (NCCL_ALGO=Tree) it would be higher than the network.',
        'A measurement that is higher counts something else: another size of the call, GB instead of GiB, or NICs that NCCL does not see at their full speed, as bonds.',
      ],
      evidence,
    };
  }
  const { algorithm } = first.choice;
  const ring = expectedRow(situation, collective, first.bytes, { algorithm: 'Ring' });
  const isTree = algorithm === 'Tree' || algorithm === 'NVLSTree';
  return {
    title: `${formatWay(first.choice)} sends each byte over the network once; bus bandwidth counts ${formatFactor(factor)} times the size`,
    sentences: [
      `${collective} of ${formatBytes(first.bytes)} reaches ${formatRate(first.busGBps)} GB/s of bus bandwidth, where the NICs of a node carry ${rate(nicsGBps)} together.`,
      `Bus bandwidth is the size by the time, times 2 (n - 1) / n = ${formatFactor(factor)}: what each link of a ring carries.`,
      isTree
        ? `A tree over two nodes sends each byte only once in each direction between them, not ${formatFactor(factor)} times, so bus bandwidth can be up to twice what the network carries.`
        : `${algorithm} sends less over the network than a ring does.`,
      ...(ring === undefined
        ? []
        : [`NCCL_ALGO=Ring measures the network: ${formatRate(ring.busGBps)} GB/s are to be expected of it.`]),
      ...(nNodes === 2 ? ['From three nodes on this ends, because a node in the middle of a tree sends to two others.'] : []),
    ],
    evidence,
  };
}

/** Messages between pairs: those within a node cross no NIC. */
function ofPairs(
  situation: Situation,
  collective: ScheduledCollective,
  { count, gbps }: { readonly count: number; readonly gbps: number },
): Draft {
  const { nNodes, nRanks } = situation.plan.nodes;
  const bytes = 2 ** 30;
  const row = predicted(situation, collective, bytes);
  const local = nRanks / nNodes;
  const nicGBps = gbps / Math.max(1, local);
  const evidence = { collective, nNodes, nics: count, nicsGBps: gbps, busGBps: row?.busGBps ?? null };
  const busText =
    row === undefined
      ? ''
      : `${collective} of ${formatBytes(bytes)} reaches ${formatRate(row.busGBps)} GB/s of bus bandwidth here.`;
  if (collective !== 'AllToAll')
    return {
      title: `${collective} has the bandwidth of the slowest pair of ranks`,
      sentences: [busText, 'Pairs within a node exchange over NVLink or PCIe; those between nodes are bound by a NIC.'].filter(
        (text) => text !== '',
      ),
      evidence,
    };
  const part = (nNodes - 1) / nNodes;
  return {
    title: `${percent(1 - part)} of an all-to-all stay within the node`,
    sentences: [
      ...(busText === '' ? [] : [busText]),
      `Each rank sends to all others, and ${percent(part)} of these are on other nodes${nNodes === 2 ? ', half' : ''}: only that part goes over a NIC, the rest over NVLink or PCIe within the node.`,
      `So bus bandwidth can be N / (N - 1) = ${formatFactor(1 / part)} times the ${rate(nicGBps)} that a GPU has of the NICs: ${rate(nicGBps / part)} on ${nNodes} nodes. With more nodes it approaches the speed of the NIC.`,
    ],
    evidence,
  };
}

const noRow = { bytes: 0, busGBps: 0 };

function formatFactor(factor: number): string {
  return String(Number(factor.toPrecision(4)));
}

function percent(part: number): string {
  return `${Math.round(100 * part)} %`;
}
