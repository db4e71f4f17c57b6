import { afterEach, describe, expect, it } from 'vitest';
import { StripedTransport } from '../../../../src/runtime/transport/striped.js';
import type {
  AwaitedNews,
  Connection,
  ReceiveConnection,
  SendConnection,
  Transport,
} from '../../../../src/runtime/transport/transport.js';
import { libc, openSocketPair, type ConnectedPair, type Ends } from './pairs.js';

const calls: Ends = ['system calls', 'system calls'];
const size = { steps: 4, slotBytes: 64 };

/** The descriptors on which an end waits for a message or a free slot. */
function awaited(end: Connection, news: AwaitedNews): number[] {
  const fds: number[] = [];
  const addFd = (fd: number, readable: boolean): void => {
    if (readable) fds.push(fd);
  };
  end.wakeOn({ addFd }, news);
  return fds;
}

function take(receiver: ReceiveConnection): void {
  while (receiver.peek() < 0);
  receiver.release();
}

describe.runIf(libc !== undefined)('a connection of two sockets', () => {
  let pair: ConnectedPair | undefined;
  afterEach(async () => {
    await Promise.all([pair?.sender.close(), pair?.receiver.close()]);
    pair?.closeTransports();
  });

  // What came on another socket stays there until its turn, so it would wake a thread at once, again and again.
  it('wakes a thread only for the socket whose turn it is', async () => {
    const { sender, receiver } = (pair = await openSocketPair(size, calls, { sockets: 2 }));
    const first = { sender: awaited(sender, 'slot'), receiver: awaited(receiver, 'message') };
    expect([first.sender, first.receiver]).toEqual([[sender.fd], [receiver.fd]]);
    sender.acquire();
    sender.post(1);
    take(receiver);
    const second = { sender: awaited(sender, 'slot'), receiver: awaited(receiver, 'message') };
    expect([second.sender, second.receiver]).toEqual([[sender.fd], [receiver.fd]]);
    expect(second).not.toEqual(first);
  });

  it('wakes a thread only for the socket of the awaited direction, if it goes both ways', async () => {
    const { sender, receiver } = (pair = await openSocketPair(size, calls, { sockets: 2, twoWay: true }));
    const before = awaited(sender, 'message');
    expect(awaited(sender, 'slot')).toEqual(before);
    sender.acquire();
    sender.post(1);
    take(receiver);
    expect(awaited(sender, 'message')).toEqual(before);
    expect(awaited(sender, 'slot')).toHaveLength(1);
    expect(awaited(sender, 'slot')).not.toEqual(before);
    expect(awaited(receiver, 'slot')).toHaveLength(1);
    expect(awaited(receiver, 'message')).not.toEqual(awaited(receiver, 'slot'));
  });
});

describe.runIf(libc !== undefined)('lanes with unequal turns', () => {
  const pairs: ConnectedPair[] = [];
  afterEach(async () => {
    for (const { sender, receiver, closeTransports } of pairs.splice(0)) {
      await Promise.all([sender.close(), receiver.close()]);
      closeTransports();
    }
  });

  it('carry messages in order, each its part of them', async () => {
    for (let lane = 0; lane < 2; lane++) pairs.push(await openSocketPair(size, calls));
    // The lanes are connected already: each transport hands its end out.
    const join = async (way: 'setUpSend' | 'setUpReceive', ends: readonly Connection[]): Promise<Connection> => {
      const lanes = ends.map(
        (end) =>
          ({
            name: 'socket',
            size,
            [way]: () => Promise.resolve({ info: new Uint8Array(), connect: () => Promise.resolve(end) }),
          }) as unknown as Transport,
      );
      const setUp = await new StripedTransport(lanes, [0, 1, 0])[way](1);
      return setUp.connect(new Uint8Array(), new AbortController().signal);
    };
    const sender = (await join('setUpSend', pairs.map((pair) => pair.sender))) as SendConnection; // prettier-ignore
    const receiver = (await join('setUpReceive', pairs.map((pair) => pair.receiver))) as ReceiveConnection; // prettier-ignore
    const fds: number[] = [];
    for (let message = 0; message < 30; message++) {
      while (sender.acquire() < 0);
      fds.push(sender.fd);
      sender.post(message);
      while (receiver.peek() < 0);
      expect(receiver.messageBytes).toBe(message);
      receiver.release();
    }
    const [a, b] = pairs.map((pair) => pair.sender.fd);
    expect(fds).toEqual(Array.from({ length: 10 }, () => [a, b, a]).flat());
  });
});
