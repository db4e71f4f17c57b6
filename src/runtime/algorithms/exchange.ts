import { DONE, PENDING } from '../device/kernels/kernels.js';
import { InvalidUsageError, SystemError, TcclError } from '../../errors.js';
import type { Connection, ReceiveConnection, SendConnection } from '../transport/transport.js';
import type { Team } from '../device/team.js';
import type { Bed } from '../progress/sleeper.js';
import type { Deed } from './deed.js';
import { HoldUps, WaitAnswers } from './hold-ups.js';
import { callMismatch, decodeCall, describeCall, hasCommonCounts, readCall, type Call } from './call.js';

/**
 * What travels before the data of each message: what the sender called, as its how many-th call. A line of its own
 * keeps data aligned.
 */
export const HEADER_BYTES = 64;
const CODE = 0;
const ROOT = 1;
const COUNT_LOW = 2;
const COUNT_HIGH = 3;
const SEQUENCE = 4;
/** Of the header, the words that mean something. */
export const HEADER_WORDS = 5;

/**
 * What a slot has room for behind the data: the sender's counts, float64 by rank, in calls for which all must give the
 * same. So ranks whose counts differ can be told which.
 */
export function countsRoom(nRanks: number): number {
  return Math.ceil((nRanks * 8) / 128) * 128;
}

const none = new Uint8Array();

/**
 * A part of a rank's work in one operation that goes on independently of its other parts: moves, one after the other,
 * on connections that no other part uses meanwhile.
 */
export interface Track {
  /** Whether all moves are done. The rest tells of the current move. */
  readonly done: boolean;
  /** It takes one message from each of these, */
  readonly from: readonly ReceiveConnection[];
  /** and sends one on each of these. */
  readonly to: readonly SendConnection[];
  /** Data in each of these messages. */
  readonly bytes: number;
  /**
   * Fills the messages to send.
   * @param inputs addresses of the data of the messages from `from`
   * @param outputs addresses for the data of those to `to`
   */
  pass(inputs: readonly number[], outputs: readonly number[]): void;
  /** Does what has time until the messages are on their way, and makes the next move the current one. */
  finish(): void;
}

/**
 * The messages of a rank's calls, one call at a time, as a state machine that never waits. Every message says which
 * call it belongs to, and a rank that waits looks at all its connections: ranks that called different things find out
 * before they use any data.
 */
export class Exchange {
  /** Moves made so far. */
  steps = 0;
  /** Whether only looking again tells all that is new. */
  polled = false;
  /** All that were ever added. */
  readonly #receives: ReceiveConnection[] = [];
  readonly #sends: SendConnection[] = [];
  /** Whether the call waits until its connections are there: for any rank that does not say that it waits, too. */
  isConnecting = false;
  /** Those that go on by system calls. */
  #sockets: readonly Connection[] = [];
  readonly #team: Team;
  readonly #memory: Uint8Array;
  readonly #words: Uint32Array;
  readonly #holdUps: HoldUps;
  readonly #answers = new WaitAnswers();
  /** Addresses of the current move; lists that are used again and again. */
  readonly #inputs: number[] = [];
  readonly #outputs: number[] = [];

  // The call under way.
  #tracks: readonly Track[] = [];
  #code = 0;
  #root = 0;
  #count = 0;
  #sequence = 0;
  /** Of calls with common counts; empty for others. */
  #counts: Uint8Array = none;

  /** @param team in whose segment slots lie */
  constructor(
    readonly rank: number,
    team: Team,
  ) {
    const memory = team.segment.buffer;
    this.#team = team;
    this.#holdUps = new HoldUps(rank);
    this.#memory = new Uint8Array(memory);
    this.#words = new Uint32Array(memory);
  }

  /** Connections that calls may use from now on. */
  add(sends: readonly SendConnection[], receives: readonly ReceiveConnection[]): void {
    this.#sends.push(...sends);
    this.#receives.push(...receives);
    this.polled = this.#all().some((connection) => connection.polled);
    this.#sockets = this.#all().filter(({ fd }) => fd >= 0);
  }

  /** Whether data go through sockets by system calls. */
  get hasSockets(): boolean {
    return this.#sockets.length > 0;
  }

  /** Whether a rank may wait without returning to its event loop. */
  get blocking(): boolean {
    return this.#all().every(({ transport }) => transport === 'shm');
  }

  /**
   * Goes to the next call. `code`, `root` and `count` are what all ranks have to call alike.
   * @param counts of a V form, where all have to give the same
   */
  call(code: number, root: number, count: number, counts: readonly number[] | undefined): void {
    this.#counts = counts === undefined ? none : new Uint8Array(Float64Array.from(counts).buffer);
    this.#code = code;
    this.#root = root;
    this.#count = count;
    this.#sequence = (this.#sequence + 1) >>> 0;
  }

