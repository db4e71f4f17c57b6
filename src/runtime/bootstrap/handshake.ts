import { createHmac, timingSafeEqual } from '#platform/crypto';
import { randomBytes } from '../platform/platform.js';

/*
 * Handshake of a connection: both sides prove that they know the secret, without sending it.
 *
 *     connector                                   acceptor
 *        hello: who, to whom, job, nonce ──►
 *                                        ◄──      challenge: nonce
 *        proof = HMAC(secret, both)      ──►
 *                                        ◄──      welcome: the first record, sealed with a key from secret and both
 *
 * An acceptor of another job answers the hello with a fixed text, and closes. Until the acceptor trusts the connector, every
 * message has a fixed length. The nonces make keys that no other connection has, so recordings of one connection are useless on
 * another. A connector without the secret learns one nonce. Messages are authentic, not encrypted: anybody who can read the
 * network can read them.
 */

export const HELLO_BYTES = 56;
export const CHALLENGE_BYTES = 32;
export const CONNECTOR_PROOF_BYTES = 32;

const MAGIC = 'tccl';
const PROTOCOL = 2;

/** In place of a challenge: the acceptor belongs to another job. No random challenge has these bytes. */
export const otherJobAnswer = Buffer.from('tccl: another job meets here'.padEnd(CHALLENGE_BYTES));

/** Purpose of a connection. Data connections belong to the transports and go from the receiving rank to the sending one. */
export const purposes = { checkIn: 1, answer: 2, peer: 3, data: 4 } as const;
type Purpose = (typeof purposes)[keyof typeof purposes];

/** In place of a rank number: the root. */
export const ROOT_RANK = 0xffffffff;

/** First message of a handshake: both ends, and the purpose. */
export interface Greeting {
  readonly purpose: Purpose;
  readonly from: number;
  readonly to: number;
  /** Tag of the job (unique-id.ts) in check-ins; 0 elsewhere, and for a job without an id. */
  readonly job?: bigint;
}

/** Keys of a connection's two directions. */
export interface ConnectionKeys {
  readonly send: Uint8Array;
  readonly receive: Uint8Array;
}

/** Handshake of the connector. */
export class ConnectorHandshake {
  readonly hello: Buffer;
  readonly #secret: Uint8Array;

  constructor(secret: Uint8Array, greeting: Greeting) {
    this.#secret = secret;
    this.hello = Buffer.alloc(HELLO_BYTES);
    this.hello.write(MAGIC, 0, 'latin1');
    this.hello[4] = PROTOCOL;
    this.hello[5] = greeting.purpose;
    this.hello.writeUInt32LE(greeting.from, 8);
    this.hello.writeUInt32LE(greeting.to, 12);
    this.hello.writeBigUInt64LE(greeting.job ?? 0n, 16);
    randomBytes(CHALLENGE_BYTES).copy(this.hello, 24);
  }

  answer(challenge: Uint8Array): { proof: Uint8Array; keys: ConnectionKeys } {
    const derive = deriver(this.#secret, this.hello, challenge);
    return { proof: derive('connector'), keys: { send: derive('forth'), receive: derive('back') } };
  }
}

/** Handshake of the acceptor. */
export class AcceptorHandshake {
  readonly greeting: Greeting;
  readonly challenge = randomBytes(CHALLENGE_BYTES);
  readonly #hello: Uint8Array;

  private constructor(greeting: Greeting, hello: Uint8Array) {
    this.greeting = greeting;
    this.#hello = hello;
  }

  /** Undefined if the bytes are not a hello of this protocol. */
  static begin(hello: Buffer): AcceptorHandshake | undefined {
    if (hello.length !== HELLO_BYTES || hello.toString('latin1', 0, 4) !== MAGIC || hello[4] !== PROTOCOL) return undefined;
    const purpose = Object.values(purposes).find((value) => value === hello[5]);
    if (purpose === undefined) return undefined;
    const [from, to, job] = [hello.readUInt32LE(8), hello.readUInt32LE(12), hello.readBigUInt64LE(16)];
    return new AcceptorHandshake({ purpose, from, to, job }, hello);
  }

  /** Keys of the connection, or undefined if the proof is wrong. */
  verify(secret: Uint8Array, proof: Uint8Array): ConnectionKeys | undefined {
    const derive = deriver(secret, this.#hello, this.challenge);
    if (proof.length !== CONNECTOR_PROOF_BYTES || !timingSafeEqual(derive('connector'), proof)) return undefined;
    return { send: derive('back'), receive: derive('forth') };
  }
}

/** The secret of one communicator's peer connections; a new one for each `nonce` of its root. */
export function sessionSecret(secret: Uint8Array, nonce: Uint8Array): Uint8Array {
  return createHmac('sha256', secret).update('session').update(nonce).digest();
}

function deriver(secret: Uint8Array, hello: Uint8Array, challenge: Uint8Array): (label: string) => Uint8Array {
  return (label) => createHmac('sha256', secret).update(hello).update(challenge).update(label).digest();
}
