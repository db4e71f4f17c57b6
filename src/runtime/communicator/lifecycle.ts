import type { CallQueue } from '../algorithms/call-queue.js';
import { raiseTeamAbort } from '../algorithms/memory/direct-engine.js';
import { ownFaultOf } from '#seam/bootstrap/liveness';
import { withHosts } from '../bootstrap/peer-info.js';
import type { CallRecorder } from '../device/board.js';
import { rankStates } from '../device/rank-lines.js';
import { describeError, InternalError, ofCall, RemoteError, SystemError, TcclError, withRank } from '../../errors.js';
import { onExit } from '../exit.js';
import { Ending } from '../failure/ending.js';
import { graceMs } from '../failure/grace.js';
import { silenceOf } from '../failure/silence.js';
import { packReason } from '../failure/transfer.js';
import type { Messenger } from '../messages/messenger.js';
import { clearInterval, setInterval, type Timer } from '../platform/platform.js';
import { named } from '../warn.js';
import type { OutOfBandCalls } from './out-of-band.js';
import type { CommunicatorParts } from '../resources/shared-resources.js';

/** Activities of a communicator, which its end stops. */
interface Work {
  readonly queue: CallQueue;
  readonly messenger: Messenger;
  readonly outOfBand: OutOfBandCalls;
  readonly recorder: CallRecorder;
  /** Keeps the arrays that other ranks may still write after a failure. */
  readonly abandonArrays: () => void;
  /** Called once this rank has left. */
  readonly left: () => void;
}

/** The life of a communicator on this rank: failure, abort, close. docs/notes/failures.md has its states. */
export class Lifecycle {
  /** Error with which the communicator failed. */
  readonly ending = new Ending<TcclError>();
  /** The same, or the failure of another rank, which may come sooner. */
  readonly #news = new Ending<TcclError>();
  readonly #rank: number;
  #parts: CommunicatorParts;
  #work: Work | undefined;
  #stopExit: () => void = () => undefined;
  #stopNews: () => void = () => undefined;
  /** Checks whether calls still make progress after another rank has failed. */
  #newsWatch: Timer | undefined;
  #closing: Promise<void> | undefined;
  #hasLeft = false;
  /** False once a rank of the communicator has failed, or it is being closed. A field, because each call reads it. */
  isUsable = true;

  constructor(parts: CommunicatorParts) {
    this.#parts = parts;
    this.#rank = parts.bootstrap.rank;
  }

  /** Begins to watch for failures of other ranks, which end this work. */
  begin(work: Work): void {
    const { bootstrap } = this.#parts;
    this.#work = work;
    const stopNews = [
      bootstrap.onFailure((error) => this.#failSoon(error)),
      // A call that is under way may have all that it needs; later ones do not begin.
      bootstrap.onDeath((error) => {
        if (!this.#isPending) this.fail(error);
      }),
    ];
    this.#stopNews = () => {
      for (const stop of stopNews) stop();
    };
    this.#stopExit = onExit(this.#exit);
  }

  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** Resolves with the reason once the communicator has failed, or another rank of it has. Later calls are refused. */
  whenFailed(): Promise<TcclError> {
    return this.#news.whenEnded();
  }

  /**
   * The reason for which a call is refused; undefined if this rank has closed the communicator before. If another rank has failed
   * and no call is pending, the communicator ends.
   */
  refusal(call: string): TcclError | undefined {
    const news = this.isClosing ? undefined : this.#news.reason;
    if (this.ending.reason !== undefined || news === undefined) return this.ending.reason;
    return this.#isPending ? news : this.fail(news, call);
  }

  get #isPending(): boolean {
    return this.#work !== undefined && (this.#work.queue.isPending || this.#work.messenger.isPending);
  }

