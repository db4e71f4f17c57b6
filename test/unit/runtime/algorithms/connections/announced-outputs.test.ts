import { expect, test } from 'vitest';
import { Exchange } from '../../../../../src/runtime/algorithms/connections/exchange.js';
import { Team } from '../../../../../src/runtime/device/team.js';
import { openShmPair, openSocketPair } from '../../transport/pairs.js';

const size = { steps: 4, slotBytes: 128 };
const CODE = 5;

test('a sender learns where the output of a receiver is, only in the same call', async () => {
  const { sender, receiver, senderSegment, receiverSegment, closeTransports } = await openShmPair(size);
  const exchanges = [new Exchange(0, Team.ofAll(senderSegment)), new Exchange(1, Team.ofAll(receiverSegment))] as const;
  const [sends, receives] = exchanges;
  const call = (exchange: Exchange, root: number, count: number) => exchange.call(CODE, root, count, undefined);

  call(sends, 1, 1000);
  expect(sends.announced(sender)).toBe(0);
  call(receives, 1, 1000);
  expect(sends.announced(sender)).toBe(0);
  receives.announce(receiver, 0xfffffff0);
  expect(sends.announced(sender)).toBe(0xfffffff0);

  // The receiver has not entered the next call.
  call(sends, 1, 1000);
  expect(sends.announced(sender)).toBe(0);

  for (const [root, count] of [
    [0, 1000],
    [1, 999],
    [1, 2 ** 32 + 1000],
  ] as const) {
    // prettier-ignore
    call(receives, root, count);
    receives.announce(receiver, 4096);
    expect(sends.announced(sender), `root ${root}, ${count} elements`).toBe(0);
    call(sends, 1, 1000);
  }
  closeTransports();
});

test('over sockets there is nothing to announce', async () => {
  const { sender, receiver, senderSegment, receiverSegment, closeTransports } = await openSocketPair(size);
  const [sends, receives] = [new Exchange(0, Team.ofAll(senderSegment)), new Exchange(1, Team.ofAll(receiverSegment))];
  for (const exchange of [sends, receives]) exchange.call(CODE, 0, 10, undefined);
  receives.announce(receiver, 4096);
  expect(sends.announced(sender)).toBe(0);
  await Promise.all([sender.close(), receiver.close()]);
  closeTransports();
});
