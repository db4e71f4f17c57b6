import type { Kernels } from '../../device/kernels/kernels.js';
import type { Team } from '../../device/team.js';
import { defined } from '../../../defined.js';

/** A rank's table has three columns with one float64 for each rank, all in bytes. */
const COLUMNS = 3;
const SEND_FROM = 0;
const SEND_BYTES = 1;
const RECEIVE_BYTES = 2;

/** Two ranks with different counts for one part: the sender's differs from the receiver's. */
interface Disagreement {
  readonly sender: number;
  readonly receiver: number;
  readonly sentBytes: number;
  readonly expectedBytes: number;
}

/**
 * Tables in which the ranks of a V form describe their parts: in an allToAllV, which part of their input goes to each rank
 * and how much they expect of each; in the others, their counts of all ranks' parts. Each rank has two tables that are used
 * in turn: when it writes one, all ranks have completed the call that used it last (direct-staging.ts).
 */
export class PartTables {
  readonly #team: Team;
  readonly #kernels: Kernels;
  readonly #numbers: Float64Array;
  #address = -1;

  constructor(team: Team) {
    this.#team = team;
    this.#kernels = team.kernels;
    this.#numbers = new Float64Array(team.segment.buffer, 0, Math.floor(team.segment.bytes / 8));
  }

  /** Writes this rank's table for the next call; returns its address. All lists are by rank. */
  write(sendFrom: Float64Array, sendBytes: Float64Array, receiveBytes: Float64Array): number {
    const n = this.#team.nLocalRanks;
    const tableBytes = n * COLUMNS * 8;
    if (this.#address < 0) this.#address = this.#team.allocateBytes(tablesMemoryBytes(this.#team));
    const address = this.#address + ((this.#kernels.operationNumber() + 1) & 1) * tableBytes;
    this.#numbers.set(sendFrom, address / 8 + SEND_FROM * n);
    this.#numbers.set(sendBytes, address / 8 + SEND_BYTES * n);
    this.#numbers.set(receiveBytes, address / 8 + RECEIVE_BYTES * n);
    return address;
  }

  /** Offset in its input at which the rank with the table at `address` has the data for `receiver`. */
  sendFrom(address: number, receiver: number): number {
    return this.#number(address, SEND_FROM, receiver);
  }

  /** Lengths in bytes of all parts in the table at `address`. */
  partsAt(address: number): number[] {
    return Array.from({ length: this.#team.nLocalRanks }, (_, rank) => this.#number(address, SEND_BYTES, rank));
  }

  /** The first two ranks that disagree, the same on every rank. @param addresses of all ranks' tables */
  disagreement(addresses: ArrayLike<number>): Disagreement | undefined {
    const n = this.#team.nLocalRanks;
    for (let sender = 0; sender < n; sender++) {
      for (let receiver = 0; receiver < n; receiver++) {
        const sentBytes = this.#number(defined(addresses[sender]), SEND_BYTES, receiver);
        const expectedBytes = this.#number(defined(addresses[receiver]), RECEIVE_BYTES, sender);
        if (sentBytes !== expectedBytes) return { sender, receiver, sentBytes, expectedBytes };
      }
    }
    return undefined;
  }

  #number(address: number, column: number, rank: number): number {
    return defined(this.#numbers[address / 8 + column * this.#team.nLocalRanks + rank]);
  }
}

/** Memory of the tables in their rank's heap. */
export function tablesMemoryBytes({ nLocalRanks }: Team): number {
  return 2 * nLocalRanks * COLUMNS * 8;
}
