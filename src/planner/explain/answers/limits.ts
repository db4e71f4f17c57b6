import { counted } from '../../../counted.js';
import { GraphId } from '../../graph/graph.js';
import type { Collective } from '../../tuning/names.js';
import { choose } from '../../tuning/choose.js';
import { formatBytes, formatRate, formatTime, formatWay, predictedWay } from '../../plan/overview/format.js';
import type { ScheduledCollective } from '../../schedule/schedule.js';
import { timeShares } from '../../simulate/shares.js';
import { linkKindNames } from '../../plan/overview/fullest-link.js';
import { heldBackText, ringUse } from '../../plan/overview/ring-use.js';
import type { Plan } from '../../plan/plan.js';
import type { PredictedRow } from '../../plan/prediction.js';
import type { Draft } from '../answer.js';
import { type NodeView, nodeViews, predicted, searchOf, simulatorFor, type Situation } from '../situation.js';
import { rate } from '../format.js';
import { boundText } from './bandwidth.js';
import { answerPairChannels } from './pairs.js';
import { hindrances } from './use.js';
import { limitOf } from './choice.js';
import { carriedGBps } from '../../topology/system.js';

/** A size at which bandwidth decides. */
const LARGE_BYTES = 2 ** 30;

/** Explains the bounds on large calls: the links of the machine, then the rules of NCCL's model. */
export function answerLimits(situation: Situation, collective: Collective = 'AllReduce'): Draft {
  const { plan, tuning } = situation;
  const { ring } = plan.graphs;
  const views = nodeViews(situation);
  const chosen = choose(tuning, collective, LARGE_BYTES);
  const limit = chosen === undefined || plan.nodes.nRanks === 1 ? undefined : limitOf(tuning, collective, chosen);
  const speed = plan.nodes.nNodes > 1 ? ring.bwInter : ring.bwIntra;
  const nRings = new Set(plan.ringOfChannel).size;
  const totals = views.map(({ kind, local }) => ringUse(plan, kind, local).searchedGBps);
  const slowest = Math.max(...totals) > Math.min(...totals) ? views[totals.indexOf(Math.min(...totals))] : undefined;
  return {
    title: `${counted(nRings, 'ring')} of ${rate(speed)}`,
    sentences: [
      `${counted(nRings, 'ring')} of ${rate(speed)} ${nRings === 1 ? 'carries' : 'carry'} ${rate(nRings * speed)} in all${plan.nodes.nNodes > 1 ? ' out of each node' : ''}.`,
      ...(slowest === undefined ? [] : [`All nodes go by the weakest: ${slowest.name}.`]),
      ...views.flatMap((view) => ofNode(plan, view, views.length > 1)),
      ...(chosen === undefined || limit === undefined
        ? []
        : [
            `${collective} of ${formatBytes(LARGE_BYTES)} goes by ${formatWay(chosen)} at ${rate(chosen.busGBps)} bus bandwidth: ${limit}.`,
          ]),
      ...hindrances(situation),
    ],
    evidence: {
      rings: nRings,
      ringGBps: speed,
      totalGBps: nRings * speed,
      [collective === 'AllReduce' ? 'allReduce' : collective]:
        chosen === undefined
          ? null
          : {
              bytes: LARGE_BYTES,
              algorithm: chosen.algorithm,
              protocol: chosen.protocol,
              busGBps: chosen.busGBps,
              limit: tuning.model[collective][chosen.algorithm][chosen.protocol].limit,
            },
      nodes: views.map((view) => ({
        name: view.name,
        bestPathGBps: view.local.maxGBps,
        gpuTotalGBps: view.local.totalGBps,
        nicsGBps: nicsGBps(view),
        loads: ringUse(plan, view.kind, view.local).loads.map((load) => ({ ...load })),
      })),
    },
  };
}