  // ── failure ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Ends the communicator for a reason of this rank, which all ranks get. */
  abort(error: RemoteError): void {
    if (this.#hasLeft) return;
    if (this.ending.reason === undefined) this.#parts.team.recordFailure(packReason(error));
    this.#end(error);
  }

  /**
   * Ends the communicator for any error of an operation, also an unexpected one, so that the other ranks do not wait without end.
   * Returns the error to throw.
   *
   * @param ofRank call of this rank that the error ended
   */
  fail(cause: unknown, ofRank?: string): TcclError {
    if (this.#hasLeft) return withRank(asTcclError(cause, this.#rank), this.#rank);
    const call = ofRank ?? this.#work?.queue.waiting ?? this.#work?.messenger.waiting;
    const error = this.#placed(this.#firstReason(cause));
    // The other ranks get the message without this rank's call.
    this.#end(error);
    return call === undefined ? error : ofCall(error, call);
  }

  /**
   * The failure of another rank that was known before, for a rank that gave up or left because of it; and for one that died
   * after it had ended the communicator.
   */
  #firstReason(cause: unknown): unknown {
    if (!(cause instanceof RemoteError)) return cause;
    if (cause.code === 'RANK_DIED') return this.#parts.team.recordedFailure() ?? cause;
    return cause.code === 'ABORTED' || cause.code === 'CLOSED' ? (this.#news.reason ?? cause) : cause;
  }

  /** The error with names of hosts and of this communicator, as its calls throw it. */
  #placed(cause: unknown): TcclError {
    const error = this.#unlessAlive(asTcclError(cause, this.#rank));
    if (this.ending.reason === undefined) error.message = this.named(error.message, error.rank);
    return withRank(error, this.#rank);
  }

  /**
   * The same error, or NETWORK if its rank did not die: another host may take a rank of this host for dead, if one of several
   * networks between them fails; and a host whose own interface is down reaches no other.
   */
  #unlessAlive(error: TcclError): TcclError {
    const { team, bootstrap, resources } = this.#parts;
    const { rank = -1 } = error;
    const silence = silenceOf(error);
    if (error.code !== 'RANK_DIED' || silence === undefined) return error;
    // Only a team of all ranks of the host knows about them.
    const local = resources.facts.shared ? bootstrap.localRanks.indexOf(rank) : -1;
    // A rank that has just been killed may still look alive; one that has failed may already have ended.
    const lives = rank === this.#rank || (local >= 0 && (!team.isGone(local) || team.recordedFailure() !== undefined));
    if (!lives) return silence.isOfOwnInterface ? new SystemError('NETWORK', error.message) : error;
    const fault = ownFaultOf(silence);
    const reason = fault === undefined ? 'another host' : `${fault}; another host`;
    return new SystemError('NETWORK', `rank ${rank} lives, but ${reason} reports: ${error.message}`, { rank });
  }

  /**
   * Adds the hosts of ranks and the communicator's name to a message. Another rank's error may already have them.
   * @param about rank that the message is about
   */
  named(text: string, about?: number): string {
    const { bootstrap, config } = this.#parts;
    return named(withHosts(text, bootstrap.peers, about), config.name);
  }

  #end(error: TcclError): void {
    if (this.ending.reason !== undefined) return;
    const {
      team,
      bootstrap,
      engine,
      waitQueries,
      resources: {
        recording,
        facts: { shared },
      },
    } = this.#parts;
    this.isUsable = false;
    this.ending.end(error);
    this.#news.end(error);
    this.#stopWatching();
    this.#work?.recorder.fail();
    this.#work?.abandonArrays();
    this.#work?.messenger.abort(error);
    engine.abort(error);
    // Wake ranks that are blocked outside the engine.
    raiseTeamAbort(team, shared ? bootstrap.localRanks : [this.#rank], error);
    bootstrap.fail(error);
    this.#work?.queue.abort(error);
    waitQueries?.close();
    recording?.write();
  }

  /**
   * Handles the failure of another rank. Its data may still be in flight, so a call under way ends with this error only if it
   * makes no progress, whichever ranks it waits for. No call begins any more: other ranks could take it for one of theirs.
   */
  #failSoon(error: Error): void {
    if (this.ending.reason !== undefined || this.#newsWatch !== undefined) return;
    this.isUsable = false;
    this.#news.end(this.#placed(this.#firstReason(error)));
    const { engine, pointToPoint } = this.#parts;
    let stepsBefore = -1;
    this.#newsWatch = setInterval(() => {
      const steps = engine.steps + pointToPoint.inFlight.steps;
      if (!this.#isPending) stepsBefore = -1;
      else if (steps !== stepsBefore) stepsBefore = steps;
      else this.fail(error);
    }, graceMs.progressAfterFailure).unref();
  }

  #stopWatching(): void {
    this.#stopNews();
    clearInterval(this.#newsWatch);
  }

  // ── leaving ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Leaves when everything that was started has ended. */
  close(): Promise<void> {
    this.isUsable = false;
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { waitQueries, engine, team, resources, bootstrap } = this.#parts;
    await this.#work?.outOfBand.ended();
    await this.#work?.queue.drained();
    await this.#work?.messenger.close();
    this.#stopExit();
    this.#stopWatching();
    waitQueries?.close();
    // Also after a failure: data may still arrive from the segment.
    await engine.close();
    this.#work?.recorder.close();
    team.leave();
    resources.leave();
    await bootstrap.close();
    this.#hasLeft = true;
    this.#work?.left();
    // The program may keep a closed communicator: drop what leads to the memory, which takes 10 GB of addresses.
    this.#work = undefined;
    this.#parts = undefined as never;
    this.#stopExit = this.#stopNews = () => undefined;
  }

  /** Reports to the other ranks that this process exits in order without close(), so that they need not detect it. */
  readonly #exit = (exitCode: number): void => {
    if (exitCode !== 0) return;
    const { team, engine, bootstrap } = this.#parts;
    // A goodbye now could reach others before the news of the failure; they would then blame this rank.
    const news = this.#news.reason;
    if (news !== undefined) this.#end(news);
    team.segment.ranks.setState(rankStates.closed);
    if (this.ending.reason !== undefined) return;
    team.leave();
    void engine.close();
    void this.#work?.messenger.leave();
    void bootstrap.close();
  };
}

function asTcclError(error: unknown, rank: number): TcclError {
  if (error instanceof TcclError) return error;
  return new InternalError('INTERNAL', `rank ${rank} failed: ${describeError(error)}`, { cause: error });
}
