import { counted } from '../../../counted.js';
import { InvalidArgumentError } from '../../../errors.js';
import type { PlannedConnection, NetConnection } from '../../graph/transports/connection.js';
import { named } from '../../plan/machine-edits.js';
import { GdrMode, type GdrReason } from '../../topology/paths/gdr.js';
import { Locality } from '../../topology/paths/locality.js';
import { NodeType, PathType, pathTypeNames } from '../../topology/types.js';
import type { Draft } from '../answer.js';
import { type NodeView, type Situation, viewOf } from '../situation.js';
import { rootsOf } from '../counterfactual/apply.js';
import { list, rate } from '../format.js';

/** A NIC from a GPU's point of view. */
interface NicView {
  readonly dev: number;
  readonly path: PathType;
  readonly gbps: number;
  /** The channels of the search on which the rank sends or receives over it. */
  readonly channels: readonly number[];
}

/** Explains the choice of a GPU's NICs: distance, bandwidth, distribution of equals, other GPUs on the way. */
export function answerNic(
  situation: Situation,
  question: { readonly rank: number | undefined; readonly nic: number | undefined },
): Draft {
  const { plan } = situation;
  const asked = question.rank === undefined && question.nic !== undefined ? usersOfNic(situation, question.nic) : undefined;
  const rank = question.rank ?? rankOfNic(situation, question.nic) ?? 0;
  refuseRank(situation, rank);
  const view = viewOf(situation, plan.nodes.rankToNode[rank] ?? 0);
  const gpu = gpuOf(situation, view, rank);
  const nics = nicsOf(situation, view, rank, gpu);
  const { system } = view.local;
  const locality = new Locality(system, view.local.paths, situation.parameters);
  const nearest = system.nets.length === 0 ? [] : locality.netsOfGpu(gpu).map((net) => system.nets[net]?.dev ?? -1);
  const used = networkUse(situation, rank);
  const base = {
    rank,
    gpu: system.gpus[gpu]?.dev ?? -1,
    nearest,
    nics: nics.map((nic) => ({ nic: nic.dev, path: pathTypeNames[nic.path], gbps: nic.gbps, channels: nic.channels })),
  };

  const sentences: string[] = [...(asked?.sentences ?? [])];
  if (nics.length === 0) sentences.push(`${view.name} has no NIC.`);
  else {
    const [best] = nics.filter(({ dev }) => nearest.includes(dev));
    if (best !== undefined)
      sentences.push(
        `Nearest to GPU ${base.gpu} (rank ${rank}) ${nearest.length === 1 ? 'is' : 'are'} NIC ${list(nearest.map(String))}: ${pathTypeNames[best.path]}, ${rate(best.gbps)}.`,
      );
    sentences.push(...sharing(situation, view, gpu, nearest));
    sentences.push(...useSentences(rank, used, situation));
    sentences.push(...askedNic(question.nic, nics, nearest, base.gpu));
    sentences.push(...others(nics.filter(({ dev }) => !nearest.includes(dev) && dev !== question.nic)));
  }
  return { title: asked?.title ?? `NICs of GPU ${base.gpu} (rank ${rank})`, sentences, evidence: base };
}

/** A NIC of the first node: the ranks whose rings and trees use it, and causes outside the plan if it is idle all the same. */
function usersOfNic(situation: Situation, nic: number): Pick<Draft, 'title' | 'sentences'> {
  const { nNodes } = situation.plan.nodes;
  const view = viewOf(situation, 0);
  const users = view.kind.ranks.filter((rank) => networkUse(situation, rank).some(({ connection }) => connection.dev === nic));
  const said = nicText(situation, nic);
  if (nNodes === 1) return { title: `${said} is idle: there is one node`, sentences: [] };
  if (users.length > 0)
    return {
      title: `${said} is used by rank${users.length === 1 ? '' : 's'} ${list(users.map(String))}`,
      sentences: [
        'If its counters stand still all the same, the reason is outside the plan: the port is down or of another link layer, NCCL_IB_HCA leaves it out, or the job has ranks on one node only. The lines «NET/IB : Using» of the log list the NICs that NCCL found.',
      ],
    };
  const all = devsOf(view);
  const used = all.filter((dev) =>
    view.kind.ranks.some((rank) => networkUse(situation, rank).some(({ connection }) => connection.dev === dev)),
  );
  return {
    title: `${said} is idle: no ring or tree of ${view.name} uses it`,
    sentences: [`Rings and trees use NIC ${list(used.map(String))} of ${counted(all.length, 'NIC')}.`],
  };
}

