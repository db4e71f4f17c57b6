import type { InitFacts, LogEvent } from '../lines/events.js';
import type { LogLine, LogPlace } from '../lines/line.js';
import type { LoggedCommunicator, LoggedProcess } from './model.js';
import { RankRecord, type DetailBudget } from './rank-record.js';

/** Limits of communicators, and of threads that are tracked at a time. */
const COMMUNICATOR_LIMIT = 4096;
const THREAD_LIMIT = 262_144;
/** The most ranks of all communicators together. */
const RECORD_LIMIT = 1_000_000;

class Communicator {
  readonly ranks = new Map<number, RankRecord>();

  constructor(
    readonly id: string,
    readonly nRanks: number,
    readonly isSplit: boolean,
  ) {}
}

/**
 * Assigns lines to communicators. NCCL's lines name no communicator, but a thread initializes one after the other, so all its
 * lines up to `Init COMPLETE` belong to one:
 *
 *     host:pid:tid   Init START   Trees …   Channel …   Init COMPLETE │ Init START   Trees …
 *                    └───────────── one record ─────────────────────┘ └── the next ───────
 *
 * Before 2.17 there is no `Init START`, and only the end identifies the communicator. Connections that are made later (since 2.22
 * by threads of their own) belong to the last communicator of that process and device with that rank.
 */
export class CommunicatorTracker {
  readonly #communicators = new Map<string, Communicator>();
  /** By thread: the record that it initializes, or its last one. */
  readonly #threads = new Map<string, RankRecord>();
  /** By process and device: initialized records, the latest last. */
  readonly #ofDevice = new Map<string, RankRecord[]>();
  readonly #byAddress = new Map<string, Communicator>();
  /** Records that have no communicator yet. */
  readonly #pending = new Set<RankRecord>();
  readonly #room: DetailBudget;
  #records = 0;
  refusedCommunicators = 0;

  constructor(room: DetailBudget) {
    this.#room = room;
  }

  read(line: LogLine, process: LoggedProcess, event: LogEvent, place: LogPlace): RankRecord | undefined {
    const thread = `${line.host}:${line.pid}:${line.tid}`;
    if (line.torn) return this.#readTorn(thread, event, place);
    if (event.kind === 'init-start') return this.#start(thread, line, process, event, place);
    if (event.kind === 'init-complete') return this.#complete(thread, line, process, event, place);
    if (event.kind === 'ended') return this.#end(thread, line, process, event, place);
    const record = this.#recordOf(thread, line, process, event, place);
    record?.read(event, place);
    return record;
  }

  /** The communicator that a process has at an address. */
  nameOf(line: LogLine, address: string): string | undefined {
    return this.#byAddress.get(addressKey(line, address))?.id;
  }

