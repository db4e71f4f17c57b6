import type { InitFacts, LogEvent, SearchResult, Transport } from '../lines/events.js';
import type { LogPlace } from '../lines/line.js';
import { type LoggedLink, type LoggedProcess, type LoggedRank, type RingOrder, Stage, TREE_STRIDE, UNKNOWN } from './model.js';

/** Budget of details, shared by all ranks of a log: counts down, and at 0 no more are kept. */
export interface DetailBudget {
  left: number;
  /** Details that were not kept. */
  refused: number;
}

type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] };

type GrowingLink = Mutable<LoggedLink>;

/** Shared empty map: most maps of most ranks are empty, and hundreds of thousands of them would fill the memory. */
const none = new Map<never, never>();
const noNumbers = new Int32Array(0);

/** A map that may be written to. */
function own<Key, Value>(map: Map<Key, Value>): Map<Key, Value> {
  return map === (none as Map<unknown, unknown>) ? new Map<Key, Value>() : map;
}

/** State of one rank of one communicator while its lines are read. */
export class RankRecord implements LoggedRank {
  rank = -1;
  nRanks: number | undefined;
  nNodes: number | undefined;
  facts: InitFacts | undefined;
  started: LogPlace | undefined;
  completed: LogPlace | undefined;
  stage: Stage = Stage.BEGUN;
  initSeconds: number | undefined;
  ring: Int32Array = noNumbers;
  trees: Int32Array = noNumbers;
  ringPlace: LogPlace | undefined;
  treesPlace: LogPlace | undefined;
  channelCounts: LoggedRank['channelCounts'];
  nvlink = false;
  nvls: LoggedRank['nvls'];
  ringNetwork: LoggedRank['ringNetwork'];
  ringOrders: Map<number, RingOrder> = none;
  searches: Map<string, { readonly result: SearchResult; readonly place: LogPlace }> = none;
  nvlsHeads: Map<number, { readonly ranks: readonly number[]; readonly place: LogPlace }> = none;
  /** The call of the last `Input: {…}`, which the next `Best tuning {…}` answers. */
  #asked: { readonly collective: string; readonly bytes: number } | undefined;
  choices: Map<string, { readonly algorithm: string; readonly protocol: string; readonly channels: number }> = none;
  #links: Map<string, GrowingLink> = none;

  constructor(
    readonly process: LoggedProcess,
    readonly cudaDev: number,
    public last: LogPlace,
    readonly room: DetailBudget,
  ) {}

  get nvmlDev(): number | undefined {
    return this.facts?.nvmlDev;
  }

  get busId(): string | undefined {
    return this.facts?.busId;
  }

  get links(): readonly LoggedLink[] {
    return [...this.#links.values()];
  }

  begin(facts: InitFacts): void {
    this.facts = facts;
    this.rank = facts.rank;
    this.nRanks = facts.nRanks;
  }

  read(event: LogEvent, place: LogPlace): void {
    this.last = place;
    switch (event.kind) {
      case 'nodes':
        this.nNodes = event.nNodes;
        this.nRanks ??= event.nRanks;
        this.#nameRank(event.rank);
        this.#reach(Stage.TOPOLOGY);
        break;
      case 'ring-order':
        this.#reach(Stage.CHANNELS);
        this.#keep(event.ranks.length, () => (this.ringOrders = own(this.ringOrders)).set(event.channel, { ...event, place }));
        break;
      case 'ring':
        this.#nameRank(event.rank);
        this.#reach(Stage.CHANNELS);
        if (event.rank === this.rank) this.#setRing(event, place);
        break;
      case 'trees':
        this.#nameRank(event.rank);
        this.#reach(Stage.CHANNELS);
        if (event.rank === this.rank) this.#setTrees(event, place);
        break;
      case 'connection':
        this.#nameRank(event.end === 'send' ? event.from : event.to);
        this.#reach(Stage.CONNECTING);
        this.#connect(event.end === 'send' ? event.to : event.from, event.end, event.transport, event.channel, place);
        break;
      case 'search':
        this.#reach(Stage.TOPOLOGY);
        if (event.result.typeIntra.startsWith('NV')) this.nvlink = true;
        if (this.searches.size < 16)
          this.#keep(8, () =>
            (this.searches = own(this.searches)).set(`${event.result.pattern} ${this.searches.size}`, {
              result: event.result,
              place,
            }),
          );
        break;
      case 'channel-counts':
        this.channelCounts = { coll: event.coll, nvls: event.nvls, p2p: event.p2p, place };
        this.#reach(Stage.CONNECTED);
        break;
      case 'connected':
        if (event.gdr !== undefined) this.ringNetwork = { gdr: event.gdr, pxn: event.pxn ?? false, place };
        this.#reach(Stage.CONNECTING);
        break;
      case 'nvls-head':
        this.#keep(event.ranks.length, () =>
          (this.nvlsHeads = own(this.nvlsHeads)).set(event.head, { ranks: event.ranks, place }),
        );
        break;
      case 'nvls-support':
        this.nvls = { available: event.available, place };
        if (event.available) this.nvlink = true;
        break;
      case 'nvlink':
        this.nvlink = true;
        break;
      case 'init-timing':
        this.initSeconds = event.seconds;
        this.completed ??= place;
        this.#reach(Stage.DONE);
        break;
      case 'choice':
        // A job that calls with many different sizes adds no information.
        if (this.choices.size < 512)
          this.#keep(4, () => (this.choices = own(this.choices)).set(`${event.collective} ${event.bytes}`, event));
        break;
      case 'tuning-input':
        this.#asked = event;
        break;
      case 'tuned':
        if (this.#asked !== undefined) this.read({ ...event, ...this.#asked, kind: 'choice' }, place);
        this.#asked = undefined;
        break;
      default:
    }
  }

