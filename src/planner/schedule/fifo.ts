import type { Protocol } from '../tuning/names.js';

/** Steps of a connection's FIFO (NCCL_STEPS). */
export const FIFO_STEPS = 8;

/** Messages of a program in a connection's FIFO. */
interface ProgramFifo {
  /** Slices of a message; each has its own steps, even if it is empty. */
  readonly slices: number;
  /** Messages that the FIFO holds before their sender waits. */
  readonly messages: number;
  /** Data of a message at most, with NCCL's default buffers. */
  readonly messageBytes: number;
}

/**
 * By protocol. With LL and LL128 a message is one step: half of its 64 KiB, and 15/16 of its 600 KiB are data. With Simple it
 * is two slices of two steps of 512 KiB (MSCCL_CHUNKSTEPS, MSCCL_SLICESTEPS).
 */
export const programFifos: Readonly<Record<Protocol, ProgramFifo>> = {
  LL: { slices: 1, messages: FIFO_STEPS, messageBytes: (8 * 512 * 16) / 2 },
  LL128: { slices: 1, messages: FIFO_STEPS, messageBytes: (120 * 640 * 8 * 15) / 16 },
  Simple: { slices: 2, messages: 2, messageBytes: 2 ** 21 },
};