  /** What the call consists of once the ranks have met for it. */
  replace(tracks: readonly Track[]): void {
    this.#tracks = tracks;
  }

  /** Begins work on the call. */
  begin(tracks: readonly Track[], spins: number): number {
    this.#tracks = tracks;
    return this.progress(spins);
  }

  /**
   * Makes all moves that can be made now, looking at most `spins` times at what has not come.
   * @throws InvalidUsageError `CALL_MISMATCH` when another rank called something else, RemoteError `RANK_DIED` and
   *   whatever else ends a connection.
   */
  progress(spins: number): number {
    const tracks = this.#tracks;
    while (true) {
      const before = this.steps;
      let busy = false;
      for (let t = 0; t < tracks.length; t++) {
        const track = tracks[t];
        if (track === undefined) continue;
        while (!track.done && this.#move(track)) this.steps++;
        busy ||= !track.done;
      }
      if (this.#flush() && !busy) return DONE;
      if (this.steps !== before) continue;
      if (spins-- > 0) continue;
      if (!this.polled) this.check();
      else this.#meetEarly();
      return PENDING;
    }
  }

  /** Hands to the kernel what it had no room for. True when all that was posted is on its way. */
  #flush(): boolean {
    let isFlushed = true;
    for (let i = 0; i < this.#sockets.length; i++) if (this.#sockets[i]?.flush() === false) isFlushed = false;
    return isFlushed;
  }

  /** Looks whether those that are waited for can still come, and whether anybody called something else. */
  check(): void {
    for (const track of this.#tracks) this.#awaitedBy(track)[0]?.check();
    for (const connection of this.#all()) {
      try {
        connection.check();
      } catch (error) {
        // One that has had all it needed may have closed already.
        if (!(error instanceof TcclError && error.code === 'CLOSED')) throw error;
      }
    }
    this.#meetEarly();
  }

  /** The ranks that hold this one up, as far as those that it waits for have told; see HoldUps. */
  late(limitMs: number): number[] {
    return this.#holdUps.find(this.#awaited(), limitMs);
  }

  /** What is known of a rank that this one waits for; see HoldUps. */
  doing(rank: number): string | undefined {
    return this.#holdUps.doing(rank);
  }

  /** The call under way; undefined before the first. */
  underWay(): Call | undefined {
    return this.#sequence === 0 ? undefined : decodeCall(this.#code, this.#root, this.#count);
  }

  /** Tells all that may wait for this rank that it waits itself, and in what. */
  sayWaits(limitMs: number, deed: Deed): readonly number[] {
    const report = this.#holdUps.look(this.#awaited(), limitMs, deed);
    for (const connection of this.#all()) connection.sayWaits(report);
    return report;
  }

  /** See Engine. */
  tellWaits(report: readonly number[]): void {
    if (this.#tracks.some(({ done }) => !done)) return;
    for (const connection of this.#all()) connection.sayWaits(report);
  }

  /** Tells those that said since the last time that they wait, while this rank is in no call, what it called last. */
  answerWaits(report: readonly number[]): void {
    this.#answers.give(this.#all(), report);
  }

  #awaited(): Connection[] {
    if (this.isConnecting) return this.#all();
    return this.#tracks.flatMap((track) => this.#awaitedBy(track));
  }

  /** Names what wakes this thread: the connections that are waited for, and those that have something left to send. */
  sleepOn(bed: Bed): void {
    let hasMembers = false;
    for (const connection of this.#awaited()) {
      if (connection.fd >= 0) bed.onFd(connection.fd, true, false);
      else if (connection.polled) hasMembers = true;
    }
    for (const connection of this.#all()) if (connection.fd >= 0 && !connection.flush()) bed.onFd(connection.fd, false, true);
    if (hasMembers) bed.onTeam(this.#team);
    this.#onNews(bed.wake);
  }

  /** Calls `wake` once when a socket has news that come in the event loop. */
  #onNews(wake: () => void): void {
    const all = this.#all().filter(({ transport }) => transport === 'socket');
    const listener = (): void => {
      for (const connection of all) connection.onNews(undefined);
      wake();
    };
    for (const connection of all) connection.onNews(listener);
  }

  /** Says goodbye to all. Resolves when all that was sent is on its way; the slots must live until then. */
  async close(): Promise<void> {
    this.#tracks = [];
    await Promise.all(this.#all().map((connection) => connection.close()));
  }

  abort(reason: Error): void {
    this.#tracks = [];
    for (const connection of this.#all()) connection.abort(reason);
  }

  /** The connections that a track waits for: for messages, or else for room. */
  #awaitedBy({ done, from, to }: Track): Connection[] {
    if (done) return [];
    const silent: Connection[] = from.filter((connection) => connection.peek() < 0);
    return silent.length > 0 ? silent : to.filter((connection) => connection.acquire() < 0);
  }

  #all(): Connection[] {
    return [...this.#sends, ...this.#receives];
  }

  /** Makes the track's current move if it can be made now. */
  #move(track: Track): boolean {
    const { from, to, bytes } = track;
    const inputs = this.#inputs;
    const outputs = this.#outputs;
    for (let i = 0; i < from.length; i++) {
      const slot = from[i]?.peek() ?? -1;
      if (slot < 0) return false;
      this.#meet(slot, from[i], bytes);
      inputs[i] = slot + HEADER_BYTES;
    }
    for (let i = 0; i < to.length; i++) {
      const slot = to[i]?.acquire() ?? -1;
      if (slot < 0) return false;
      outputs[i] = slot + HEADER_BYTES;
    }
    track.pass(inputs, outputs);
    const counts = this.#counts;
    for (let i = 0; i < to.length; i++) {
      const data = outputs[i] ?? 0;
      this.#describe(data - HEADER_BYTES);
      if (counts.length > 0) this.#memory.set(counts, data + bytes);
      to[i]?.post(HEADER_BYTES + bytes + counts.length);
    }
    track.finish();
    for (let i = 0; i < from.length; i++) from[i]?.release();
    return true;
  }

  #describe(slot: number): void {
    const header = slot / 4;
    const words = this.#words;
    words[header + CODE] = this.#code;
    words[header + ROOT] = this.#root;
    words[header + COUNT_LOW] = this.#count;
    words[header + COUNT_HIGH] = this.#count / 2 ** 32;
    words[header + SEQUENCE] = this.#sequence;
  }

  /** Compares what the sender of a message called, and sent, with what this rank did, and awaits. */
  #meet(slot: number, from: ReceiveConnection | undefined, bytes?: number): void {
    const header = slot / 4;
    const words = this.#words;
    const code = words[header + CODE] ?? 0;
    const root = words[header + ROOT] ?? 0;
    const count = (words[header + COUNT_LOW] ?? 0) + (words[header + COUNT_HIGH] ?? 0) * 2 ** 32;
    const peer = from?.peer ?? -1;
    const messageBytes = from?.messageBytes ?? 0;
    const countsBytes = hasCommonCounts(code) ? this.#counts.length : 0;
    if (code !== this.#code || root !== this.#root || count !== this.#count || words[header + SEQUENCE] !== this.#sequence) {
      const theirs = this.#memory.slice(slot + messageBytes - countsBytes, slot + messageBytes);
      const call = readCall(code, root, count);
      if (call === undefined) {
        throw new SystemError(
          'NETWORK',
          `a message from rank ${peer} to rank ${this.rank} was damaged on the way: 0x${code.toString(16)} is the code of no call; check the network and the memory of both hosts`,
          { rank: peer },
        );
      }
      throw callMismatch(
        {
          rank: this.rank,
          call: decodeCall(this.#code, this.#root, this.#count),
          counts: countsIn(this.#counts),
          number: this.#sequence,
        },
        { rank: peer, call, counts: countsIn(theirs), number: words[header + SEQUENCE] },
      );
    }
    const sent = messageBytes - countsBytes - HEADER_BYTES;
    if (bytes === undefined || bytes === sent) return;
    throw new InvalidUsageError(
      'CALL_MISMATCH',
      `rank ${peer} sends ${sent} bytes to rank ${this.rank}, which awaits ${bytes} in ${describeCall(decodeCall(code, root, count))}: their counts for each other differ`,
      { rank: peer, ranks: [this.rank, peer] },
    );
  }

  /**
   * Looks at all that came, whether this call awaits it or not. A message may also belong to a later call, of a rank that
   * is ahead.
   */
  #meetEarly(): void {
    const receives = this.#receives;
    for (let i = 0; i < receives.length; i++) {
      const receive = receives[i];
      let slot = -1;
      try {
        slot = receive?.peek() ?? -1;
      } catch (error) {
        if (!(error instanceof TcclError && error.code === 'CLOSED')) throw error;
      }
      if (slot >= 0 && this.#words[slot / 4 + SEQUENCE] === this.#sequence) this.#meet(slot, receive);
    }
  }
}

function countsIn({ buffer, byteOffset, length }: Uint8Array): readonly number[] | undefined {
  return length === 0 ? undefined : [...new Float64Array(buffer, byteOffset, length / 8)];
}
