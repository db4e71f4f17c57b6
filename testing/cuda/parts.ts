import { latency } from './latency.js';
import { litmus } from './litmus.js';
import { multicast } from './multicast.js';
import { nccl, ranks, sanitizer, sharing } from './outside.js';
import type { Part } from './part.js';
import { launches, speed } from './speed.js';
import { streams } from './streams.js';
import { basics, kernels } from './verify.js';

/** The parts in their order. */
export const parts = {
  basics: { limitS: 30, run: basics },
  kernels: { limitS: 90, run: kernels },
  speed: { limitS: 60, run: speed },
  launches: { limitS: 20, run: launches },
  latency: { limitS: 20, run: latency },
  litmus: { limitS: 60, run: litmus },
  streams: { limitS: 20, run: streams },
  multicast: { limitS: 20, run: multicast },
  sharing: { limitS: 50, run: sharing, notOnFake: 'its processes have a GPU each' },
  ranks: { limitS: 70, run: ranks },
  sanitizer: { limitS: 90, run: sanitizer, notOnFake: 'it watches a GPU' },
  nccl: { limitS: 50, run: nccl, notOnFake: 'it needs a GPU' },
} as const satisfies Readonly<Record<string, Part>>;

export type PartName = keyof typeof parts;