  complete(facts: InitFacts, place: LogPlace): void {
    this.begin({ ...this.facts, ...facts });
    this.completed = place;
    this.last = place;
    this.#reach(Stage.DONE);
  }

  /** Adds the details of another record of the same rank that this one lacks: of lines whose beginning was lost. */
  absorb(other: RankRecord): void {
    this.facts ??= other.facts;
    this.nRanks ??= other.nRanks;
    this.nNodes ??= other.nNodes;
    this.completed ??= other.completed;
    this.initSeconds ??= other.initSeconds;
    this.channelCounts ??= other.channelCounts;
    this.nvls ??= other.nvls;
    this.ringNetwork ??= other.ringNetwork;
    this.nvlink ||= other.nvlink;
    this.#reach(other.stage);
    if (this.ring.length < other.ring.length) this.ring = other.ring;
    if (this.trees.length < other.trees.length) this.trees = other.trees;
    this.ringPlace ??= other.ringPlace;
    this.treesPlace ??= other.treesPlace;
    const fill = <Key, Value>(own: Map<Key, Value>, theirs: ReadonlyMap<Key, Value>) => {
      for (const [key, value] of theirs) if (!own.has(key)) own.set(key, value);
    };
    if (other.ringOrders.size > 0) fill((this.ringOrders = own(this.ringOrders)), other.ringOrders);
    if (other.searches.size > 0) fill((this.searches = own(this.searches)), other.searches);
    if (other.nvlsHeads.size > 0) fill((this.nvlsHeads = own(this.nvlsHeads)), other.nvlsHeads);
    if (other.choices.size > 0) fill((this.choices = own(this.choices)), other.choices);
    if (other.#links.size > 0) fill((this.#links = own(this.#links)), other.#links);
  }

  #reach(stage: Stage): void {
    if (stage > this.stage) this.stage = stage;
  }

  /** Sets the rank from the first line that names it; before 2.17 the beginning does not. */
  #nameRank(rank: number): void {
    if (this.rank < 0) this.rank = rank;
  }

  #keep(size: number, action: () => void): void {
    if (this.room.left < size) {
      this.room.refused++;
      return;
    }
    this.room.left -= size;
    action();
  }

  #setRing({ channel, prev, next }: LogEvent & { kind: 'ring' }, place: LogPlace): void {
    this.#keep(2, () => {
      this.ring = grown(this.ring, (channel + 1) * 2, -1);
      this.ring[channel * 2] = prev;
      this.ring[channel * 2 + 1] = next;
      this.ringPlace ??= place;
    });
  }

  #setTrees({ links }: LogEvent & { kind: 'trees' }, place: LogPlace): void {
    const channels = Math.max(0, ...links.map(({ channel }) => channel + 1));
    this.#keep(channels * TREE_STRIDE, () => {
      this.trees = grown(this.trees, channels * TREE_STRIDE, UNKNOWN);
      for (const { channel, down, up } of links)
        this.trees.set([down[0] ?? -1, down[1] ?? -1, down[2] ?? -1, up], channel * TREE_STRIDE);
      this.treesPlace ??= place;
    });
  }

  #connect(peer: number, end: 'send' | 'receive', transport: Transport, channel: number, place: LogPlace): void {
    const key = `${peer} ${end} ${transport.name} ${transport.nic ?? ''} ${transport.via ?? ''} ${transport.gdr === true ? 'gdr' : ''}`;
    let link = this.#links.get(key);
    if (link === undefined) {
      this.#keep(16, () => {
        link = { peer, end, transport, channels: 0, place, low: 0, high: 0 };
        (this.#links = own(this.#links)).set(key, link);
      });
    }
    if (link === undefined) return;
    // A communicator connects some channels twice: for rings and for trees.
    const bit = 1 << (channel % 32);
    const before = channel < 32 ? link.low : link.high;
    if ((before & bit) !== 0) return;
    if (channel < 32) link.low |= bit;
    else link.high |= bit;
    link.channels++;
  }
}

function grown(array: Int32Array, length: number, filler: number): Int32Array {
  if (array.length >= length) return array;
  const larger = new Int32Array(length).fill(filler);
  larger.set(array);
  return larger;
}
