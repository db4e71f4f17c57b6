import { DONE, PENDING } from '../../device/kernels/kernels.js';
import { InvalidUsageError, SystemError, TcclError } from '../../../errors.js';
import { describeElements } from '../../device/types.js';
import type { AwaitedNews, Connection, ReceiveConnection, SendConnection } from '../../transport/transport.js';
import type { Team } from '../../device/team.js';
import type { PendingEnds } from '../../transport/peers.js';
import type { WakeSources } from '../../progress/parking.js';
import { decodeActivity, encodeActivity, type Activity } from '../activity.js';
import { ReportReplies, RequestedReports, WaitChains, type Awaited } from '../wait-chains.js';
import { hasCommonCounts } from '../call-traits.js';
import { decodeCall, describeCall, readCall, type Call } from '../call.js';
import { callMismatch } from '../mismatch.js';
import { oddRanks } from '../../bootstrap/rank-list.js';
import { defined } from '../../../defined.js';

/** Header in front of each message's data: the sender's call and its number. A line of its own keeps data aligned. */
export const HEADER_BYTES = 64;
const CODE = 0;
const ROOT = 1;
const COUNT_LOW = 2;
const COUNT_HIGH = 3;
const SEQUENCE = 4;
/** Number of words of the header that carry a value. */
export const HEADER_WORDS = 5;
/** Words of the header that an algorithm may use on connections in shared memory. */
export const OWN_WORDS = 8;
/** Word with the address of an announced output, where the other words are those of a header. */
const OUTPUT = OWN_WORDS;

/**
 * Room between header and data for the sender's counts, float64 by rank, in calls for which all ranks must give the same: an
 * error then shows the first difference.
 */
export function countsRoom(nRanks: number): number {
  return Math.ceil((nRanks * 8) / 128) * 128;
}

const none = new Uint8Array();

/**
 * A part of a rank's work in one operation that progresses independently of its other parts: moves, one after the other, on
 * connections that no other part uses meanwhile.
 */
export interface Track {
  /** True if all moves are done. The other fields describe the current move. */
  readonly done: boolean;
  /** False while the current move waits for other tracks; left out where none does. */
  readonly ready?: boolean;
  /** The move takes one message from each of these, */
  readonly from: readonly ReceiveConnection[];
  /** and sends one message on each of these. */
  readonly to: readonly SendConnection[];
  /** Length of the data in each of these messages. */
  readonly bytes: number;
  /** Address in the segment for the data of the only message of `from`; 0 for its slot. */
  readonly into: number;
  /** Address in the segment of the data of the messages to `to` when `pass` has returned; 0 for the slots. */
  readonly data: number;
  /**
   * Fills the messages to send.
   * @param inputs addresses of the data of the messages from `from`
   * @param outputs addresses for the data of the messages to `to`
   */
  pass(inputs: readonly number[], outputs: readonly number[]): void;
  /** Does the work that can wait until the messages are sent, and moves on to the next move. */
  finish(): void;
}

/** The connections that a track waits for, all for the same. */
interface Wait {
  readonly awaited: AwaitedNews;
  readonly connections: readonly Connection[];
}

const noWait: Wait = { awaited: 'message', connections: [] };

/** Outputs in shared memory that other ranks of the host may write, so that data for them need no slots. */
export interface Outputs {
  /** Sends the sender of a connection the place where this rank's output of the running call is: an address in the segment. */
  announce(receive: ReceiveConnection, address: number): void;
  /** Address of the output of a connection's receiver, if it is in the same call and has announced it; otherwise 0. */
  announced(send: SendConnection): number;
}

/**
 * The messages of a rank's calls, one call at a time, as a state machine that never waits. Every message contains its call,
 * and a waiting rank polls all its connections: ranks with different calls detect that before they use any data.
 */