/** @throws InvalidArgumentError where there is no such rank */
export function refuseRank({ plan }: Situation, rank: number): void {
  const { nRanks } = plan.nodes;
  if (rank >= nRanks)
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `no rank ${rank}: there are ranks 0 to ${nRanks - 1}; GPUs have the numbers of their ranks`,
    );
}

/** The GPU of a rank, by index in the system of its node. */
export function gpuOf({ plan }: Situation, view: NodeView, rank: number): number {
  const local = rank - (plan.nodes.rankBase[plan.nodes.rankToNode[rank] ?? 0] ?? 0);
  return view.local.system.gpus.findIndex((gpu) => gpu.rank === local);
}

function devsOf({ local: { system } }: NodeView): number[] {
  return system.nets.map(({ dev }) => dev).sort((a, b) => a - b);
}

/** `NIC 2 (mlx5_4)`. */
function nicText(situation: Situation, nic: number): string {
  const [machine] = rootsOf(situation);
  const nets = machine === undefined ? [] : named(machine, 'net');
  const name = nets.find(({ attributes }) => Number(attributes.get('dev')) === nic)?.attributes.get('name') ?? '';
  return `NIC ${nic}${name === '' || name.endsWith(`_${nic}`) ? '' : ` (${name})`}`;
}

/** The first rank that uses a NIC. */
function rankOfNic(situation: Situation, nic: number | undefined): number | undefined {
  if (nic === undefined) return undefined;
  const view = viewOf(situation, 0);
  if (!view.local.system.nets.some(({ dev }) => dev === nic)) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `no NIC ${nic} in ${view.name}: there are ${list(devsOf(view).map(String))}`,
    );
  }
  const found = view.kind.ranks.find((rank) => networkUse(situation, rank).some(({ connection }) => connection.dev === nic));
  return found ?? view.kind.ranks[0];
}

function nicsOf(situation: Situation, view: NodeView, rank: number, gpu: number): NicView[] {
  const { system, paths } = view.local;
  const used = networkUse(situation, rank);
  return system.nets.map((net) => {
    const path = paths.between(NodeType.GPU, gpu, NodeType.NET, net.index);
    return {
      dev: net.dev,
      path: (paths.type[path] ?? PathType.DIS) as PathType,
      gbps: Number((paths.bandwidthGBps[path] ?? 0).toFixed(3)),
      channels: [...new Set(used.filter(({ connection }) => connection.dev === net.dev).map(({ channel }) => channel))],
    };
  });
}

interface NetworkUse {
  readonly graph: 'ring' | 'tree';
  readonly direction: 'sends' | 'receives';
  readonly channel: number;
  readonly connection: NetConnection;
}

/** Traffic of a rank over the network, in rings and trees of the search. */
export function networkUse({ plan, transports }: Situation, rank: number): NetworkUse[] {
  const found: NetworkUse[] = [];
  const add = (
    graph: 'ring' | 'tree',
    direction: 'sends' | 'receives',
    channel: number,
    connection: PlannedConnection | undefined,
  ) => {
    if (connection?.via === 'NET') found.push({ graph, direction, channel, connection });
  };
  const searched = plan.graphs.ring.nChannels;
  for (let channel = 0; channel < Math.min(searched, plan.nChannels); channel++) {
    const { send, receive } = transports.ring(channel, rank);
    add('ring', 'sends', channel, send);
    add('ring', 'receives', channel, receive);
  }
  for (let channel = 0; channel < Math.min(2 * searched, plan.nChannels); channel++) {
    for (const [direction, word] of [
      ['send', 'sends'],
      ['receive', 'receives'],
    ] as const) {
      const { up, down } = transports.tree(channel, rank, direction);
      for (const connection of [up, ...down]) add('tree', word, channel, connection);
    }
  }
  return found;
}

