import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import fc from 'fast-check';
import {
  AcceptorHandshake,
  ConnectorHandshake,
  HELLO_BYTES,
  purposes,
  sessionSecret,
} from '../../../../src/runtime/bootstrap/handshake.js';

const secret = randomBytes(32);
const greeting = { purpose: purposes.checkIn, from: 3, to: 70_000, job: 2n ** 64n - 1n };

it('two sides with the secret agree on keys, one for each direction', () => {
  const connector = new ConnectorHandshake(secret, greeting);
  const acceptor = AcceptorHandshake.begin(connector.hello)!;
  expect(acceptor.greeting).toEqual(greeting);
  const { proof, keys } = connector.answer(acceptor.challenge);
  const theirs = acceptor.verify(secret, proof)!;
  expect(theirs.receive).toEqual(keys.send);
  expect(theirs.send).toEqual(keys.receive);
  expect(keys.send).not.toEqual(keys.receive);
});

it('a side with another secret is refused', () => {
  const connector = new ConnectorHandshake(randomBytes(32), greeting);
  const acceptor = AcceptorHandshake.begin(connector.hello)!;
  expect(acceptor.verify(secret, connector.answer(acceptor.challenge).proof)).toBeUndefined();
});

it('a proof for one challenge is invalid for the next', () => {
  const connector = new ConnectorHandshake(secret, greeting);
  const { proof } = connector.answer(AcceptorHandshake.begin(connector.hello)!.challenge);
  expect(AcceptorHandshake.begin(connector.hello)!.verify(secret, proof)).toBeUndefined();
});

it('a hello that was changed in transit is refused by the proof', () => {
  const connector = new ConnectorHandshake(secret, greeting);
  const changed = Buffer.from(connector.hello);
  changed.writeUInt32LE(4, 8); // another rank
  const acceptor = AcceptorHandshake.begin(changed)!;
  expect(acceptor.greeting.from).toBe(4);
  expect(acceptor.verify(secret, connector.answer(acceptor.challenge).proof)).toBeUndefined();
});

it('bytes that are no hello are not answered', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: HELLO_BYTES, maxLength: HELLO_BYTES }), (garbage) => {
      expect(AcceptorHandshake.begin(Buffer.from(garbage))).toBeUndefined();
    }),
  );
});

it('each session has a secret of its own', () => {
  const nonces = [randomBytes(16), randomBytes(16)];
  const [a, b] = nonces.map((nonce) => Buffer.from(sessionSecret(secret, nonce)));
  expect(a!.equals(b!)).toBe(false);
  expect(a!.equals(sessionSecret(secret, nonces[0]!))).toBe(true);
});
