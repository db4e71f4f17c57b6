import { rulesOf } from '../../versions/rules.js';
import { GpuDirect, GdrMode } from '../../topology/paths/gdr.js';
import { Locality } from '../../topology/paths/locality.js';
import { NodeType, PathType, pathTypeNames } from '../../topology/types.js';
import type { Draft, Evidence } from '../answer.js';
import { type NodeView, nodeViews, type Situation, viewOf } from '../situation.js';
import { list, rate } from '../format.js';
import { gdrText, gpuOf, networkUse, refuseRank } from './nic.js';

/** Explains GPU Direct RDMA: the NICs that reach the memory of GPUs directly, and the reasons of the others. */
export function answerGdr(situation: Situation, rank: number | undefined): Draft {
  if (rank !== undefined) refuseRank(situation, rank);
  const { parameters } = situation;
  const views = rank === undefined ? nodeViews(situation) : [viewOf(situation, situation.plan.nodes.rankToNode[rank] ?? 0)];
  const overC2c = (parameters.netGdrC2c ?? rulesOf(parameters).netGdrC2c) !== 0;
  const level = parameters.netGdrLevel ?? (overC2c ? PathType.P2C : PathType.PXB);
  const decisions = views.flatMap((view) =>
    decisionsOf(situation, view, rank === undefined ? undefined : gpuOf(situation, view, rank)),
  );
  const refused = decisions.filter(({ mode }) => mode === GdrMode.DISABLED);
  const sentences =
    decisions.length === 0
      ? ['There is no NIC, so there is nothing to reach GPU memory.']
      : [
          refused.length === 0
            ? 'Each GPU sends and receives with GPU Direct RDMA over its own NIC.'
            : `${refused.length === decisions.length ? 'No' : 'Not every'} GPU has GPU Direct RDMA with its own NIC.`,
          ...grouped(decisions, views.length > 1),
          `NCCL_NET_GDR_LEVEL is ${parameters.netGdrLevel === undefined ? `not set, which means ${pathTypeNames[level]}` : pathTypeNames[level]}: farther paths go through the memory of the host.`,
        ];
  return {
    title: refused.length === 0 ? 'GPU Direct RDMA everywhere' : 'GPU Direct RDMA is missing',
    sentences,
    evidence: {
      level: pathTypeNames[level],
      decisions: decisions.map((each): Evidence => ({
        ...each,
        path: pathTypeNames[each.path],
        direct: each.mode !== GdrMode.DISABLED,
      })),
    },
  };
}

interface Decision {
  readonly machine: string;
  readonly gpu: number;
  readonly nic: number;
  readonly path: PathType;
  readonly gbps: number;
  readonly direction: 'read' | 'write';
  readonly mode: GdrMode;
  readonly reason: ReturnType<GpuDirect['decide']>['reason'];
}

function decisionsOf(
  { parameters }: Situation,
  { name, local: { system, paths } }: NodeView,
  only: number | undefined,
): Decision[] {
  if (system.nets.length === 0) return [];
  const locality = new Locality(system, paths, parameters);
  const direct = new GpuDirect(system, paths, locality, parameters);
  return system.gpus
    .filter(({ index }) => only === undefined || index === only)
    .flatMap((gpu) => {
      const net = locality.netOfGpu(gpu.index, 0);
      const path = paths.between(NodeType.GPU, gpu.index, NodeType.NET, net);
      return (['read', 'write'] as const).map((direction): Decision => ({
        machine: name,
        gpu: gpu.dev,
        nic: system.nets[net]?.dev ?? -1,
        direction,
        path: (paths.type[path] ?? PathType.DIS) as PathType,
        gbps: Number((paths.bandwidthGBps[path] ?? 0).toFixed(3)),
        ...direct.decide(gpu.index, net, direction),
      }));
    });
}

/** GPUs with the same decision in one sentence. */
function grouped(decisions: readonly Decision[], several: boolean): string[] {
  const groups = new Map<string, { readonly first: Decision; readonly gpus: Set<number>; readonly directions: Set<string> }>();
  for (const each of decisions) {
    const key = [each.machine, each.path, each.gbps, each.mode, each.reason].join();
    const group = groups.get(key) ?? { first: each, gpus: new Set<number>(), directions: new Set<string>() };
    groups.set(key, group);
    group.gpus.add(each.gpu);
    group.directions.add(each.direction === 'read' ? 'sends' : 'receives');
  }
  return [...groups.values()].map(
    ({ first, gpus, directions }) =>
      `${several ? `${first.machine}: ` : ''}GPU ${list([...gpus].map(String))} (NIC at ${pathTypeNames[first.path]}, ${rate(first.gbps)}): ${list([...directions])} ${gdrText(first.mode, first.reason)}.`,
  );
}

/** Explains PXN: the GPUs that reach their NIC through another GPU. */
export function answerPxn(situation: Situation): Draft {
  const { parameters, plan } = situation;
  const views = nodeViews(situation);
  const paths = views.flatMap(({ name, local: { system, paths: all } }) =>
    system.gpus.map((gpu) => ({
      machine: name,
      gpu: gpu.dev,
      relayed: system.nets
        .filter((net) => all.type[all.between(NodeType.GPU, gpu.index, NodeType.NET, net.index)] === PathType.PXN)
        .map(({ dev }) => dev),
    })),
  );
  const withPxn = paths.filter(({ relayed }) => relayed.length > 0);
  const uses = views.flatMap((view) =>
    view.kind.ranks.flatMap((local) => {
      const rank = (plan.nodes.rankBase[view.node] ?? 0) + local;
      return networkUse(situation, rank)
        .filter(({ connection }) => connection.relay !== undefined)
        .map(({ graph, channel, connection }) => ({ rank, graph, channel, nic: connection.dev, relay: connection.relay ?? -1 }));
    }),
  );
  const sentences: string[] = [];
  if (parameters.pxnDisable === 1) sentences.push('NCCL_PXN_DISABLE=1: no GPU reaches a NIC by way of another.');
  else if (withPxn.length === 0)
    sentences.push(
      'No GPU reaches a NIC by way of another: that takes NVLink to a GPU that is nearer to the NIC (at most PXB), and a direct path that is worse.',
    );
  else {
    sentences.push(
      `${withPxn.length} of ${paths.length} GPUs reach other NICs than their own by way of a GPU that is near to these, over NVLink: the path counts as PXN, nearer than PHB and SYS, and the port is reached at full speed.`,
    );
    sentences.push(
      `So channels may leave the node by any NIC whatever GPU they end at; without it (NCCL_PXN_DISABLE=1) these paths would cross CPUs.`,
    );
  }
  sentences.push(
    uses.length === 0
      ? 'Rings and trees of the plan do not need it: each leaves the node at a GPU that is near to the NIC. Send and receive (all-to-all) use it, so that traffic stays on its rail.'
      : `Rings and trees use it ${uses.length} times in each such node, first: rank ${uses[0]?.rank ?? 0} sends over NIC ${uses[0]?.nic ?? 0} by way of rank ${uses[0]?.relay ?? 0} (${uses[0]?.graph ?? 'ring'} ${uses[0]?.channel ?? 0}).`,
  );
  return {
    title: withPxn.length === 0 ? 'no PXN' : 'PXN',
    sentences,
    evidence: { disabled: parameters.pxnDisable === 1, gpus: withPxn, uses },
  };
}
