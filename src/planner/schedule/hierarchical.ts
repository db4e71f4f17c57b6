import {
  ConnectionTable,
  type Local,
  type Move,
  type Schedule,
  type ScheduledCall,
  type ScheduledConnection,
  type Worker,
} from './schedule.js';

/*
 * All-reduce among the ranks of several hosts, in two levels. The data are divided into as many shares as the largest host has
 * ranks. On each host one rank owns a share: it adds up the inputs of the host's ranks, exchanges sums with the owners of the
 * share on other hosts, and gives the result to the ranks of its host.
 *
 *     host 0   rank 0 ──up──►  owner  ──wire──►  owner  ◄──up── rank 2   host 1
 *              rank 0 ◄─down─         ◄──wire──         ─down─► rank 2
 *
 * Owners add what comes over the wire and what comes from their host in one move, so sums of a host are never stored. Three
 * kinds of workers share the work, each of which goes through the same ranges in the same order:
 *
 *     up      its range of the input ──► the owner
 *     owner   see RingMoves and ExchangeMoves
 *     down    the owner ──► its range of the output
 *
 * A rank has one worker for each share and direction. The runtime executes these moves (runtime/algorithms/hierarchical.ts), the
 * verifier checks them.
 */

/** The ranks of each host. */
export type RanksByHost = readonly (readonly number[])[];

/** One end of a connection. Connections between the same two ranks have different names. */
export interface HierarchicalEnd {
  readonly peer: number;
  readonly name: string;
  /** Number of the share that a connection between hosts carries. */
  readonly share?: number;
}

/** Connections of a worker, as the sets that moves use. */
export interface EndSets {
  readonly receives: readonly (readonly HierarchicalEnd[])[];
  readonly sends: readonly (readonly HierarchicalEnd[])[];
}

export type HierarchicalRole = 'up' | 'owner' | 'down';

/** The work of one rank in one share. */
export interface HierarchicalWorker {
  readonly share: number;
  readonly role: HierarchicalRole;
  /** Position of the rank's host, and the number of hosts. */
  readonly host: number;
  readonly nHosts: number;
  readonly ring: EndSets;
  /** The same for small calls, which are not divided: the work in share 0. */
  readonly exchange?: EndSets & { readonly moves: readonly ExchangeMove[] };
}

/** The current move of a worker. One object goes through many calls, so that moves allocate nothing. */
export interface HierarchicalMoves {
  readonly done: boolean;
  readonly bytes: number;
  /** Offsets of a range of the input and of the output; -1 for none. */
  readonly own: number;
  readonly keep: number;
  /** True if the result is complete, so that averages are divided. */
  readonly complete: boolean;
  /** Numbers of the sets of connections. */
  readonly receives: number;
  readonly sends: number;
  /** Position of the stored sum among what is added up. */
  readonly held: 'none' | 'first' | 'last';
  /** True if the move stores its sum. */
  readonly holds: boolean;
  next(): void;
}

/** Number of shares that large calls are divided into. */
export function sharesOf(hosts: RanksByHost): number {
  return Math.max(...hosts.map(({ length }) => length));
}

/** The rank of a host that owns a share; on a host with fewer ranks, a rank owns several. */
export function ownerOf(hosts: RanksByHost, host: number, share: number): number {
  const ranks = hosts[host] ?? [];
  return ranks[Math.floor((share * ranks.length) / sharesOf(hosts))] ?? 0;
}

/** Length of every part but the last when `bytes` are divided into parts that are as equal as possible. */
export function partBytes(bytes: number, nParts: number, grainBytes: number): number {
  return Math.ceil(bytes / nParts / grainBytes) * grainBytes;
}

// ── workers and their connections ─────────────────────────────────────────────────────────────────────────────────────

/** Bits of the numbers of a ring's sets: over the wire, within the host. */
const WIRE = 1;
const HOST = 2;