function takenText(row: PredictedRow): string {
  const { choice } = row;
  if (choice !== undefined) return `NCCL takes ${formatWay(choice)} and believes ${formatTime(choice.timeUs)}`;
  const way = predictedWay(row);
  return way === undefined ? 'NCCL itself has no model of it' : `NCCL takes ${way}`;
}

/** Explains the limits of one call by the parts of its simulated time. */
export function answerCallLimits(situation: Situation, collective: ScheduledCollective, bytes: number): Draft {
  const { plan, simulated: environment } = situation;
  const row = predicted(situation, collective, bytes);
  const call = `${collective} of ${formatBytes(bytes)}`;
  if (row === undefined)
    return { title: `${call} is limited by nothing`, sentences: ['There is one rank.'], evidence: { collective, bytes } };
  const shares = timeShares(simulatorFor(situation), collective, bytes, { environment, onWindows: true });
  const [most] = shares;
  return {
    title: most === undefined ? `${call} is limited by nothing` : `${call} is limited by ${most.what}`,
    sentences: [
      `It takes ${formatTime(row.timeUs)} by the simulation, ${formatRate(row.busGBps)} GB/s of bus bandwidth; ${takenText(row)}.`,
      `The time goes to: ${shares.map(({ what, part }) => `${what} ${(100 * part).toFixed(0)} %`).join(', ')}.`,
      ...(predictedWay(row) === undefined ? answerPairChannels(situation, undefined).sentences.slice(0, 2) : []),
      ...boundText(situation, row),
      ...hindrances(situation),
    ],
    evidence: {
      collective,
      bytes,
      predictedUs: row.timeUs,
      busGBps: row.busGBps,
      shares: shares.map(({ what, part }) => ({ what, part })),
      nChannels: plan.p2p.nChannels,
      channelsPerPeer: plan.p2p.channelsPerPeer,
    },
  };
}

function ofNode(plan: Plan, view: NodeView, several: boolean): string[] {
  const { local, kind } = view;
  const prefix = several ? `${view.name}: ` : '';
  const record = searchOf(view, GraphId.RING);
  if (record?.simpleOrder === true) return [`${prefix}No ring was found at any speed; NCCL counts its last resort as 0.1 GB/s.`];
  if (local.system.gpus.length === 1 && !local.inter) return [`${prefix}There is one GPU, so nothing is exchanged.`];
  const use = ringUse(plan, kind, local);
  const sentences = use.loads
    .slice(0, 2)
    .map(
      ({ kind, count: links, usedGBps, gbps }, place) =>
        `${prefix}${place === 0 ? 'Fullest are' : 'Then come'} ${linkKindNames[kind]}: rings take ${rate(usedGBps)} of ${rate(gbps)} (${Math.round((100 * usedGBps) / gbps)} %) on ${links} of them.`,
    );
  if (use.heldBackBy !== undefined)
    sentences.push(`${prefix}Its search found rings for ${rate(use.searchedGBps)}, but ${heldBackText(use)}.`);
  if (local.inter) {
    const nics = local.system.nets.length;
    const ports = nicsGBps(view);
    const rings = use.ringGBps;
    sentences.push(
      `${prefix}Its ${counted(nics, 'NIC')} ${nics === 1 ? 'moves' : 'move'} ${rate(ports)} together, of which rings use ${rate(rings)}${rings > 0 && rings < 0.9 * ports ? `: ${Math.round((100 * (ports - rings)) / ports)} % lies idle` : ''}.`,
    );
  }
  sentences.push(
    `${prefix}The best path ${local.inter ? 'between a GPU and a NIC' : 'between GPUs'} carries ${rate(local.maxGBps)}, and a GPU moves ${rate(local.totalGBps)} over its links in all.`,
  );
  return sentences;
}

/** Bandwidth of all network devices of a node; ports that share a card's link may carry less. */
function nicsGBps({ local }: NodeView): number {
  return Number(carriedGBps(local.system.nets).toFixed(3));
}
