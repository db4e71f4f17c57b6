import type { CallEvent } from '../lines/events.js';
import type { LogLine, LogPlace } from '../lines/line.js';
import { ownText } from '../lines/own-text.js';

/** A collective as a rank called it. */
export interface LoggedCall {
  readonly host: string;
  readonly pid: number;
  readonly cudaDev: number;
  readonly call: CallEvent;
  readonly place: LogPlace;
}

/** Two ranks of a communicator that called different collectives at the same position of their sequences. */
export interface CallDifference {
  readonly communicator: string;
  readonly first: LoggedCall;
  readonly other: LoggedCall;
}

interface CallGroup {
  /** The first rank's call, by number. */
  readonly calls: Map<string, LoggedCall>;
  /** By rank: the number of its last call, and the count of calls with that number, which calls of one group share. */
  readonly ranks: Map<string, { opCount: number; repeats: number }>;
  /** By device, the address of its communicator. */
  readonly addresses: Map<string, string>;
  comparable: boolean;
  difference: CallDifference | undefined;
}

/** The most communicators that are compared, and calls of one that wait for other ranks. */
const GROUP_LIMIT = 1024;
const CALL_LIMIT = 512;

/** Compares the collectives that ranks log with NCCL_DEBUG_SUBSYS=COLL. */
export class CallTracker {
  readonly #groups = new Map<string, CallGroup>();
  #run = 0;

  /**
   * @param communicator its name, or undefined where the log lacks its beginning
   * @param run number of the job in the log: jobs that follow each other have communicators of their own
   */
  read(line: LogLine, call: CallEvent, communicator: string | undefined, run: number, place: LogPlace): void {
    if (run !== this.#run) {
      this.#run = run;
      for (const [key, { difference }] of this.#groups) if (difference === undefined) this.#groups.delete(key);
    }
    const name = communicator ?? `of ${call.nRanks} ranks`;
    const group = this.#groupOf(`${name} ${run}`);
    if (group?.comparable !== true || group.difference !== undefined) return;
    const { pid, cudaDev } = line;
    const host = ownText(line.host);
    const device = `${host}:${pid} ${cudaDev}`;
    const address = group.addresses.get(device) ?? call.address;
    if (!group.addresses.has(device)) group.addresses.set(ownText(device), address);
    const rank = `${host}:${pid} ${call.address}`;
    const last = group.ranks.get(rank);
    // Messages are counted too but not by all ranks; a smaller number belongs to another communicator at the same address.
    if (
      call.operation === 'Send' ||
      call.operation === 'Recv' ||
      address !== call.address ||
      call.opCount < (last?.opCount ?? 0)
    ) {
      group.comparable = false;
      group.calls.clear();
      return;
    }
    const repeats = last?.opCount === call.opCount ? last.repeats + 1 : 0;
    if (last === undefined) group.ranks.set(ownText(rank), { opCount: call.opCount, repeats });
    else Object.assign(last, { opCount: call.opCount, repeats });
    const key = `${call.opCount} ${repeats}`;
    const first = group.calls.get(key);
    const own: LoggedCall = { host, pid, cudaDev, call, place };
    if (first === undefined) {
      group.calls.set(key, own);
      if (group.calls.size > CALL_LIMIT) {
        for (const [oldest] of group.calls) {
          group.calls.delete(oldest);
          break;
        }
      }
    } else if (differ(first.call, call)) group.difference = { communicator: name, first, other: own };
  }

  list(): CallDifference[] {
    return [...this.#groups.values()].flatMap(({ comparable, difference }) =>
      comparable && difference !== undefined ? [difference] : [],
    );
  }

  #groupOf(name: string): CallGroup | undefined {
    let group = this.#groups.get(name);
    if (group === undefined && this.#groups.size < GROUP_LIMIT) {
      group = { calls: new Map(), ranks: new Map(), addresses: new Map(), comparable: true, difference: undefined };
      this.#groups.set(name, group);
    }
    return group;
  }
}

function differ(a: CallEvent, b: CallEvent): boolean {
  return (
    a.operation !== b.operation ||
    a.count !== b.count ||
    a.datatype !== b.datatype ||
    a.root !== b.root ||
    a.reduction !== b.reduction
  );
}
