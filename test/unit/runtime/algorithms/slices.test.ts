import { describe, expect, it } from 'vitest';
import { pairs } from '../../../../src/runtime/algorithms/connections/pairs.js';
import { registry } from '../../../../src/runtime/algorithms/connections/registry.js';
import { ring } from '../../../../src/runtime/algorithms/connections/ring.js';
import { sliceOfBuffers } from '../../../../src/runtime/algorithms/slices.js';
import { messageFifo } from '../../../../src/runtime/messages/p2p-socket.js';
import { FRAME_HEADER_BYTES } from '../../../../src/runtime/transport/socket-frames.js';

/** Data that Linux sends at once in packets of 1,500 bytes: as many as fit in 64 KiB with its own headers. */
const TCP_BUFFER_BYTES = 45 * 1448;

describe('slices', () => {
  it('fill whole buffers where there is room for one', () => {
    expect(sliceOfBuffers(3)).toBe(180 * 1024);
    expect(sliceOfBuffers(3, 128 * 1024)).toBe(120 * 1024);
    expect(sliceOfBuffers(3, 64 * 1024)).toBe(60 * 1024);
    expect(sliceOfBuffers(3, 4096)).toBe(4096);
  });

  // Combiner copies ordinary arrays to a room of this length first.
  it('are not longer than those of rings', () => {
    for (const algorithm of Object.values(registry)) {
      if (!('fifo' in algorithm)) continue;
      for (let nRanks = 2; nRanks <= 64; nRanks++)
        expect(algorithm.fifo(nRanks, 1).slotBytes).toBeLessThanOrEqual(ring.fifo(nRanks, 1).slotBytes);
    }
  });

  it.each([
    ['ring', ring.fifo],
    ['pairs', pairs.fifo],
    ['messages', messageFifo],
  ])('of %s leave no short rest', (_, fifo) => {
    for (let nRanks = 2; nRanks <= 17; nRanks++)
      expect((fifo(nRanks, 1).slotBytes + FRAME_HEADER_BYTES) % TCP_BUFFER_BYTES).toBeGreaterThan(TCP_BUFFER_BYTES / 2);
  });
});
