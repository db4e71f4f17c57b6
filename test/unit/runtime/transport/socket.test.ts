import { expect, test } from 'vitest';
import { frame, frameKinds } from '../../../../src/runtime/transport/socket-frames.js';
import { transportCompliance } from './compliance.js';
import { libc, openPair, thrown, until } from './pairs.js';

transportCompliance('socket');
transportCompliance('socket', false, ['node:net', 'node:net'], true);
if (libc !== undefined) {
  transportCompliance('socket', false, ['system calls', 'system calls']);
  transportCompliance('socket', false, ['system calls', 'system calls'], true);
  transportCompliance('socket', false, ['system calls', 'node:net']);
  transportCompliance('socket', false, ['node:net', 'system calls']);
}

test.each([
  ['an unknown kind', frame(9, 0)],
  ['a message longer than a slot', frame(frameKinds.data, 5000)],
  ['credits for messages that were never sent', frame(frameKinds.credit, 1)],
  ['a credit frame without credits', frame(frameKinds.credit, 0)],
  ['credits on a message although none was sent', frame(frameKinds.data | (1 << 8), 0)],
  ['credits on a frame of another kind', frame(frameKinds.goodbye | (1 << 8), 0)],
])('a frame with %s ends the connection', async (_, bytes) => {
  const { receiver, sender, sockets, closeTransports } = await openPair('socket', { steps: 4, slotBytes: 2000 });
  sockets?.[0].write(bytes);
  await until(() => thrown(() => receiver.check()) !== undefined);
  expect(thrown(() => receiver.check())).toMatchObject({ name: 'SystemError', code: 'NETWORK', rank: 0 });
  await Promise.all([sender.close(), receiver.close()]);
  closeTransports();
});
