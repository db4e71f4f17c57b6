import type { CallLimits } from '../runtime/algorithms/arguments.js';
import type { Communicator } from '../runtime/communicator/communicator.js';
import type { DataType } from '../runtime/device/types.js';
import { transferMismatch } from '../runtime/messages/p2p-transfer.js';
import { describeError, RemoteError, type TcclError, TimeoutError } from '../errors.js';
import type { DeviceMemory, DevicePeers, Part } from './memory.js';
import { copied } from './pipeline.js';
import { Turns, type Side } from './turns.js';

/** Messages of at most so many bytes travel in their header: as on the host, they do not wait for the receiver. */
const INLINE_BYTES = 4096;

/** Numbers of a header, of 8 bytes each; a handle and the bytes of a short message follow. */
const fields = { id: 0, way: 1, type: 2, count: 3, isQueued: 4, offset: 5, end: 6 } as const;

/** Ways of the bytes: in the header, from the sender's memory, or through memory of the host. */
const ways = { inline: 0, direct: 1, host: 2 } as const;

/** Tags of second messages: the bytes of one that goes through the host, and the receiver's answer, which is true if queued. */
const MOST_ID = 2 ** 23;
const dataTag = (id: number): number => 2 * id;
const answerTag = (id: number): number => 2 * id + 1;

/** A message of this rank's. */
export interface DeviceMessage<Buffer> {
  readonly array: Part<Buffer>;
  readonly type: DataType;
  readonly count: number;
  readonly peer: number;
  /** Resolves when the array can be used. */
  readonly ready: Promise<void>;
  readonly isQueued: boolean;
  readonly tag: { readonly tag?: number | undefined };
  readonly limits: () => CallLimits;
}

/**
 * Messages between devices that reach each other's memory. A header goes the host's way, so messages match as they do there. Then
 * the receiver copies the sender's memory, and answers:
 *
 *     sender    afterProgram  mark(sent)   header →            → answer  waitFor(taken)
 *     receiver                             → header  waitFor(sent)  queue(copy)  mark(taken)  answer →
 *
 * As for collectives, devices wait for each other only where a rank asks for a call that is queued.
 */
export class PeerMessages<Buffer> {
  readonly #comm: Communicator;
  /** For second messages, which the program's cannot match. */
  readonly #answers: Communicator;
  readonly #memory: DeviceMemory<Buffer>;
  readonly #peers: DevicePeers<Buffer>;
  #failure: TcclError | undefined;
  #nextId = 0;
  readonly #turns = new Turns();

  constructor(comm: Communicator, answers: Communicator, memory: DeviceMemory<Buffer>, peers: DevicePeers<Buffer>) {
    this.#comm = comm;
    this.#answers = answers;
    this.#memory = memory;
    this.#peers = peers;
    void comm.failed.then((failure) => {
      this.#failure = failure;
      answers.abort(failure.message);
    });
  }