/** All work of a rank. */
export function hierarchicalWorkers(hosts: RanksByHost, rank: number): HierarchicalWorker[] {
  const host = hosts.findIndex((ranks) => ranks.includes(rank));
  const ranks = hosts[host] ?? [];
  const nHosts = hosts.length;
  return Array.from({ length: sharesOf(hosts) }, (_, share) => share).flatMap((share): HierarchicalWorker[] => {
    const owner = ownerOf(hosts, host, share);
    const place = { share, host, nHosts };
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
    const wire = (distance: number): HierarchicalEnd[] =>
      nHosts === 1 ? [] : [{ peer: ownerOf(hosts, (host + distance + nHosts) % nHosts, share), name: `wire ${share}`, share }];
    const [from, to] = [wire(-1), wire(1)];
    const ring = { receives: [[], from, below, [...from, ...below]], sends: [[], to, above, [...to, ...above]] };
    if (share > 0) return [{ ...place, role: 'owner', ring }];
    const steps = exchangeSteps(host, nHosts);
    // Neighbours in the ring use its connections.
    const end = (other: number, isNext: boolean): HierarchicalEnd => ({
      peer: ownerOf(hosts, other, 0),
      name: isNext ? 'wire 0' : 'exchange',
      share: 0,
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

// ── large calls: a ring of hosts for each share ───────────────────────────────────────────────────────────────────────

/** Sizes by which a share is cut. */
export interface RingCut {
  /** Most bytes in a message; a multiple of `grainBytes`. */
  readonly sliceBytes: number;
  /** Messages of a chunk. Fewer than a connection holds, so that ranks that send first have room. */
  readonly slicesPerChunk: number;
  readonly grainBytes: number;
}

/**
 * The moves of a share among H hosts: a ring of their owners. A share is cut into columns of H chunks. In step s, host h works
 * on chunk h - s:
 *
 *     step    0             1 … H - 2              H - 1                          H … 2H - 3         2H - 2
 *     owner   add its host  receive, add its host  receive, add its host: result  receive: result    receive: result
 *             send          send                   send, keep, down               send, keep, down   keep, down
 *     up      send          send                   send
 *     down                                         keep                           keep               keep
 *
 * With one host there is one step, which adds and keeps.
 */
export class RingMoves implements HierarchicalMoves {
  done = true;
  bytes = 0;
  own = -1;
  keep = -1;
  complete = false;
  receives = 0;
  sends = 0;
  readonly held = 'none';
  readonly holds = false;
  readonly #role: HierarchicalRole;
  readonly #host: number;
  readonly #nHosts: number;
  #cut: RingCut = { sliceBytes: 1, slicesPerChunk: 1, grainBytes: 1 };
  #end = 0;
  #column = 0;
  #step = 0;
  /** The rest of the chunk. */
  #from = 0;
  #to = 0;

  constructor({ role, host, nHosts }: Pick<HierarchicalWorker, 'role' | 'host' | 'nHosts'>) {
    this.#role = role;
    this.#host = host;
    this.#nHosts = nHosts;
  }

  /** Begins a call, whose share is the `bytes` bytes at `from`. */
  start(from: number, bytes: number, cut: RingCut): void {
    this.#cut = cut;
    this.#column = from;
    this.#end = from + bytes;
    this.#step = 0;
    this.done = bytes === 0;
    if (!this.done) this.#enter();
  }

  next(): void {
    this.#from += this.bytes;
    if (this.#from < this.#to) {
      this.#take();
      return;
    }
    this.#step++;
    this.#enter();
  }

  /** Enters the current step, or the next one in which this worker has data. */
  #enter(): void {
    const nHosts = this.#nHosts;
    const { sliceBytes, slicesPerChunk, grainBytes } = this.#cut;
    const last = 2 * nHosts - 2;
    const columnBytes = nHosts * slicesPerChunk * sliceBytes;
    while (true) {
      if (this.#step > last) {
        this.#step = 0;
        this.#column += columnBytes;
        if (this.#column >= this.#end) {
          this.done = true;
          return;
        }
      }
      const step = this.#step;
      const bytes = Math.min(columnBytes, this.#end - this.#column);
      const chunk = (this.#host - step + 2 * nHosts) % nHosts;
      const part = partBytes(bytes, nHosts, grainBytes);
      this.#from = this.#column + Math.min(bytes, chunk * part);
      this.#to = this.#column + Math.min(bytes, (chunk + 1) * part);
      const adds = step < nHosts;
      const isWhole = step >= nHosts - 1;
      if (this.#from < this.#to && (this.#role === 'owner' || (this.#role === 'up' ? adds : isWhole))) {
        if (this.#role === 'owner') {
          this.receives = (step > 0 ? WIRE : 0) | (adds ? HOST : 0);
          this.sends = (step < last ? WIRE : 0) | (isWhole ? HOST : 0);
          this.complete = step === nHosts - 1;
        }
        this.#take();
        return;
      }
      this.#step++;
    }
  }

  #take(): void {
    const { sliceBytes } = this.#cut;
    const role = this.#role;
    this.bytes = Math.min(sliceBytes, this.#to - this.#from);
    this.own = role === 'up' || (role === 'owner' && this.#step < this.#nHosts) ? this.#from : -1;
    this.keep = role === 'down' || (role === 'owner' && this.#step >= this.#nHosts - 1) ? this.#from : -1;
  }
}

// ── small calls: owners exchange whole sums ───────────────────────────────────────────────────────────────────────────

/** A move of a small call, on all of its data. */
export interface ExchangeMove {
  readonly own: boolean;
  readonly keep: boolean;
  readonly complete: boolean;
  readonly held: HierarchicalMoves['held'];
  readonly holds: boolean;
}

const sendOwn: ExchangeMove = { own: true, keep: false, complete: false, held: 'none', holds: false };
const keepAll: ExchangeMove = { own: false, keep: true, complete: false, held: 'none', holds: false };

interface ExchangeStep {
  readonly move: ExchangeMove;
  /** Host that it receives from; -1: the ranks of this host. */
  readonly from: number;
  readonly to: readonly number[];
}

/**
 * Moves of the owner of share 0 on a host in a small call: recursive doubling among hosts, so that data cross log2(H) wires
 * in sequence. Hosts beyond the largest power of two give their sum to another host first, and get the result from it. Sums
 * are added in the order of the hosts on both sides, so all hosts get the same bits.
 */
function exchangeSteps(host: number, nHosts: number): ExchangeStep[] {
  const power = 2 ** Math.floor(Math.log2(nHosts));
  if (host >= power)
    return [
      { from: -1, to: [host - power], move: sendOwn },
      { from: host - power, to: [], move: keepAll },
    ];
  const beyond = host + power < nHosts ? [host + power] : [];
  const partners: number[] = [];
  for (let bit = 1; bit < power; bit *= 2) partners.push(host ^ bit);
  const sources = [-1, ...beyond, ...partners];
  return sources.map((from, index) => {
    const isLast = index === sources.length - 1;
    const next = sources[index + 1] ?? -1;
    return {
      from,
      to: isLast ? beyond : next >= power ? [] : [next],
      move: {
        own: index === 0,
        keep: isLast,
        complete: isLast,
        held: index === 0 ? 'none' : host < from ? 'first' : 'last',
        holds: !isLast,
      },
    };
  });
}

/** Goes through the moves of a small call. */
export class ExchangeMoves implements HierarchicalMoves {
  done = true;
  bytes = 0;
  own = -1;
  keep = -1;
  complete = false;
  held: HierarchicalMoves['held'] = 'none';
  holds = false;
  #at = 0;

  constructor(readonly moves: readonly ExchangeMove[]) {}

  get receives(): number {
    return this.#at;
  }

  get sends(): number {
    return this.#at;
  }

  start(bytes: number): void {
    this.bytes = bytes;
    this.#at = 0;
    this.#enter();
  }

  next(): void {
    this.#at++;
    this.#enter();
  }

  #enter(): void {
    const move = this.moves[this.#at];
    this.done = move === undefined;
    if (move === undefined) return;
    this.own = move.own ? 0 : -1;
    this.keep = move.keep ? 0 : -1;
    this.complete = move.complete;
    this.held = move.held;
    this.holds = move.holds;
  }
}

// ── the whole schedule ────────────────────────────────────────────────────────────────────────────────────────────────

/** Ranks by host, and the form of a call: with `shares`, rings of hosts; without, an exchange. */
export interface HierarchicalInput {
  readonly hosts: RanksByHost;
  readonly shares?: RingCut & { readonly count: number };
}

/** The moves of all ranks in an all-reduce. */
export function hierarchicalSchedule(call: ScheduledCall, { hosts, shares }: HierarchicalInput): Schedule {
  if (call.collective !== 'AllReduce') throw new RangeError(`hierarchical does no ${call.collective}`);
  const table = new ConnectionTable();
  const numbers = new Map<string, number>();
  const numberOf = (from: number, to: number, name: string, share: number): number => {
    const key = `${from} ${to} ${name}`;
    const number = numbers.get(key) ?? table.add(from, to, share);
    numbers.set(key, number);
    return number;
  };
  const ranks = hosts.flat();
  const workers = ranks.flatMap((rank) =>
    hierarchicalWorkers(hosts, rank).flatMap((worker): Worker[] => {
      const { share, exchange, ring } = worker;
      const { receives, sends } = shares === undefined ? (exchange ?? { receives: [], sends: [] }) : ring;
      if (share >= (shares?.count ?? 1)) return [];
      const receiveNumbers = receives.map((set) => set.map(({ peer, name }) => numberOf(peer, rank, name, share)));
      const sendNumbers = sends.map((set) => set.map(({ peer, name }) => numberOf(rank, peer, name, share)));
      const begin = (): HierarchicalMoves => {
        if (shares === undefined) {
          const moves = new ExchangeMoves(exchange?.moves ?? []);
          moves.start(call.bytes);
          return moves;
        }
        const moves = new RingMoves(worker);
        const part = partBytes(call.bytes, shares.count, shares.grainBytes);
        const from = Math.min(call.bytes, share * part);
        moves.start(from, Math.min(part, call.bytes - from), shares);
        return moves;
      };
      return [{ rank, channel: share, moves: () => each(begin(), receiveNumbers, sendNumbers) }];
    }),
  );
  const own = shares === undefined ? { own: { scratchBytes: call.bytes, isInPlace: false } } : {};
  return { call, nRanks: ranks.length, connections: table.all satisfies ScheduledConnection[], workers, ...own };
}

const scratch: readonly Local[] = [{ buffer: 'scratch', offset: 0 }];

function* each(
  moves: HierarchicalMoves,
  receives: readonly (readonly number[])[],
  sends: readonly (readonly number[])[],
): Generator<Move> {
  while (!moves.done) {
    const { held, holds } = moves;
    const local = { adds: held === 'none' ? [] : scratch, writes: holds ? scratch : [], after: [] };
    yield {
      receive: receives[moves.receives] ?? [],
      input: moves.own,
      send: sends[moves.sends] ?? [],
      output: moves.keep,
      bytes: moves.bytes,
      ...(held === 'none' && !holds ? {} : { local }),
    };
    moves.next();
  }
}
