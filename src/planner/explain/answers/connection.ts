import { ringNeighbours } from '../../graph/merge/links.js';
import type { NoP2pReason } from '../../graph/transports/connection.js';
import { NodeTransports } from '../../graph/transports/node-transports.js';
import { NodeType, PathType, pathTypeNames } from '../../topology/types.js';
import type { Draft } from '../answer.js';
import { type Situation, viewOf } from '../situation.js';
import { rate } from '../format.js';
import { gpuOf, networkUse, refuseRank } from './nic.js';

/** Explains the transport between two ranks. */
export function answerConnection(situation: Situation, from: number, to: number): Draft {
  refuseRank(situation, from);
  refuseRank(situation, to);
  const { plan, parameters } = situation;
  const { nodes } = plan;
  const [fromNode = 0, toNode = 0] = [nodes.rankToNode[from], nodes.rankToNode[to]];
  const neighbours = Array.from({ length: Math.min(plan.nChannels, plan.graphs.ring.nChannels) }, (_, channel) => channel).filter(
    (channel) => ringNeighbours(plan, channel, from).next === to,
  );
  const rings =
    neighbours.length === 0
      ? `No ring has rank ${to} right after rank ${from}.`
      : `Rank ${to} follows rank ${from} in ring ${neighbours.join(' ')}.`;
  const answer = (via: string, sentences: readonly string[], more: Draft['evidence'] = {}): Draft => ({
    title: `${from} to ${to}: ${via}`,
    sentences: [...sentences, rings],
    evidence: { from, to, via, rings: neighbours, ...more },
  });
  if (from === to) return answer('itself', [`Rank ${from} is the same as rank ${to}.`]);

  if (nodes.rankBase[fromNode] !== nodes.rankBase[toNode]) {
    const use = networkUse(situation, from).find(({ connection }) => connection.peer === to);
    const how =
      use === undefined
        ? ''
        : `, here NIC ${use.connection.dev}${use.connection.relay === undefined ? '' : ` by way of rank ${use.connection.relay} (PXN)`}`;
    return answer('NET', [`Ranks ${from} and ${to} are on different hosts, so the network joins them${how}.`]);
  }
  const view = viewOf(situation, fromNode);
  const base = nodes.rankBase[fromNode] ?? 0;
  const found = new NodeTransports(view.local, parameters).between(from - base, to - base);
  const { paths } = view.local;
  const gpus = [gpuOf(situation, view, from), view.local.system.gpus.findIndex((gpu) => gpu.rank === to - base)] as const;
  const path = gpus[1] < 0 ? undefined : paths.between(NodeType.GPU, gpus[0], NodeType.GPU, gpus[1]);
  const distance = path === undefined ? null : (pathTypeNames[paths.type[path] ?? PathType.DIS] ?? null);
  const gbps = path === undefined ? null : Number((paths.bandwidthGBps[path] ?? 0).toFixed(3));
  const apart = distance === null || gbps === null ? [] : [`Their GPUs are ${distance} apart, ${rate(gbps)}.`];
  switch (found.via) {
    case 'P2P':
      return answer(
        'P2P',
        [
          `Rank ${from} copies to rank ${to} peer-to-peer${found.relay === undefined ? '' : `, by way of the GPU of rank ${base + found.relay}`}: ${found.read ? 'the receiver reads' : 'the sender writes'}.`,
          ...apart,
        ],
        { distance, gbps },
      );
    case 'SHM':
      return answer(
        'SHM',
        [`Ranks ${from} and ${to} exchange through memory of the host, because ${noP2p(found.reason)}.`, ...apart],
        { distance, gbps, because: found.reason.why },
      );
    case 'none':
      return answer(
        'nothing',
        [
          `NCCL finds no transport from rank ${from} to rank ${to} and fails as soon as it connects them: ${noP2p(found.reason)}, shared memory is off (NCCL_SHM_DISABLE), and on one node NCCL takes the network only where it is faster.`,
          ...apart,
        ],
        { distance, gbps, because: found.reason.why },
      );
    case 'NET': {
      const why =
        found.reason.why === 'faster'
          ? 'both GPUs reach a NIC faster than each other (NCCL_NET_DISABLE_INTRA=1 would forbid it)'
          : `shared memory is off or does not reach, and ${noP2p(found.reason.noP2p)}`;
      return answer('NET', [`Ranks ${from} and ${to} use the network although they are on one host, because ${why}.`, ...apart], {
        distance,
        gbps,
        because: found.reason.why,
      });
    }
  }
}

function noP2p(reason: NoP2pReason): string {
  switch (reason.why) {
    case 'far':
      return `their path, ${pathTypeNames[reason.distance]}, is farther than peer-to-peer goes (${pathTypeNames[reason.level]}; NCCL_P2P_LEVEL, NCCL_P2P_DISABLE)`;
    case 'copy-engine':
      return 'copy engines do not copy by way of a third GPU (NCCL_P2P_USE_CUDA_MEMCPY=1)';
    case 'driver':
      return 'the driver refuses peer-to-peer';
    case 'other-node':
      return 'NCCL counts them as two nodes and knows no path between them any more';
  }
}
