import { createHmac, timingSafeEqual } from '#platform/crypto';
import { SystemError } from '../../../errors.js';
import { randomBytes } from '../../platform/platform.js';

const NONCE_BYTES = 32;
const PROOF_BYTES = 32;
const TAG_BYTES = 8;

/** Length of the sender's answer. */
export const WELCOME_BYTES = PROOF_BYTES;
/** Longest hello: a worker's address is some hundred bytes, and more with many network cards. */
export const MOST_HELLO_BYTES = 16 * 1024;

/** Tags of a connection's messages. */
export interface Tags {
  readonly data: bigint;
  /** Notes to the receiver, and to the sender. */
  readonly toReceiver: bigint;
  readonly toSender: bigint;
}

/** The ranks of a connection. */
export interface Ends {
  readonly sender: number;
  readonly receiver: number;
}

/**
 * Handshake of a connection. UCX accepts every connection, so both sides prove first that they know the communicator's secret.
 * All tags are derived from it, so messages of senders without the secret are never received.
 *
 *     sender                                             receiver
 *        nonce, worker's address   ── bootstrap ──►
 *                                  ◄──   UCX    ──       hello: nonce, proof, worker's address
 *        welcome: proof            ──    UCX    ──►
 */
export class SenderHandshake {
  readonly #secret: Uint8Array;
  readonly #ends: Ends;
  readonly #nonce = randomBytes(NONCE_BYTES);

  constructor(secret: Uint8Array, ends: Ends) {
    this.#secret = secret;
    this.#ends = ends;
  }

  /** Information for the receiver, over the bootstrap network. */
  info(address: Uint8Array): Uint8Array {
    return Buffer.concat([this.#nonce, address]);
  }

  get helloTag(): bigint {
    return helloTag(this.#secret, this.#ends, this.#nonce);
  }

  /** @throws SystemError `NETWORK` when the other side does not know the secret */
  accept(hello: Uint8Array): { readonly address: Uint8Array; readonly tags: Tags; readonly welcome: Uint8Array } {
    const nonce = hello.subarray(0, NONCE_BYTES);
    const address = hello.subarray(NONCE_BYTES + PROOF_BYTES);
    const session = new Session(this.#secret, this.#ends, this.#nonce, nonce);
    if (
      hello.length < NONCE_BYTES + PROOF_BYTES ||
      !isSame(session.proof('receiver', address), hello.subarray(NONCE_BYTES, NONCE_BYTES + PROOF_BYTES))
    )
      throw stranger(this.#ends.receiver);
    return { address, tags: session.tags(), welcome: session.proof('sender') };
  }
}

/** The receiver's part. */
export class ReceiverHandshake {
  /** Address of the sender's worker. */
  readonly address: Uint8Array;
  readonly tags: Tags;
  readonly helloTag: bigint;
  readonly #ends: Ends;
  readonly #nonce = randomBytes(NONCE_BYTES);
  readonly #session: Session;

  /** @param info of the sender */
  constructor(secret: Uint8Array, ends: Ends, info: Uint8Array) {
    if (info.length <= NONCE_BYTES) throw stranger(ends.sender);
    const theirs = info.subarray(0, NONCE_BYTES);
    this.#ends = ends;
    this.address = info.subarray(NONCE_BYTES);
    this.helloTag = helloTag(secret, ends, theirs);
    this.#session = new Session(secret, ends, theirs, this.#nonce);
    this.tags = this.#session.tags();
  }

  /** First message to the sender. @param address of this rank's worker */
  hello(address: Uint8Array): Uint8Array {
    return Buffer.concat([this.#nonce, this.#session.proof('receiver', address), address]);
  }

  /** @throws SystemError `NETWORK` when the other side does not know the secret */
  checkWelcome(welcome: Uint8Array): void {
    if (!isSame(this.#session.proof('sender'), welcome)) throw stranger(this.#ends.sender);
  }
}

/** Proofs and tags of one connection. */
class Session {
  readonly #secret: Uint8Array;
  readonly #about: Buffer;

  constructor(secret: Uint8Array, ends: Ends, sendersNonce: Uint8Array, receiversNonce: Uint8Array) {
    this.#secret = secret;
    this.#about = Buffer.concat([named(ends), sendersNonce, receiversNonce]);
  }

  proof(side: 'sender' | 'receiver', address: Uint8Array = new Uint8Array()): Buffer {
    return derive(this.#secret, side, Buffer.concat([this.#about, address]));
  }

  tags(): Tags {
    const bytes = derive(this.#secret, 'tags', this.#about);
    const tag = (index: number): bigint => bytes.readBigUInt64LE(index * TAG_BYTES);
    return { data: tag(0), toReceiver: tag(1), toSender: tag(2) };
  }
}

/** Tag of the first message, which is derived from the secret. */
function helloTag(secret: Uint8Array, ends: Ends, sendersNonce: Uint8Array): bigint {
  return derive(secret, 'hello', Buffer.concat([named(ends), sendersNonce])).readBigUInt64LE(0);
}

function named({ sender, receiver }: Ends): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt32LE(sender, 0);
  bytes.writeUInt32LE(receiver, 4);
  return bytes;
}

function derive(secret: Uint8Array, purpose: string, about: Uint8Array): Buffer {
  return createHmac('sha256', secret).update(`tccl ucx ${purpose}\0`).update(about).digest();
}

function isSame(mine: Uint8Array, theirs: Uint8Array): boolean {
  return mine.length === theirs.length && timingSafeEqual(mine, theirs);
}

function stranger(rank: number): SystemError {
  return new SystemError(
    'NETWORK',
    `the program that answers for rank ${rank} by UCX does not know the secret of this communicator`,
    { rank },
  );
}
