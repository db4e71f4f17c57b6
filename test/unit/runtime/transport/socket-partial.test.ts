import { constants } from 'node:os';
import { afterEach, describe, expect, test } from 'vitest';
import { loadLibc, type Libc } from '../../../../src/runtime/device/libc.js';
import type { Segment } from '../../../../src/runtime/device/segment.js';
import { SocketTransport } from '../../../../src/runtime/transport/socket.js';
import type { FifoSize, ReceiveConnection, SendConnection } from '../../../../src/runtime/transport/transport.js';
import { hostSegments, join, libc, secret } from './pairs.js';

const size: FifoSize = { steps: 4, slotBytes: 20_000 };
const HEAD_BYTES = 64;
const { EAGAIN, EINTR } = constants.errno;

type Draw = (n: number) => number;

/** One of 0 to n - 1, the same in every run. */
function randomNumbers(seed: number): Draw {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

/** System calls that move as many bytes as they like, as the kernel may, and fail now and then for the moment. */
function moody(calls: Libc, draw: Draw): Libc {
  const pieces: [address: number, bytes: number][] = [];
  const some = (bytes: number): number => {
    const kind = draw(8);
    if (kind === 0) return draw(2) === 0 ? -EAGAIN : -EINTR;
    return Math.min(bytes, 1 + (kind < 4 ? draw(80) : kind < 6 ? draw(9000) : bytes));
  };
  /** Sets the first pieces so that they have `bytes` bytes in all; returns how many. */
  const cut = (count: number, bytes: number): number => {
    let left = bytes;
    for (let index = 0; index < count; index++) {
      const [address, length] = pieces[index]!;
      calls.setPiece(index, address, Math.min(length, left));
      left -= Math.min(length, left);
      if (left === 0) return index + 1;
    }
    return count;
  };
  const total = (count: number): number => pieces.slice(0, count).reduce((sum, [, bytes]) => sum + bytes, 0);
  const limited = (bytes: number, run: (bytes: number) => number): number => {
    const most = some(bytes);
    return most < 0 ? most : run(most);
  };
  return {
    ...calls,
    send: (fd, address, bytes) => limited(bytes, (most) => calls.send(fd, address, most)),
    recv: (fd, address, bytes) => limited(bytes, (most) => calls.recv(fd, address, most)),
    setPiece: (index, address, bytes) => void (pieces[index] = [address, bytes]),
    sendPieces: (fd, count) => limited(total(count), (most) => calls.sendPieces(fd, cut(count, most))),
    recvPieces: (fd, count) => limited(total(count), (most) => calls.recvPieces(fd, cut(count, most))),
  };
}

/** Messages of random lengths one way; arrays change as soon as the kernel has them. */
class Traffic {
  received = 0;
  readonly #lengths: readonly number[];
  readonly #source;
  readonly #target;
  readonly #unsent: number[] = [];
  #sent = 0;

  constructor(
    readonly sender: SendConnection,
    readonly from: Segment,
    readonly receiver: ReceiveConnection,
    readonly to: Segment,
    readonly draw: Draw,
  ) {
    this.#lengths = Array.from({ length: 150 }, () => (draw(3) === 0 ? draw(100) : draw(size.slotBytes - HEAD_BYTES + 1)));
    this.#source = from.allocateBytes(8 * size.slotBytes);
    this.#target = to.allocateBytes(size.slotBytes);
  }

  get isDone(): boolean {
    return this.received === this.#lengths.length;
  }

  send(): void {
    const { sender, from, draw } = this;
    const isFlushed = sender.flush();
    if (isFlushed) for (const number of this.#unsent.splice(0)) this.#sourceOf(number).fill(0xbb);
    if (this.#sent === this.#lengths.length || this.#unsent.length === 8) return;
    const slot = sender.acquire();
    if (slot < 0) return;
    const number = this.#sent++;
    const data = this.#sourceOf(number);
    for (let i = 0; i < data.length; i++) data[i] = number + i;
    new Uint8Array(from.buffer, slot, HEAD_BYTES).fill(number);
    if (data.length > 0 && draw(3) > 0) {
      sender.postFrom!(HEAD_BYTES, data.byteOffset, data.length);
      this.#unsent.push(number);
    } else {
      new Uint8Array(from.buffer).set(data, slot + HEAD_BYTES);
      sender.post(HEAD_BYTES + data.length);
    }
    if (draw(10) === 0) sender.reportWait([number]);
  }

  receive(): void {
    const { receiver, to, draw } = this;
    if (this.isDone) return;
    const number = this.received;
    const bytes = this.#lengths[number]!;
    const expected = draw(8) === 0 ? bytes + 1 : bytes;
    const slot = expected > 0 && draw(4) > 0 ? receiver.peekInto!(HEAD_BYTES, this.#target, expected) : receiver.peek();
    if (draw(10) === 0) receiver.reportWait([number]);
    if (draw(20) === 0) receiver.waitReport();
    if (slot < 0) return;
    const head = new Uint8Array(to.buffer, slot, HEAD_BYTES);
    expect([receiver.messageBytes, head[0], head[HEAD_BYTES - 1]]).toEqual([HEAD_BYTES + bytes, number & 255, number & 255]);
    const data = new Uint8Array(to.buffer, receiver.isInPlace === true ? this.#target : slot + HEAD_BYTES, bytes);
    const wrong = data.findIndex((byte, i) => byte !== ((number + i) & 255));
    if (wrong >= 0) throw new Error(`byte ${wrong} of message ${number} of ${bytes} bytes is ${data[wrong]}`);
    data.fill(0xee);
    receiver.release();
    this.received++;
  }

  /** No two messages that may be unsent at the same time overlap. */
  #sourceOf(number: number): Uint8Array {
    return new Uint8Array(this.from.buffer, this.#source + (number % 8) * size.slotBytes, this.#lengths[number]);
  }
}

describe.runIf(libc !== undefined)('system calls that move a part of the bytes, or none', () => {
  const ends: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    await Promise.all(ends.splice(0).map((end) => end.close()));
  });

  test.each([
    [1, false],
    [2, true],
    [3, false],
    [4, true],
  ] as const)('change no data (seed %i, both ways: %s)', async (seed, twoWay) => {
    const draw = randomNumbers(seed);
    const segments = [hostSegments(1).segments[0]!, hostSegments(1).segments[0]!] as const;
    const [a, b] = segments.map((segment, rank) => {
      const { libc } = loadLibc();
      if (libc === undefined) throw new Error('no libc');
      return new SocketTransport({ segment, rank, host: '127.0.0.1', secret, size, libc: moody(libc, draw) });
    });
    const { sender, receiver, closeTransports } = await join(a!, b!, twoWay);
    ends.push(sender, receiver);
    const all = [new Traffic(sender, segments[0], receiver, segments[1], draw)];
    if (twoWay)
      all.push(
        new Traffic(
          receiver as unknown as SendConnection,
          segments[1],
          sender as unknown as ReceiveConnection,
          segments[0],
          draw,
        ),
      );
    while (!all.every(({ isDone }) => isDone)) {
      const traffic = all[draw(all.length)]!;
      for (let times = draw(4); times > 0; times--) traffic.send();
      for (let times = draw(4); times > 0; times--) traffic.receive();
      sender.flush();
      receiver.flush();
    }
    closeTransports();
  });
});