export class Exchange implements Outputs {
  /** Number of moves made so far. */
  steps = 0;
  /** True if news is found only by polling. */
  polled = false;
  /** All connections ever added, and those that receive. */
  readonly #connections = new Set<Connection>();
  readonly #receives: ReceiveConnection[] = [];
  /**
   * While the call waits until its connections are made: the ends that are missing yet. Without any, it may wait for each rank
   * that does not report a wait.
   */
  pending: PendingEnds | undefined;
  /** Those whose polls are no system calls. */
  #inMemory: readonly ReceiveConnection[] = [];
  /** Connections that use system calls. */
  #sockets: readonly Connection[] = [];
  /** Connections that return slots late. */
  #returning: readonly ReceiveConnection[] = [];
  /** True if a move has to wait for a slot. */
  #lacksSlots = false;
  /** Connections that confirm messages at the end of a call. */
  #settling: readonly ReceiveConnection[] = [];
  readonly #team: Team;
  readonly #memory: Uint8Array;
  readonly #words: Uint32Array;
  readonly #waitChains: WaitChains;
  readonly #answers = new ReportReplies();
  /** Addresses of the current move, in lists that are reused. */
  readonly #inputs: number[] = [];
  readonly #outputs: number[] = [];

  // State of the running call.
  #tracks: readonly Track[] = [];
  #code = 0;
  #root = 0;
  #count = 0;
  #sequence = 0;
  /** This rank's counts, in calls with common counts; empty in others. */
  #counts: Uint8Array = none;
  /** Length of what precedes the data in a message. */
  #headBytes = HEADER_BYTES;

  /** @param team owner of the segment with the slots */
  constructor(
    readonly rank: number,
    team: Team,
    readonly requested = new RequestedReports(0),
  ) {
    const memory = team.segment.buffer;
    this.#team = team;
    this.#waitChains = new WaitChains(rank);
    this.#memory = new Uint8Array(memory);
    this.#words = new Uint32Array(memory);
  }

  /** Adds connections that calls may use from now on. */
  add(sends: readonly SendConnection[], receives: readonly ReceiveConnection[]): void {
    for (const connection of [...sends, ...receives]) this.#connections.add(connection);
    this.#receives.push(...receives);
    this.polled = this.#all().some((connection) => connection.polled);
    this.#sockets = this.#all().filter(({ fd }) => fd >= 0);
    this.#inMemory = this.#receives.filter(({ fd }) => fd < 0);
    this.#settling = this.#receives.filter((receive) => 'settle' in receive);
    this.#returning = this.#receives.filter((receive) => 'returnSlots' in receive);
  }

  /** True if data go through sockets by system calls. */
  get hasSockets(): boolean {
    return this.#sockets.length > 0;
  }

  /** True if a rank may wait without returning to its event loop. */
  get blocking(): boolean {
    return this.#all().every(({ polled }) => polled);
  }

  /**
   * Moves on to the next call. `code`, `root` and `count` must be the same on all ranks.
   * @param counts of a V form for which all ranks must give the same
   */
  call(code: number, root: number, count: number, counts: readonly number[] | undefined): void {
    this.#counts = counts === undefined ? none : new Uint8Array(Float64Array.from(counts).buffer);
    this.#headBytes = HEADER_BYTES + (counts === undefined ? 0 : countsRoom(counts.length));
    this.#code = code;
    this.#root = root;
    this.#count = count;
    this.#sequence = (this.#sequence + 1) >>> 0;
  }

  /** Sets the tracks of the call once the ranks have met for it. */
  replace(tracks: readonly Track[]): void {
    this.#tracks = tracks;
  }