/** GPUs that are equally near to several NICs take different ones. */
function sharing(situation: Situation, view: NodeView, gpu: number, nearest: readonly number[]): string[] {
  const { system, paths } = view.local;
  if (nearest.length < 2) return [];
  const locality = new Locality(system, paths, situation.parameters);
  const first = system.nets.find(({ dev }) => dev === nearest[0]);
  const gpus = first === undefined ? [] : locality.gpusOfNet(first.index);
  const own = [
    ...new Set(Array.from({ length: nearest.length }, (_, channel) => system.nets[locality.netOfGpu(gpu, channel)]?.dev ?? -1)),
  ];
  return [
    `${counted(gpus.length, 'GPU')} ${gpus.length === 1 ? 'shares' : 'share'} these ${nearest.length} NICs; NCCL deals them out by the number of the GPU, its bits mirrored where the NICs are a power of two, so this one begins with NIC ${list(own.map(String))} (NCCL_NETDEVS_POLICY).`,
  ];
}

function useSentences(rank: number, used: readonly NetworkUse[], { plan }: Situation): string[] {
  if (plan.nodes.nNodes === 1 && used.length === 0) return ['There is one node, so no channel uses a NIC.'];
  if (used.length === 0)
    return [`No ring or tree leaves the node at rank ${rank}: its data reaches the network by way of other GPUs.`];
  const byNic = new Map<number, NetworkUse[]>();
  for (const use of used) byNic.set(use.connection.dev, [...(byNic.get(use.connection.dev) ?? []), use]);
  return [...byNic].map(([dev, uses]) => {
    const of = (graph: 'ring' | 'tree') =>
      [...new Set(uses.filter((use) => use.graph === graph).map(({ channel }) => channel))].sort((a, b) => a - b);
    const where = (['ring', 'tree'] as const)
      .filter((graph) => of(graph).length > 0)
      .map((graph) => `${graph} ${of(graph).join(' ')}`)
      .join(', ');
    const connection = uses[0]?.connection;
    const relayed = uses.find(({ connection: each }) => each.relay !== undefined)?.connection;
    return `Rank ${rank} uses NIC ${dev} in ${where}${relayed === undefined ? '' : `, by way of the GPU of rank ${relayed.relay ?? '?'} (PXN)`}; ${gdrText(connection?.gdr ?? GdrMode.DISABLED, connection?.gdrReason ?? 'nic')}.`;
  });
}

function askedNic(nic: number | undefined, nics: readonly NicView[], nearest: readonly number[], gpu: number): string[] {
  if (nic === undefined) return [];
  const asked = nics.find(({ dev }) => dev === nic);
  if (asked === undefined) return [`There is no NIC ${nic}; the NICs are ${list(nics.map(({ dev }) => String(dev)))}.`];
  if (nearest.includes(nic))
    return asked.channels.length > 0 ? [] : [`NIC ${nic} is as near, but no channel of GPU ${gpu} uses it.`];
  const best = nics.find(({ dev }) => dev === nearest[0]);
  if (best === undefined) return [];
  const cause =
    asked.gbps < best.gbps
      ? `${rate(asked.gbps)} instead of ${rate(best.gbps)}`
      : `${pathTypeNames[asked.path]} instead of ${pathTypeNames[best.path]}`;
  const used =
    asked.channels.length > 0
      ? `GPU ${gpu} uses it nevertheless on ${counted(asked.channels.length, 'channel')}: the search of channels had no nearer GPU left for it.`
      : `No channel of GPU ${gpu} uses it.`;
  return [`NIC ${nic} is not among the nearest: ${cause}. ${used}`];
}

function others(nics: readonly NicView[]): string[] {
  const groups = new Map<string, number[]>();
  for (const { dev, path, gbps } of nics) {
    const key = `${pathTypeNames[path]}, ${rate(gbps)}`;
    groups.set(key, [...(groups.get(key) ?? []), dev]);
  }
  return [...groups].map(([key, devs]) => `NIC ${list(devs.map(String))}: ${key}.`);
}

const gdrReasons: Readonly<Record<GdrReason, string>> = {
  near: 'the path is near enough',
  nic: 'the NIC cannot',
  gpu: 'the GPU cannot',
  'split-gpu': 'the GPU is a part of a split one (NCCL_NET_GDR_MLOPART)',
  read: 'reads are off (NCCL_NET_GDR_READ), or the GPU is older than Ampere and without NVLink',
  far: 'the path is farther than NCCL_NET_GDR_LEVEL allows',
};

export function gdrText(mode: GdrMode, reason: GdrReason): string {
  if (mode === GdrMode.DISABLED) return `without GPU Direct RDMA, because ${gdrReasons[reason]}`;
  return `with GPU Direct RDMA${mode === GdrMode.PCI ? ' over PCI' : ''}`;
}
