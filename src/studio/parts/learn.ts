import { ringNeighbours, treeLinks } from '../../planner/graph/merge/links.js';
import { transportsOf } from '../../planner/plan/overview/connections.js';
import { formatBytes } from '../../planner/plan/overview/format.js';
import type { RingOverview } from '../../planner/plan/overview/overview.js';
import { choose } from '../../planner/tuning/choose.js';
import { algorithmsOf } from '../../planner/tuning/names.js';
import { stagesOf } from '../../view/learn/stages.js';
import type { Exercise, ShownLearn } from '../messages.js';
import type { Planned } from '../planned.js';
import type { StudioState } from '../state.js';
import type { PartInput } from './input.js';
import { drawingsOf } from './machine.js';

/** NCCL's stages with the values of this cluster, and exercises whose solutions are planned. */
export function shownLearn(input: PartInput): ShownLearn {
  const { made } = input;
  const [machine] = made.source.machines;
  const [drawing] = drawingsOf(made);
  return {
    view: 'learn',
    stages: machine === undefined || drawing === undefined ? [] : stagesOf({ ...made, system: machine.system, drawing }),
    exercises: [removal(input), withoutFirst(input), leavesLl(made), transport(made), parent(made)].flatMap(
      (exercise) => exercise ?? [],
    ),
  };
}

/** The channels of the search that change without a network port, or without a GPU where there is only one port. */
function removal({ made, state, file, plan }: PartInput): Exercise | undefined {
  const nics = made.devices.filter(({ off }) => 'nic' in off);
  const device = nics.length > 1 ? nics[0] : made.devices.filter(({ off }) => 'gpu' in off).at(-1);
  if (device === undefined || made.devices.length < 2) return undefined;
  const { off } = device;
  const change: Partial<StudioState> =
    'nic' in off ? { nicsOff: [...state.nicsOff, off.nic] } : { gpusOff: [...state.gpusOff, off.gpu] };
  const without = plan({ ...state, ...change }, file);
  if (without === undefined) return undefined;
  const [before, after] = [made, without].map(waysOf);
  const channels = [...new Set([...(before?.keys() ?? []), ...(after?.keys() ?? [])])].sort((a, b) => a - b);
  const changed = channels.filter((channel) => before?.get(channel) !== after?.get(channel));
  return {
    question: `Take out ${device.name}: the rings of which channels change? Numbers, «all» or «none».`,
    options: undefined,
    solution: changed.length === channels.length ? 'all' : changed.length === 0 ? 'none' : changed.join(' '),
    because: `Without it the search finds ${after?.size ?? 0} rings, with it ${before?.size ?? 0}; a ring changes if it has another order, another port, or is not there.`,
    change: { ...change, view: 'channels' },
  };
}

/** The ring of each channel of the first kind of hosts, as text. */
function waysOf({ overview }: Planned): ReadonlyMap<number, string> {
  const text = ({ entry, ranks, exit }: RingOverview) => [entry, ...ranks, exit].join(' ');
  return new Map(
    (overview.hosts[0]?.rings ?? []).flatMap((ring) => ring.channels.map((channel) => [channel, text(ring)] as const)),
  );
}

const LARGE_BYTES = 2 ** 28;

/** The choice where the algorithm that NCCL takes is forbidden. */
function withoutFirst({ made, state, file, plan }: PartInput): Exercise | undefined {
  const first = choose(made.tuning, 'AllReduce', LARGE_BYTES)?.algorithm;
  if (first === undefined) return undefined;
  const env = { ...state.env, NCCL_ALGO: `^${first}` };
  const tuning = plan({ ...state, env }, file)?.tuning;
  const next = tuning && choose(tuning, 'AllReduce', LARGE_BYTES)?.algorithm;
  if (next === undefined) return undefined;
  return {
    question: `NCCL takes ${first} for an AllReduce of ${formatBytes(LARGE_BYTES)}. Which algorithm does it take with NCCL_ALGO=^${first}?`,
    options: algorithmsOf.AllReduce.filter((algorithm) => algorithm !== first),
    solution: next,
    because: `Of what is left, ${next} has the least time in NCCL's model for this size.`,
    change: { env, view: 'choice' },
  };
}

const sizes = Array.from({ length: 21 }, (_, step) => 2 ** (10 + step));

/** The size at which the protocol becomes Simple. */
function leavesLl({ tuning }: Planned): Exercise | undefined {
  const protocols = sizes.map((bytes) => choose(tuning, 'AllReduce', bytes)?.protocol);
  const at = protocols.indexOf('Simple');
  if (at < 1) return undefined;
  return {
    question: 'From which size on does NCCL take protocol Simple for AllReduce?',
    options: sizes.map(formatBytes),
    solution: formatBytes(sizes[at] ?? 0),
    because: `At ${formatBytes(sizes[at - 1] ?? 0)} it still takes ${protocols[at - 1] ?? ''}: without waits for whole slots, small calls are faster, but flags take part of the bandwidth.`,
    change: { view: 'choice' },
  };
}

/** The transport at the end of the first node's ring. */
function transport({ plan, prepared, source }: Planned): Exercise | undefined {
  const { nRanks, rankToNode } = plan.nodes;
  const crosses = (rank: number) => rankToNode[ringNeighbours(plan, 0, rank).next] !== rankToNode[rank];
  const rank = [...Array(nRanks).keys()].find(crosses) ?? 0;
  const { next } = ringNeighbours(plan, 0, rank);
  if (nRanks < 2) return undefined;
  const { via } = transportsOf(plan, prepared, source.parameters).between(rank, next, 'ring', 0, 'send');
  return {
    question: `Over which transport does rank ${rank} send to rank ${next} in the ring of channel 0?`,
    options: ['P2P', 'SHM', 'NET'],
    solution: via,
    because: `Rank ${rank} is on node ${rankToNode[rank] ?? 0}, rank ${next} on node ${rankToNode[next] ?? 0}.`,
    change: { view: 'cluster', channel: 0, graph: 'ring' },
  };
}

/** A parent in the tree of channel 0. */
function parent({ plan }: Planned): Exercise | undefined {
  const rank = plan.nodes.nRanks - 1;
  if (rank < 1) return undefined;
  const { up } = treeLinks(plan, 0, rank);
  return {
    question: `Which rank is the parent of rank ${rank} in the tree of channel 0? A number, or «none» for the root.`,
    options: undefined,
    solution: up < 0 ? 'none' : String(up),
    because: 'The tree goes along a chain within each node, and between the nodes as a binary tree.',
    change: { view: 'cluster', channel: 0, graph: 'tree' },
  };
}
