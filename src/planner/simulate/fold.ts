import type { Merged } from '../graph/merge/merge.js';
import { type ScheduledConnection, ConnectionTable, type Schedule, type Worker } from '../schedule/schedule.js';

/** Hosts that stand for all: of crossed rails, hosts at odd places take the other. */
export const FOLDED_HOSTS = 2;

/** A schedule of the hosts that stand for all. */
export interface FoldedSchedule extends Schedule {
  readonly fold: Fold;
}

/** Properties of the whole cluster that the schedule of the hosts that stand for all lacks. */
export interface Fold {
  readonly hosts: number;
  /** Number of hosts from the sender's on to the receiver's, by connection. */
  readonly hostsApart: readonly number[];
}

/**
 * Replaces hosts that all do the same by two: the data that a rank receives from the previous hosts are those that it sends to
 * the next. Connections that differ only by the hosts become one. Drawn with one instead of two:
 *
 *     … ─► host 0: 0 ─► 1 ─► 2 ─► 3 ─► host 1 …        becomes        ┌─► 0 ─► 1 ─► 2 ─► 3 ─┐
 *                                                                     └─────────────────────┘
 *
 * @param perHost ranks of two hosts
 */
export function foldHosts(schedule: Schedule, perHost: number): FoldedSchedule {
  const { nRanks, connections } = schedule;
  const hosts = nRanks / perHost;
  const hostOf = (rank: number) => Math.floor(rank / (perHost / FOLDED_HOSTS));
  const allHosts = hosts * FOLDED_HOSTS;
  const hostsApart: number[] = [];
  const table = new ConnectionTable();
  const numbers = new Map<string, number>();
  const images = new Int32Array(connections.length).fill(-1);
  connections.forEach(({ from, to, channel, via, phase }, number) => {
    const touches = from < perHost || to < perHost;
    if (!touches) return;
    const distance = (Math.floor(to / perHost) - Math.floor(from / perHost) + hosts) % hosts;
    const key = `${from % perHost} ${to % perHost} ${distance} ${channel} ${via}`;
    let image = numbers.get(key);
    if (image === undefined) {
      numbers.set(key, (image = table.add(from % perHost, (to % perHost) + (distance === 0 ? 0 : perHost), channel, via, phase)));
      hostsApart.push((hostOf(to) - hostOf(from) + allHosts) % allHosts);
    }
    images[number] = image;
  });
  const imagesOf = (all: readonly number[]) => all.map((number) => images[number] ?? -1);
  const workers = schedule.workers
    .filter(({ rank }) => rank < perHost)
    .map((worker): Worker => ({
      ...worker,
      moves: function* () {
        for (const move of worker.moves()) yield { ...move, receive: imagesOf(move.receive), send: imagesOf(move.send) };
      },
    }));
  return { ...schedule, connections: table.all, workers, fold: { hosts: allHosts, hostsApart } };
}

/** True if all hosts have the same machine and the same number of ranks, in order. */
export function areHostsAlike({ kinds, nRanks, nNodes, rankBase }: Merged['nodes']): boolean {
  const perHost = nRanks / nNodes;
  return kinds.length === 1 && Number.isInteger(perHost) && rankBase.every((base, node) => base === node * perHost);
}

/**
 * One channel for all equal ones, whose connections have the same rates in the same order.
 *
 * @param rates by connection
 * @param kindOf number of the properties besides its rate that a connection's time depends on
 */
export function channelsThatDiffer(
  connections: readonly ScheduledConnection[],
  rates: Float64Array,
  kindOf: (connection: number) => number,
): ReadonlySet<number> {
  // Two hashes of a channel: texts of rates take long where there are many connections.
  const hashes = new Map<number, Int32Array>();
  const bits = new Int32Array(Float32Array.from(rates).buffer);
  connections.forEach(({ channel }, number) => {
    let own = hashes.get(channel);
    if (own === undefined) hashes.set(channel, (own = new Int32Array(2)));
    // Without the last bits, which differ by rounding.
    const value = ((bits[number] ?? 0) & ~0xff) + kindOf(number);
    own[0] = Math.imul((own[0] ?? 0) ^ value, 0x01000193) + 1;
    own[1] = Math.imul((own[1] ?? 0) + value, 0x7feb352d) ^ ((own[1] ?? 0) >>> 15);
  });
  const first = new Map<string, number>();
  for (const [channel, own] of hashes) if (!first.has(own.join(' '))) first.set(own.join(' '), channel);
  return new Set(first.values());
}
