import { expect, test } from 'vitest';
import { counted } from '../../../../src/counted.js';
import { frame, frameKinds } from '../../../../src/runtime/transport/socket-frames.js';
import { transportCompliance } from './compliance.js';
import { libc, openSocketPair, thrown, until, type Ends } from './pairs.js';

const ways: readonly [moves: Ends, twoWay: boolean, sockets?: number][] = [
  [['node:net', 'node:net'], false],
  [['node:net', 'node:net'], true],
  [['node:net', 'node:net'], false, 3],
];
const waysOfSystemCalls: typeof ways = [
  [['system calls', 'system calls'], false],
  [['system calls', 'system calls'], true],
  [['system calls', 'node:net'], false],
  [['node:net', 'system calls'], false],
  [['system calls', 'system calls'], false, 3],
  [['system calls', 'system calls'], true, 3],
];
for (const [moves, twoWay, sockets = 1] of [...ways, ...(libc === undefined ? [] : waysOfSystemCalls)]) {
  const how = `${counted(sockets, 'socket')} from ${moves.join(' to ')}${twoWay ? ', both ways' : ''}`;
  transportCompliance(how, (size) => openSocketPair(size, moves, { twoWay, sockets }), { twoWay, sockets });

  test(`a connection by ${how} is polled where system calls move its data`, async () => {
    const { sender, receiver } = await openSocketPair({ steps: 4, slotBytes: 2000 }, moves, { twoWay, sockets });
    expect([sender, receiver].map(({ polled }) => polled)).toEqual(moves.map((each) => each === 'system calls'));
    await Promise.all([sender.close(), receiver.close()]);
  });
}

test.each([
  ['an unknown kind', frame(9, 0)],
  ['a message longer than a slot', frame(frameKinds.data, 5000)],
  ['credits for messages that were never sent', frame(frameKinds.credit, 1)],
  ['a credit frame without credits', frame(frameKinds.credit, 0)],
  ['credits on a message although none was sent', frame(frameKinds.data | (1 << 8), 0)],
  ['credits on a frame of another kind', frame(frameKinds.goodbye | (1 << 8), 0)],
])('a frame with %s ends the connection', async (_, bytes) => {
  const { receiver, sender, sockets, closeTransports } = await openSocketPair({ steps: 4, slotBytes: 2000 });
  sockets[0].write(bytes);
  await until(() => thrown(() => receiver.check()) !== undefined);
  expect(thrown(() => receiver.check())).toMatchObject({ name: 'SystemError', code: 'NETWORK', rank: 0 });
  await Promise.all([sender.close(), receiver.close()]);
  closeTransports();
});
