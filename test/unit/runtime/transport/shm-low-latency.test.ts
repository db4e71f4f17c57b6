import { expect, test } from 'vitest';
import { ShmTransport } from '../../../../src/runtime/transport/shm.js';
import { Team } from '../../../../src/runtime/device/team.js';
import { transportCompliance } from './compliance.js';
import { hostSegments, openShmPair } from './pairs.js';

transportCompliance('shm for short messages', (size) => openShmPair(size, true), { isSilent: true, copies: true });

const header = { headerBytes: 64, headerWords: 5 };
const { signal } = new AbortController();

test.each([64, 65, 68, 72, 79, 80, 96, 100, 200, 320])(
  'the data and the used part of the header of a message of %i bytes arrive, in any order of lengths',
  async (bytes) => {
    const { segments } = hostSegments(2);
    const [a, b] = segments.map(
      (segment) =>
        new ShmTransport({
          team: Team.ofAll(segment),
          localRanks: [0, 1],
          size: { steps: 4, slotBytes: 320 },
          lowLatency: header,
        }),
    );
    const [send, receive] = await Promise.all([a!.setUpSend(1), b!.setUpReceive(0)]);
    const sender = await send.connect(receive.info, signal);
    const receiver = await receive.connect(send.info, signal);
    // Slots are used again, shorter and longer.
    for (let message = 0; message < 20; message++) {
      const length = message % 3 === 0 ? 320 : message % 3 === 1 ? bytes : 64;
      const slot = sender.acquire();
      const filled = new Uint8Array(segments[0]!.buffer, slot, 320).fill(0xee);
      for (let i = 0; i < length; i++) filled[i] = message * 7 + i;
      expect(receiver.peek()).toBe(-1);
      sender.post(length);
      const got = new Uint8Array(segments[1]!.buffer, receiver.peek(), length);
      expect(receiver.messageBytes).toBe(length);
      expect([...got.subarray(0, 20)]).toEqual(Array.from({ length: 20 }, (_, i) => (message * 7 + i) & 255));
      expect([...got.subarray(64)]).toEqual(Array.from({ length: length - 64 }, (_, i) => (message * 7 + 64 + i) & 255));
      receiver.release();
    }
  },
);

test('a message with a missing part is not received yet', () => {
  const { segments } = hostSegments(1);
  const [{ kernels, buffer }, line, source, destination] = [segments[0]!, 4096 * 64, 4096 * 65, 4096 * 66];
  new Uint8Array(buffer, line, 1024).fill(0);
  new Uint8Array(buffer, source, 400).fill(5);
  for (const bytes of [4, 12, 16, 100, 128, 400]) {
    kernels.postFlagged(line, 9, source, bytes, 0, 0, 0);
    expect(kernels.takeFlagged(line, 9, destination, 0, 0)).toBe(bytes);
    expect(kernels.takeFlagged(line, 10, destination, 0, 0)).toBe(-1);
    const words = new Uint32Array(buffer, line, 256);
    for (let word = 0; word < Math.ceil(bytes / 4); word++) {
      words[2 * (word + 1) + 1] = 8;
      expect(kernels.takeFlagged(line, 9, destination, 0, 0)).toBe(-1);
      words[2 * (word + 1) + 1] = 9;
    }
  }
});