  announce({ receiverLine }: ReceiveConnection, address: number): void {
    if (receiverLine === undefined) return;
    const line = receiverLine / 4;
    const words = this.#words;
    words[line + CODE] = this.#code;
    words[line + ROOT] = this.#root;
    words[line + COUNT_LOW] = this.#count;
    words[line + COUNT_HIGH] = this.#count / 2 ** 32;
    words[line + OUTPUT] = address;
    Atomics.store(words, line + SEQUENCE, this.#sequence);
  }

  announced({ receiverLine }: SendConnection): number {
    if (receiverLine === undefined) return 0;
    const line = receiverLine / 4;
    const words = this.#words;
    // The sequence is written last.
    if (Atomics.load(words, line + SEQUENCE) !== this.#sequence || !this.#isOfThisCall(line)) return 0;
    return defined(words[line + OUTPUT]);
  }

  /** True if the words from `line` on describe the running call. */
  #isOfThisCall(line: number): boolean {
    const words = this.#words;
    return (
      words[line + CODE] === this.#code &&
      words[line + ROOT] === this.#root &&
      countAt(words, line) === this.#count &&
      words[line + SEQUENCE] === this.#sequence
    );
  }

  /** Begins work on the call. */
  begin(tracks: readonly Track[], spins: number): number {
    this.#tracks = tracks;
    return this.progress(spins);
  }

  /**
   * Makes all moves that are possible now, with at most `spins` polls for missing messages.
   * @throws InvalidUsageError `CALL_MISMATCH` when another rank called something else, RemoteError `RANK_DIED` and other
   *   errors that end a connection
   */
  progress(spins: number): number {
    const tracks = this.#tracks;
    while (true) {
      const before = this.steps;
      let busy = false;
      for (let t = 0; t < tracks.length; t++) {
        const track = tracks[t];
        if (track === undefined) continue;
        while (!track.done && track.ready !== false && this.#move(track)) {
          this.steps++;
          // Copies without messages let the other tracks send and receive in between.
          if (track.from.length + track.to.length === 0) break;
        }
        busy ||= !track.done;
      }
      if (this.#flush() && !busy) {
        for (let i = 0; i < this.#settling.length; i++) this.#settling[i]?.settle?.();
        return DONE;
      }
      if (this.steps !== before) continue;
      if (this.#lacksSlots) this.#returnSlots();
      if (spins-- > 0) continue;
      if (!this.polled) this.check();
      else this.#meetEarly(this.#inMemory);
      return PENDING;
    }
  }

  #returnSlots(): void {
    this.#lacksSlots = false;
    for (let i = 0; i < this.#returning.length; i++) this.#returning[i]?.returnSlots?.();
  }

  /** Hands unsent bytes to the kernel. Returns true once all posted messages are handed over. */
  #flush(): boolean {
    let isFlushed = true;
    for (let i = 0; i < this.#sockets.length; i++) if (this.#sockets[i]?.flush() === false) isFlushed = false;
    return isFlushed;
  }

  /** Checks whether the awaited ranks can still arrive, and whether any rank made a different call. */
  check(): void {
    for (const track of this.#tracks) this.#awaitedBy(track).connections[0]?.check();
    for (const connection of this.#all()) {
      try {
        connection.check();
      } catch (error) {
        // A rank that has received everything may have closed already.
        if (!(error instanceof TcclError && error.code === 'CLOSED')) throw error;
      }
    }
    this.#meetEarly(this.#receives);
  }

  /** The ranks that hold this one up, from the reports of the ranks that it waits for; see WaitChains. */
  late(limitMs: number): number[] {
    return this.#waitChains.find(this.#awaited(), limitMs);
  }

  /** Text of an awaited rank's activity; see WaitChains. */
  doing(rank: number): string | undefined {
    return this.#waitChains.doing(rank);
  }

  /** Number of the running call, from 0. */
  get #number(): number {
    return this.#sequence - 1;
  }

  /** The running call; undefined before the first. */
  underWay(): Call | undefined {
    return this.#sequence === 0 ? undefined : decodeCall(this.#code, this.#root, this.#count);
  }

  /**
   * Reports to all ranks that may wait for this one that it waits, and in which operation.
   * @throws InvalidUsageError `CALL_MISMATCH` if a rank that it waits for waits in another call
   */
  reportWait(limitMs: number, activity: Activity): readonly number[] {
    const report = this.#waitChains.look(this.#awaited(), limitMs, activity);
    for (const connection of this.#all()) connection.reportWait(report);
    this.requested.ask(this.awaitedRanks());
    if (activity.kind === 'collective') this.#compareWaits(activity);
    return report;
  }

  /** Compares calls with one number: those of two algorithms may wait for each other without messages on a common connection. */
  #compareWaits({ number, call }: Extract<Activity, { readonly call: Call }>): void {
    for (const rank of this.awaitedRanks()) {
      const theirs = this.#waitChains.activityOf(rank);
      if (theirs?.kind !== 'collective' || theirs.number !== number || describeCall(theirs.call) === describeCall(call)) continue;
      throw callMismatch({ rank: this.rank, call, number }, { rank, call: theirs.call, number });
    }
  }

  /** See Engine. */
  forwardReport(report: readonly number[]): void {
    if (this.#tracks.some(({ done }) => !done)) return;
    for (const connection of this.#all()) connection.reportWait(report);
  }

  /** If this rank is in no call, reports its last call to ranks that have reported a wait since. */
  answerWaits(report: readonly number[]): void {
    this.#answers.give(this.#all(), report);
  }

  /** All sources of reports of the awaited ranks: one that still makes connections reports on those that it had before. */
  #awaited(): Awaited[] {
    return this.awaitedRanks().flatMap((rank) => [
      ...this.#all().filter(({ peer }) => peer === rank),
      ...this.requested.of(rank),
    ]);
  }

  #waits(): readonly Wait[] {
    return this.#tracks.map((track) => this.#awaitedBy(track));
  }

  /** The ranks that the call under way waits for. */
  awaitedRanks(): readonly number[] {
    const { pending } = this;
    const ends = pending === undefined ? this.#waits().flatMap(({ connections }) => connections) : [...pending];
    return [...new Set((ends.length > 0 || pending === undefined ? ends : this.#all()).map(({ peer }) => peer))];
  }

  /** Registers the wake sources of this thread: awaited connections, and connections with unsent bytes. */
  wakeOn(sources: WakeSources): void {
    const all = this.#all();
    let hasMembers = false;
    for (const { awaited, connections } of this.#waits()) {
      for (const connection of connections) {
        connection.wakeOn(sources, awaited);
        if (connection.fd < 0 && connection.polled) hasMembers = true;
      }
    }
    for (const connection of all) connection.wakeOn(sources);
    if (hasMembers) sources.addTeam(this.#team);
    this.#onNews(sources.wake);
  }

  /** Calls `wake` once when the event loop has news of a connection. */
  #onNews(wake: () => void): void {
    const all = this.#all();
    const listener = (): void => {
      for (const connection of all) connection.onNews(undefined);
      wake();
    };
    for (const connection of all) connection.onNews(listener);
  }

  /** Sends a goodbye to all, with the last call. Resolves when everything is sent; the slots must stay allocated until then. */
  async close(): Promise<void> {
    const call = this.underWay();
    const last = call && encodeActivity({ kind: 'left', number: this.#number, call });
    this.#tracks = [];
    await Promise.all(this.#all().map((connection) => connection.close(last)));
  }

  /**
   * The reason for an error of the running call. A rank that has closed after another call in the place of this one has left
   * because its calls differ; its message that would show it may be on its way on another connection. One that was lost may have
   * taken messages of this call along.
   */
  reasonOf(error: unknown): unknown {
    const call = this.underWay();
    if (!(error instanceof TcclError && error.code === 'CLOSED') || call === undefined) return error;
    const ends = this.#all().filter(({ peer }) => peer === error.rank);
    if (ends.some((connection) => leftAfter(connection) === undefined && hasEnded(connection))) return error;
    const last = ends.map(leftAfter).find((one) => one !== undefined);
    if (last === undefined || last.number < this.#number) return error;
    if (last.number === this.#number && describeCall(last.call) === describeCall(call)) return error;
    return callMismatch(
      { rank: this.rank, call, number: this.#number },
      { rank: defined(error.rank), call: last.call, number: last.number },
    );
  }

  abort(reason: Error): void {
    this.#tracks = [];
    for (const connection of this.#all()) connection.abort(reason);
  }

  /** The connections that a track waits for: for messages, otherwise for free slots. */
  #awaitedBy({ done, ready, from, to }: Track): Wait {
    if (done || ready === false) return noWait;
    const silent = from.filter((connection) => connection.peek() < 0);
    if (silent.length > 0) return { awaited: 'message', connections: silent };
    return { awaited: 'slot', connections: to.filter((connection) => connection.acquire() < 0) };
  }

  #all(): Connection[] {
    return [...this.#connections];
  }

  /** Makes the track's current move if it is possible now. */
  #move(track: Track): boolean {
    const { from, to, bytes, into } = track;
    const counts = this.#counts;
    const headBytes = this.#headBytes;
    const inputs = this.#inputs;
    const outputs = this.#outputs;
    for (let i = 0; i < from.length; i++) {
      const receive = defined(from[i]);
      const slot = into === 0 ? receive.peek() : (receive.peekInto?.(headBytes, into, bytes) ?? -1);
      if (slot < 0) return false;
      this.#meet(slot, receive, bytes);
      inputs[i] = receive.isInPlace === true ? into : slot + headBytes;
    }
    for (let i = 0; i < to.length; i++) {
      const slot = defined(to[i]).acquire();
      if (slot < 0) {
        this.#lacksSlots = true;
        return false;
      }
      outputs[i] = slot + headBytes;
    }
    track.pass(inputs, outputs);
    for (let i = 0; i < to.length; i++) {
      const slot = defined(outputs[i]) - headBytes;
      this.#describe(slot);
      if (counts.length > 0) this.#memory.set(counts, slot + HEADER_BYTES);
      if (track.data === 0) to[i]?.post(headBytes + bytes);
      else to[i]?.postFrom?.(headBytes, track.data, bytes);
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

  /** Compares the sender's call and message length with this rank's call and the expected length. */
  #meet(slot: number, from: ReceiveConnection, bytes?: number): void {
    const header = slot / 4;
    const words = this.#words;
    const code = defined(words[header + CODE]);
    const root = defined(words[header + ROOT]);
    const count = countAt(words, header);
    const { peer, messageBytes } = from;
    if (!this.#isOfThisCall(header)) {
      const theirs = this.#memory.slice(
        slot + HEADER_BYTES,
        slot + HEADER_BYTES + (hasCommonCounts(code) ? this.#counts.length : 0),
      );
      const call = readCall(code, root, count);
      if (call === undefined) {
        throw new SystemError(
          'NETWORK',
          `a message from rank ${peer} to rank ${this.rank} was damaged on the way: 0x${code.toString(16)} is not the code of a call; check the network and the memory of both hosts`,
          { rank: peer },
        );
      }
      throw callMismatch(
        {
          rank: this.rank,
          call: decodeCall(this.#code, this.#root, this.#count),
          counts: countsIn(this.#counts),
          number: this.#number,
        },
        { rank: peer, call, counts: countsIn(theirs), number: defined(words[header + SEQUENCE]) - 1 },
      );
    }
    const sent = messageBytes - this.#headBytes;
    if (bytes === undefined || bytes === sent) return;
    const call = decodeCall(code, root, count);
    const elements = (length: number): string => describeElements(length / call.type.bytes, call.type);
    throw new InvalidUsageError(
      'CALL_MISMATCH',
      `rank ${peer} sends ${elements(sent)} to rank ${this.rank}, which expects ${elements(bytes)}, in a message of ${describeCall(call)}: their counts for each other differ`,
      { ranks: oddRanks([[this.rank], [peer]]) },
    );
  }

  /**
   * Checks all messages that have arrived on these connections, whether this call waits for them or not. A message may also
   * belong to a later call, of a rank that is ahead.
   */
  #meetEarly(receives: readonly ReceiveConnection[]): void {
    for (const receive of receives) {
      let slot = -1;
      try {
        slot = receive.peek();
      } catch (error) {
        if (!(error instanceof TcclError && error.code === 'CLOSED')) throw error;
      }
      if (slot >= 0 && this.#words[slot / 4 + SEQUENCE] === this.#sequence) this.#meet(slot, receive);
    }
  }
}

/** The last call of a rank, which its goodbye on a connection carried. */
function leftAfter(connection: Connection): Extract<Activity, { readonly call: Call }> | undefined {
  const report = connection.waitReport();
  const last = report && decodeActivity(report.words);
  return last?.kind === 'left' ? last : undefined;
}

function hasEnded(connection: Connection): boolean {
  try {
    connection.check();
    return false;
  } catch {
    return true;
  }
}

/** The count of a call that the words from `line` on describe. */
function countAt(words: Uint32Array, line: number): number {
  return defined(words[line + COUNT_LOW]) + defined(words[line + COUNT_HIGH]) * 2 ** 32;
}

function countsIn({ buffer, byteOffset, length }: Uint8Array): readonly number[] | undefined {
  return length === 0 ? undefined : [...new Float64Array(buffer, byteOffset, length / 8)];
}
