import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/*
 * How a connection begins: both sides prove that they know the secret, without telling it.
 *
 *     connector                                   acceptor
 *        hello: who, to whom, nonce      ──►
 *                                        ◄──      challenge: nonce
 *        proof = HMAC(secret, both)      ──►
 *                                        ◄──      welcome: the first record, sealed with a key from secret and both
 *
 * Every message before the acceptor's trust has a fixed length. The nonces make keys that no other connection has, so
 * that what was recorded on one is worth nothing on another. A stranger who only connects learns one nonce.
 * Messages are authentic, not secret: who can read the network can read them.
 */

export const HELLO_BYTES = 48;
export const CHALLENGE_BYTES = 32;
export const CONNECTOR_PROOF_BYTES = 32;

const MAGIC = 'tccl';
const PROTOCOL = 1;

/** What a connection is for. Data are the transports': from the rank that receives to the one that sends. */
export const purposes = { checkIn: 1, answer: 2, peer: 3, data: 4 } as const;
export type Purpose = (typeof purposes)[keyof typeof purposes];

/** Stands for the root where a rank is asked for. */
export const ROOT_RANK = 0xffffffff;

/** Who speaks to whom, for what. */
export interface Greeting {
  readonly purpose: Purpose;
  readonly from: number;
  readonly to: number;
}

/** Keys of a connection's two directions. */
export interface ConnectionKeys {
  readonly send: Uint8Array;
  readonly receive: Uint8Array;
}

/** The connector's part. */
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
    randomBytes(CHALLENGE_BYTES).copy(this.hello, 16);
  }

  answer(challenge: Uint8Array): { proof: Uint8Array; keys: ConnectionKeys } {
    const derive = deriver(this.#secret, this.hello, challenge);
    return { proof: derive('connector'), keys: { send: derive('forth'), receive: derive('back') } };
  }
}

/** The acceptor's part. */
export class AcceptorHandshake {
  readonly greeting: Greeting;
  readonly challenge = randomBytes(CHALLENGE_BYTES);
  readonly #hello: Uint8Array;

  private constructor(greeting: Greeting, hello: Uint8Array) {
    this.greeting = greeting;
    this.#hello = hello;
  }

  /** Undefined when the bytes are not a hello of this protocol. */
  static begin(hello: Buffer): AcceptorHandshake | undefined {
    if (hello.length !== HELLO_BYTES || hello.toString('latin1', 0, 4) !== MAGIC || hello[4] !== PROTOCOL) return undefined;
    const purpose = Object.values(purposes).find((value) => value === hello[5]);
    if (purpose === undefined) return undefined;
    return new AcceptorHandshake({ purpose, from: hello.readUInt32LE(8), to: hello.readUInt32LE(12) }, hello);
  }

  /** The connection's keys, or undefined when the proof is wrong. */
  verify(secret: Uint8Array, proof: Uint8Array): ConnectionKeys | undefined {
    const derive = deriver(secret, this.#hello, this.challenge);
    if (proof.length !== CONNECTOR_PROOF_BYTES || !timingSafeEqual(derive('connector'), proof)) return undefined;
    return { send: derive('back'), receive: derive('forth') };
  }
}

/** The secret of one communicator's peer connections, new with each `nonce` that its root chose. */
export function sessionSecret(secret: Uint8Array, nonce: Uint8Array): Uint8Array {
  return createHmac('sha256', secret).update('session').update(nonce).digest();
}

function deriver(secret: Uint8Array, hello: Uint8Array, challenge: Uint8Array): (label: string) => Uint8Array {
  return (label) => createHmac('sha256', secret).update(hello).update(challenge).update(label).digest();
}