  /**
   * A line into which another is written may contain any number; it counts as the end of a rank's init if the rest of it is
   * valid.
   */
  #readTorn(thread: string, event: LogEvent, place: LogPlace): RankRecord | undefined {
    const open = this.#threads.get(thread);
    if (open === undefined) return undefined;
    open.last = place;
    const { facts } = open;
    if (
      event.kind === 'init-complete' &&
      facts !== undefined &&
      event.rank === facts.rank &&
      event.address === facts.address &&
      event.nRanks === facts.nRanks
    ) {
      open.complete(event, place);
    }
    return open;
  }

  #start(thread: string, line: LogLine, process: LoggedProcess, facts: InitFacts, place: LogPlace): RankRecord | undefined {
    const communicator = this.#communicatorOf(facts, line);
    if (communicator === undefined) return undefined;
    let record = communicator.ranks.get(facts.rank);
    // A log that is given twice repeats every line.
    if (record === undefined || record.process !== process) record = this.#newRecord(thread, line, process, place);
    if (record === undefined) return undefined;
    record.begin(facts);
    record.started ??= place;
    this.#threads.set(thread, record);
    this.#attach(communicator, record, line);
    return record;
  }

  #complete(thread: string, line: LogLine, process: LoggedProcess, facts: InitFacts, place: LogPlace): RankRecord | undefined {
    const open = this.#threads.get(thread);
    const isItsEnd =
      open !== undefined &&
      open.completed === undefined &&
      (open.rank < 0 || open.rank === facts.rank) &&
      (open.facts === undefined || open.facts.address === facts.address);
    const communicator =
      (isItsEnd && !this.#pending.has(open) ? this.#byAddress.get(addressKey(line, facts.address)) : undefined) ??
      this.#communicatorOf(facts, line);
    if (communicator === undefined) return undefined;
    const known = communicator.ranks.get(facts.rank);
    const record = isItsEnd ? open : known?.process === process ? known : this.#newRecord(thread, line, process, place);
    if (record === undefined) return undefined;
    record.complete(facts, place);
    this.#attach(communicator, record, line);
    return record;
  }

  /** A communicator that a rank destroys was initialized: if that line is missing, it was lost. */
  #end(
    thread: string,
    line: LogLine,
    process: LoggedProcess,
    event: LogEvent & { kind: 'ended' },
    place: LogPlace,
  ): RankRecord | undefined {
    if (event.aborted) return undefined;
    const communicator =
      this.#byAddress.get(addressKey(line, event.address)) ??
      [...this.#communicators.values()].find(({ nRanks, ranks }) => nRanks === event.nRanks && !ranks.has(event.rank));
    if (communicator === undefined) return undefined;
    const known = communicator.ranks.get(event.rank);
    if (known?.completed !== undefined) return known;
    const record = known ?? this.#newRecord(thread, line, process, place);
    if (record === undefined) return undefined;
    record.complete(event, place);
    this.#attach(communicator, record, line);
    return record;
  }

  /** The record of a line that names no communicator. */
  #recordOf(thread: string, line: LogLine, process: LoggedProcess, event: LogEvent, place: LogPlace): RankRecord | undefined {
    const open = this.#threads.get(thread);
    const begins =
      event.kind === 'trees' ||
      event.kind === 'ring-order' ||
      event.kind === 'ring' ||
      event.kind === 'search' ||
      event.kind === 'nodes';
    if (open !== undefined && !(open.completed !== undefined && begins)) {
      if (event.kind !== 'connection' || open.completed === undefined) return open;
    }
    if (event.kind === 'connection') {
      const own = event.end === 'send' ? event.from : event.to;
      const set = this.#ofDevice.get(deviceKey(line))?.findLast((record) => record.rank === own);
      if (set !== undefined) return set;
    }
    if (!begins && event.kind !== 'connection' && event.kind !== 'nvlink' && event.kind !== 'nvls-support') {
      return event.kind === 'cut' || event.kind === 'other' ? undefined : this.#ofDevice.get(deviceKey(line))?.at(-1);
    }
    return this.#newRecord(thread, line, process, place);
  }

  #newRecord(thread: string, line: LogLine, process: LoggedProcess, place: LogPlace): RankRecord | undefined {
    if (this.#records >= RECORD_LIMIT) {
      this.#room.refused++;
      return undefined;
    }
    this.#records++;
    const record = new RankRecord(process, line.cudaDev, place, this.#room);
    if (this.#threads.size >= THREAD_LIMIT) {
      for (const [oldest] of this.#threads) {
        this.#threads.delete(oldest);
        break;
      }
    }
    this.#threads.set(thread, record);
    this.#pending.add(record);
    return record;
  }

  #attach(communicator: Communicator, record: RankRecord, line: LogLine): void {
    this.#pending.delete(record);
    const before = communicator.ranks.get(record.rank);
    if (before !== undefined && before !== record) record.absorb(before);
    communicator.ranks.set(record.rank, record);
    if (record.facts !== undefined) this.#byAddress.set(addressKey(line, record.facts.address), communicator);
    const key = deviceKey(line);
    const records = this.#ofDevice.get(key);
    if (records === undefined) this.#ofDevice.set(key, [record]);
    else if (!records.includes(record)) {
      records.push(record);
      if (records.length > 64) records.shift();
    }
  }

  #communicatorOf(facts: InitFacts, line: LogLine): Communicator | undefined {
    const { commId, nRanks } = facts;
    if (commId !== undefined) return this.#named(`${commId} ${nRanks}`, commId, facts);
    // Without a name: the first of that size and origin that lacks this rank.
    const parent = facts.parent === undefined ? '' : (this.#byAddress.get(addressKey(line, facts.parent))?.id ?? '?');
    const origin =
      facts.parent === undefined ? `of ${nRanks} ranks` : `of ${nRanks} ranks, split off ${parent}, color ${facts.color ?? '?'}`;
    for (let number = 0; ; number++) {
      const key = `${origin} ${number}`;
      const known = this.#communicators.get(key);
      const holder = known?.ranks.get(facts.rank);
      const isSame =
        holder?.process.host === line.host && holder.process.pid === line.pid && holder.facts?.address === facts.address;
      if (known === undefined || holder === undefined || isSame) {
        return this.#named(key, number === 0 ? origin : `${origin}, number ${number + 1}`, facts);
      }
    }
  }

  #named(key: string, id: string, { nRanks, parent }: InitFacts): Communicator | undefined {
    const known = this.#communicators.get(key);
    if (known !== undefined) return known;
    if (this.#communicators.size >= COMMUNICATOR_LIMIT) {
      this.refusedCommunicators++;
      return undefined;
    }
    const communicator = new Communicator(id, nRanks, parent !== undefined);
    this.#communicators.set(key, communicator);
    return communicator;
  }

  /** All communicators, in the order of their first lines; records without one are assigned where they fit. */
  finish(): LoggedCommunicator[] {
    for (const record of this.#pending) this.#place(record);
    this.#pending.clear();
    return [...this.#communicators.values()].map(({ id, nRanks, ranks, isSplit }) => {
      const records = [...ranks.values()];
      const known = nRanks > 0;
      return {
        id,
        isSplit,
        nRanks: known ? nRanks : records.reduce((most, record) => Math.max(most, atLeast(record)), 0),
        nRanksKnown: known,
        nNodes: records.find((record) => record.nNodes !== undefined)?.nNodes,
        ranks: new Map([...ranks].sort(([a], [b]) => a - b)),
      };
    });
  }

  #place(record: RankRecord): void {
    if (record.rank < 0) return;
    const { host, pid } = record.process;
    for (const { ranks } of this.#communicators.values()) {
      const own = ranks.get(record.rank);
      if (own?.process.host === host && own.process.pid === pid && own.cudaDev === record.cudaDev) {
        own.absorb(record);
        return;
      }
    }
    const fits = [...this.#communicators.values()].find(
      ({ ranks, nRanks }) =>
        !ranks.has(record.rank) && (nRanks === 0 || (nRanks > record.rank && (record.nRanks ?? nRanks) === nRanks)),
    );
    const communicator =
      fits ??
      this.#named(`begun ${this.#communicators.size}`, 'that never got a name', {
        address: '',
        rank: record.rank,
        nRanks: record.nRanks ?? 0,
        cudaDev: record.cudaDev,
      });
    communicator?.ranks.set(record.rank, record);
  }
}

/** Least number of ranks that a rank's lines allow. */
function atLeast(record: RankRecord): number {
  let most = record.rank;
  for (const { peer } of record.links) most = Math.max(most, peer);
  for (const { ranks } of record.ringOrders.values()) most = Math.max(most, ranks.length - 1);
  return most + 1;
}

function addressKey({ host, pid }: LogLine, address: string): string {
  return `${host}:${pid} ${address}`;
}

function deviceKey({ host, pid, cudaDev }: LogLine): string {
  return `${host}:${pid} ${cudaDev}`;
}