  async send(message: DeviceMessage<Buffer>): Promise<void> {
    const { array, type, count, peer, ready, isQueued, tag, limits } = message;
    const peers = this.#peers;
    const { bytes, numbers, handle, inline } = headerOf(peers.handleBytes, Math.min(array.bytes, INLINE_BYTES));
    const id = this.#nextId++ % MOST_ID;
    const isDirect = peer !== this.#comm.rank && peers.canShare(array.buffer);
    const way = array.bytes <= INLINE_BYTES ? 'inline' : isDirect ? 'direct' : 'host';
    numbers.set([id, ways[way], type.code, count, Number(isQueued), array.offset]);
    const host = way === 'host' ? new Uint8Array(array.bytes) : inline;
    const prepare = async (): Promise<void> => {
      await ready;
      if (way !== 'direct') return array.bytes === 0 ? undefined : copied(this.#memory.read([array], host));
      peers.share(array.buffer, handle);
      peers.afterProgram();
      peers.mark('sent');
      if (!isQueued) await this.#reached();
    };
    const header = way === 'inline' ? bytes : bytes.subarray(0, bytes.length - inline.length);
    await this.#inOrder('send', prepare(), () => this.#comm.send(header, peer, { ...tag, ...limits() }));
    if (way === 'host') await this.#second(() => this.#answers.send(host, peer, { tag: dataTag(id), ...limits() }));
    if (way !== 'direct') return;
    const answer = new Uint8Array(1);
    await this.#second(async () => {
      try {
        const shown = { sends: true, count, type, tag: tag.tag ?? 0 };
        await this.#answers.recvWithin(shown, answer, peer, { tag: answerTag(id), ...limits() });
      } catch (error) {
        if (!(error instanceof TimeoutError)) throw error;
        const reason = `send: rank ${peer} did not take the message of rank ${this.#comm.rank} in time`;
        throw new TimeoutError('TIMEOUT', reason, { ranks: [peer], cause: error });
      }
    });
    if (answer[0] === 0) return;
    peers.waitFor('taken', peer);
    if (isQueued) peers.beforeProgram();
    else await this.#reached();
  }

  async receive({ array, type, count, peer, ready, isQueued, tag, limits }: DeviceMessage<Buffer>): Promise<void> {
    const peers = this.#peers;
    const { bytes, numbers, handle, inline } = headerOf(peers.handleBytes, INLINE_BYTES);
    const shown = { sends: false, count, type, tag: tag.tag ?? 0 };
    const post = (): Promise<unknown> => this.#comm.recvWithin(shown, bytes, peer, { ...tag, ...limits() });
    await this.#inOrder('recv', ready, post);
    const [id = 0, way, typeCode = 0, sent = 0, isSenderQueued, offset = 0] = numbers;
    if (typeCode !== type.code || sent !== count) {
      const error = transferMismatch(peer, typeCode, sent, this.#comm.rank, { type, count, atMost: false });
      this.#comm.abort(error.message);
      throw error;
    }
    if (way !== ways.direct) {
      const host = way === ways.inline ? inline.subarray(0, array.bytes) : new Uint8Array(array.bytes);
      if (way === ways.host) await this.#second(() => this.#answers.recv(host, peer, { tag: dataTag(id), ...limits() }));
      if (array.bytes > 0) await copied(this.#memory.write([array], host));
      return;
    }
    peers.afterProgram();
    if (isSenderQueued === 1) peers.waitFor('sent', peer);
    peers.queue({ sources: [{ buffer: peers.open(peer, handle), offset, bytes: array.bytes }], destinations: [array] });
    peers.mark('taken');
    if (isQueued) peers.beforeProgram();
    else await this.#reached();
    const answer = Uint8Array.of(Number(isQueued));
    await this.#second(() => this.#answers.send(answer, peer, { tag: answerTag(id), ...limits() }));
  }

  /** Every rank calls it, after its messages. */
  async close(): Promise<void> {
    await this.#answers.close();
  }

  /** Makes the host's call of a header when it is prepared, and after those of calls before, which match in this order. */
  async #inOrder(side: Side, prepared: Promise<void>, call: () => Promise<unknown>): Promise<void> {
    const turn = this.#turns.take([side]);
    try {
      await prepared;
      await turn.begin(call);
    } finally {
      turn.giveUp();
    }
  }

  /** Makes a call of the second communicator, which ends with the first one, and ends it. */
  async #second(call: () => Promise<unknown>): Promise<void> {
    try {
      await call();
    } catch (error) {
      if (this.#failure !== undefined) throw this.#failure;
      // The second communicator ends on another rank when the first one does there: what ended that is the reason.
      if (error instanceof RemoteError) await this.#comm.barrier();
      else this.#comm.abort(describeError(error));
      throw error;
    }
  }

  async #reached(): Promise<void> {
    await this.#peers.reached(() => this.#failure !== undefined);
    if (this.#failure !== undefined) throw this.#failure;
  }
}

function headerOf(
  handleBytes: number,
  inlineBytes: number,
): { readonly bytes: Uint8Array; readonly numbers: Float64Array; readonly handle: Uint8Array; readonly inline: Uint8Array } {
  const handleAt = 8 * fields.end;
  const bytes = new Uint8Array(handleAt + handleBytes + inlineBytes);
  return {
    bytes,
    numbers: new Float64Array(bytes.buffer, 0, fields.end),
    handle: bytes.subarray(handleAt, handleAt + handleBytes),
    inline: bytes.subarray(handleAt + handleBytes),
  };
}
