import {
  ExchangeMoves,
  exchangeSteps,
  keepAll,
  sendOwn,
  ShareMoves,
  type ExchangeMove,
  type RankPlace,
  type ShareCut,
  type WorkerPlace,
} from './hierarchical-moves.js';
import { eachMove, evenBlocks, partBytes, type EndSets, type Moves, type ScheduledEnd } from './moves.js';
import { sharesOf, type RanksByHost } from './ranks-by-host.js';
import { ConnectionTable, type Schedule, type ScheduledCall, type Worker } from './schedule.js';

/*
 * Collectives among the ranks of several hosts, in two levels. The data are divided into as many shares as the largest host
 * has ranks. On each host one rank owns a share: it adds up the inputs of the host's ranks, exchanges sums with the owners of
 * the share on other hosts, and gives the result to the ranks of its host.
 *
 *     host 0   rank 0 ──up──►  owner  ──wire──►  owner  ◄──up── rank 2   host 1
 *              rank 0 ◄─down─         ◄──wire──         ─down─► rank 2
 *
 * Owners add what comes over the wire and what comes from their host in one move, so sums of a host are never stored. Three
 * kinds of workers share the work, each of which goes through the same ranges in the same order:
 *
 *     up      its range of the input ──► the owner
 *     owner   see ShareMoves and ExchangeMoves (hierarchical-moves.ts)
 *     down    the owner ──► its range of the output
 *
 * A rank has one worker for each share and direction. The runtime executes these moves
 * (runtime/algorithms/connections/hierarchical.ts), the verifier checks them.
 */

/** The work of one rank in one share. */
interface HierarchicalWorker extends WorkerPlace {
  readonly ring: EndSets;
  /** The same for small calls, which are not divided: the work in share 0. */
  readonly exchange?: EndSets & { readonly moves: readonly ExchangeMove[] };
}

/** The rank of a host that owns a share; on a host with fewer ranks, a rank owns several. */
function ownerOf(hosts: RanksByHost, host: number, share: number): number {
  const ranks = hosts[host] ?? [];
  return ranks[Math.floor((share * ranks.length) / sharesOf(hosts))] ?? 0;
}

/** The rank of a host whose block a share carries: its owner's, in the first of its shares. */
function blockRankOf(hosts: RanksByHost, host: number, share: number): number {
  const rank = ownerOf(hosts, host, share);
  return share > 0 && ownerOf(hosts, host, share - 1) === rank ? -1 : rank;
}

/** The places of all ranks. */
export function placesOf(hosts: RanksByHost): RankPlace[] {
  const places: RankPlace[] = [];
  hosts.forEach((ranks, host) =>
    ranks.forEach((rank, local) => (places[rank] = { host, local, share: Math.ceil((local * sharesOf(hosts)) / ranks.length) })),
  );
  return places;
}

// ── workers and their connections ─────────────────────────────────────────────────────────────────────────────────────

/** All work of a rank. */
export function hierarchicalWorkers(hosts: RanksByHost, rank: number): HierarchicalWorker[] {
  const host = hosts.findIndex((ranks) => ranks.includes(rank));
  const ranks = hosts[host] ?? [];
  const nHosts = hosts.length;
  return Array.from({ length: sharesOf(hosts) }, (_, share) => share).flatMap((share): HierarchicalWorker[] => {
    const owner = ownerOf(hosts, host, share);
    const place = {
      share,
      host,
      nHosts,
      local: ranks.indexOf(rank),
      blockRanks: hosts.map((_, other) => blockRankOf(hosts, other, share)),
    };
    const [up, down] = [`up ${share}`, `down ${share}`];
    if (owner !== rank) {
      const to = [[{ peer: owner, name: up }]];
      const from = [[{ peer: owner, name: down }]];
      const sending = { receives: [[]], sends: to };
      const receiving = { receives: from, sends: [[]] };
      return [
        { ...place, role: 'up', ring: sending, ...(share > 0 ? {} : { exchange: { ...sending, moves: [sendOwn] } }) },
        { ...place, role: 'down', ring: receiving, ...(share > 0 ? {} : { exchange: { ...receiving, moves: [keepAll] } }) },
      ];
    }
    const others = ranks.filter((other) => other !== rank);
    const below = others.map((peer) => ({ peer, name: up }));
    const above = others.map((peer) => ({ peer, name: down }));
    const wire = (distance: number): ScheduledEnd[] =>
      nHosts === 1
        ? []
        : [{ peer: ownerOf(hosts, (host + distance + nHosts) % nHosts, share), name: `wire ${share}`, channel: share }];
    const [from, to] = [wire(-1), wire(1)];
    const only = (ends: readonly ScheduledEnd[], other: number) => ends.filter(({ peer }) => peer === other);
    const without = (ends: readonly ScheduledEnd[], other: number) => ends.filter(({ peer }) => peer !== other);
    const ring = {
      receives: [[], from, below, [...from, ...below], ...ranks.map((other) => only(below, other))],
      sends: [
        [],
        to,
        above,
        [...to, ...above],
        ...ranks.flatMap((other) => [without(above, other), [...to, ...without(above, other)], only(above, other)]),
      ],
    };
    if (share > 0) return [{ ...place, role: 'owner', ring }];
    const steps = exchangeSteps(host, nHosts);
    // Neighbours in the ring use its connections.
    const end = (other: number, isNext: boolean): ScheduledEnd => ({
      peer: ownerOf(hosts, other, 0),
      name: isNext ? 'wire 0' : 'exchange',
      channel: 0,
    });
    const exchange = {
      moves: steps.map(({ move }) => move),
      receives: steps.map((step) => (step.from < 0 ? below : [end(step.from, host === (step.from + 1) % nHosts)])),
      sends: steps.map((step) => [
        ...step.to.map((other) => end(other, other === (host + 1) % nHosts)),
        ...(step.move.keep ? above : []),
      ]),
    };
    return [{ ...place, role: 'owner', ring, exchange }];
  });
}

