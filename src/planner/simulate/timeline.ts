import type { PairMessage } from '../schedule/pairs.js';
import type { Move, ScheduledCollective, Worker } from '../schedule/schedule.js';
import type { MessagesOptions, SimulateOptions, Simulated, Simulator } from './simulate.js';

/** The slices of a simulated call and the loads of links in time. Times in µs from the launch on. */
export interface Timeline {
  readonly simulated: Simulated;
  /** In the order in which each worker does them. */
  readonly slices: readonly TimelineSlice[];
  /** Links that carry something, the fullest first. */
  readonly links: readonly TimelineLink[];
  /** Length of one step of {@link TimelineLink.load}. */
  readonly stepUs: number;
}

/** A slice of a move. */
export interface TimelineSlice {
  readonly rank: number;
  readonly channel: number;
  /** Number of the worker among the rank's workers on all channels, from 0 on. */
  readonly worker: number;
  readonly startUs: number;
  readonly endUs: number;
  readonly bytes: number;
  readonly what: 'send' | 'receive' | 'pass on' | 'reduce' | 'copy';
  /** Ranks that it receives from and sends to. */
  readonly from: readonly number[];
  readonly to: readonly number[];
}

/** A directed link of a host. */
export interface TimelineLink {
  readonly node: number;
  readonly name: string;
  readonly gbps: number;
  /** Used part of its bandwidth in each step. */
  readonly load: Float64Array;
  /** The mean of all steps. */
  readonly meanLoad: number;
}

/** Values of load over the whole call. */
const LOAD_STEPS = 200;

/**
 * Executes a call in time and records every slice. Nothing is folded, so large clusters take long.
 *
 * @param ranks whose slices are kept; all by default
 * @returns undefined where NCCL has nothing to choose from, and for one rank
 */
export function timelineOf(
  simulator: Simulator,
  collective: ScheduledCollective,
  bytes: number,
  options: SimulateOptions = {},
  ranks?: ReadonlySet<number>,
): Timeline | undefined {
  return recorded(simulator, options, (onSlice) => simulator.simulate(collective, bytes, { ...options, onSlice }), ranks);
}

/** The same for messages between ranks. @returns undefined where no rank sends to another */
export function timelineOfMessages(
  simulator: Simulator,
  messages: readonly PairMessage[],
  options: MessagesOptions = {},
): Timeline | undefined {
  return recorded(simulator, options, (onSlice) => simulator.simulateMessages(messages, { ...options, onSlice }));
}

function recorded(
  simulator: Simulator,
  { physics }: Pick<SimulateOptions, 'physics'>,
  simulate: (onSlice: NonNullable<SimulateOptions['onSlice']>) => Simulated | undefined,
  ranks?: ReadonlySet<number>,
): Timeline | undefined {
  const slices: TimelineSlice[] = [];
  const numbers = new Map<Worker, number>();
  const workersOfRank = new Map<number, number>();
  const uses = new Map<number, LinkUses>();
  let endUs = 0;
  const simulated = simulate((worker, slice, { connections, routes, wireBytes }) => {
    endUs = Math.max(endUs, slice.endUs);
    for (const { connection, startUs, endUs: end } of slice.wires) {
      const { uses: links = [], medium } = routes[connection] ?? {};
      for (const { node, link, weight } of links) {
        const key = node * 65_536 + link;
        let use = uses.get(key);
        if (use === undefined) uses.set(key, (use = { node, link, isNet: medium === 'net', used: [] }));
        use.used.push([startUs, end, slice.bytes * weight * wireBytes]);
      }
    }
    const { rank, channel } = worker;
    if (rank < 0 || ranks?.has(rank) === false) return;
    let number = numbers.get(worker);
    if (number === undefined) {
      numbers.set(worker, (number = workersOfRank.get(rank) ?? 0));
      workersOfRank.set(rank, number + 1);
    }
    const { move } = slice;
    slices.push({
      rank,
      channel,
      worker: number,
      startUs: slice.startUs,
      endUs: slice.endUs,
      bytes: slice.bytes,
      what: deedOf(move),
      from: move.receive.map((connection) => connections[connection]?.from ?? -1),
      to: move.send.map((connection) => connections[connection]?.to ?? -1),
    });
  });
  if (simulated === undefined) return undefined;
  const stepUs = endUs / LOAD_STEPS;
  const start = simulated.launchUs;
  const links = [...uses.values()].flatMap(({ used, ...use }): TimelineLink[] => {
    const known = simulator.describeLink(use, physics);
    if (known === undefined) return [];
    const load = loadOf(used, stepUs, known.gbps * 1000);
    return [{ node: use.node, ...known, load, meanLoad: load.reduce((sum, each) => sum + each, 0) / LOAD_STEPS }];
  });
  return {
    simulated,
    slices: slices.map((slice) => ({ ...slice, startUs: slice.startUs + start, endUs: slice.endUs + start })),
    links: links.sort((a, b) => b.meanLoad - a.meanLoad),
    stepUs,
  };
}

/** Data on one directed link of one node: start and end, µs, and bytes. */
interface LinkUses {
  readonly node: number;
  readonly link: number;
  /** True if a NIC reads or writes them. */
  readonly isNet: boolean;
  readonly used: [number, number, number][];
}

function deedOf({ receive, input, send, output }: Move): TimelineSlice['what'] {
  if (receive.length + (input >= 0 ? 1 : 0) > 1) return 'reduce';
  if (receive.length === 0) return send.length === 0 ? 'copy' : 'send';
  return send.length > 0 ? 'pass on' : output >= 0 ? 'receive' : 'pass on';
}

/** Spreads bytes over the steps in which they are on the link. @param rate bytes a µs that it carries */
function loadOf(used: readonly (readonly [number, number, number])[], stepUs: number, rate: number): Float64Array {
  const load = new Float64Array(LOAD_STEPS);
  for (const [startUs, endUs, bytes] of used) {
    const first = Math.min(LOAD_STEPS - 1, Math.floor(startUs / stepUs));
    const last = Math.min(LOAD_STEPS - 1, Math.floor(endUs / stepUs));
    for (let step = first; step <= last; step++) {
      const overlap = Math.min(endUs, (step + 1) * stepUs) - Math.max(startUs, step * stepUs);
      const part = first === last ? 1 : overlap / (endUs - startUs);
      load[step] = (load[step] ?? 0) + (bytes * part) / stepUs / rate;
    }
  }
  return load;
}