// ── the whole schedule ────────────────────────────────────────────────────────────────────────────────────────────────

/** Ranks by host, and the form of a call: with `shares`, rings of hosts; without, an exchange (all-reduce only). */
interface HierarchicalInput {
  readonly hosts: RanksByHost;
  readonly shares?: ShareCut & { readonly count: number };
}

/**
 * The moves of all ranks.
 *
 * @throws RangeError for a collective that it does not support
 */
export function hierarchicalSchedule(call: ScheduledCall, { hosts, shares }: HierarchicalInput): Schedule {
  const { collective, bytes } = call;
  const table = new ConnectionTable();
  const numbers = new Map<string, number>();
  const numberOf = (from: number, to: number, name: string, share: number): number => {
    const key = `${from} ${to} ${name}`;
    const number = numbers.get(key) ?? table.add(from, to, share);
    numbers.set(key, number);
    return number;
  };
  const ranks = hosts.flat();
  const isInBlocks = collective === 'AllGather' || collective === 'ReduceScatter';
  const nShares = shares === undefined ? 1 : isInBlocks ? sharesOf(hosts) : shares.count;
  const workers = ranks.flatMap((rank) =>
    hierarchicalWorkers(hosts, rank).flatMap((worker): Worker[] => {
      const { share, exchange, ring } = worker;
      const { receives, sends } = shares === undefined ? (exchange ?? { receives: [], sends: [] }) : ring;
      if (share >= nShares) return [];
      const receiveNumbers = receives.map((set) => set.map(({ peer, name }) => numberOf(peer, rank, name, share)));
      const sendNumbers = sends.map((set) => set.map(({ peer, name }) => numberOf(rank, peer, name, share)));
      const begin = (): Moves => {
        if (shares !== undefined) return shareMovesOf(call, hosts, worker, shares, nShares);
        if (collective !== 'AllReduce') throw new RangeError(`an exchange between hosts does no ${collective}`);
        const moves = new ExchangeMoves(exchange?.moves ?? []);
        moves.start(bytes);
        return moves;
      };
      return [{ rank, channel: share, moves: () => eachMove(begin(), receiveNumbers, sendNumbers) }];
    }),
  );
  const own = shares === undefined ? { own: { scratchBytes: bytes, isInPlace: false } } : {};
  return { call, nRanks: ranks.length, connections: table.all, workers, ...own };
}

function shareMovesOf(
  { collective, bytes, root }: ScheduledCall,
  hosts: RanksByHost,
  worker: HierarchicalWorker,
  cut: ShareCut,
  nShares: number,
): ShareMoves {
  const nRanks = hosts.flat().length;
  const moves = new ShareMoves(worker);
  const part = partBytes(bytes, nShares, cut.grainBytes);
  const from = Math.min(bytes, worker.share * part);
  const length = Math.min(part, bytes - from);
  const place = placesOf(hosts)[root] ?? { host: 0, local: 0, share: 0 };
  const blocks = evenBlocks(nRanks, bytes / nRanks, { offset: 0, bytes: bytes / nRanks });
  switch (collective) {
    case 'AllReduce':
      moves.startAllReduce(from, length, cut);
      break;
    case 'Broadcast':
      moves.startBroadcast(from, length, cut, place, true);
      break;
    case 'Reduce':
      moves.startReduce(from, length, cut, place);
      break;
    case 'AllGather':
      moves.startAllGather(blocks, cut, true);
      break;
    case 'ReduceScatter':
      moves.startReduceScatter(blocks, cut);
      break;
    default:
      throw new RangeError(`hierarchical does no ${collective}`);
  }
  return moves;
}
