/** Of all collectives but all-reduce: the table in bytes is the same for each of them. */
const others = { 2: { 1048576: 0.5, 16777216: 0.6 }, 4: { 1048576: 0.7, 16777216: 0.7 }, 8: { 1048576: 0.7, 16777216: 0.7 } };

/**
 * Targets of tccl, as time over the best time among all libraries and tunings in one run: on two cores, arrays in shared memory,
 * the blocking API, medians. By type, collective (`*`: any other), ranks and bytes.
 *
 * @type {Record<string, Record<string, Record<number, Record<number, number>>>>}
 */
const ratios = {
  float: {
    all_reduce: {
      2: { 8: 0.9, 1024: 0.55, 32768: 0.22, 1048576: 0.33, 16777216: 0.45, 67108864: 0.45 },
      4: { 8: 1, 1024: 1, 32768: 0.5, 1048576: 0.5, 16777216: 0.45, 67108864: 0.45 },
      8: { 8: 1, 1024: 1, 32768: 0.6, 1048576: 0.5, 16777216: 0.45, 67108864: 0.45 },
    },
    '*': others,
  },
  half: { all_reduce: { 2: { 1048576: 0.5, 16777216: 0.5 } } },
  bf16: { all_reduce: { 2: { 1048576: 0.5, 16777216: 0.5 } } },
};

/**
 * The largest allowed ratio of the blocking API, or undefined where none is set. Two ranks are to reach it on cores
 * that are near each other.
 *
 * @param {{ coll: string, type: string, ranks: number, calls: number, state: string, bytes: number }} row
 */
export function ratioTarget({ coll, type, ranks, calls, state, bytes }) {
  if (calls !== 1 || (ranks === 2 && state !== 'near')) return undefined;
  return (ratios[type]?.[coll] ?? ratios[type]?.['*'])?.[ranks]?.[bytes];
}

/** Ordinary arrays, staged through shared memory, are to be no slower than the best library from this size on. */
export const plainTarget = { fromBytes: 32768, ratio: 1 };

/** The promise API is to take this much at 8 B without a straggler, and this times the blocking API from some size on. */
export const promiseTarget = { smallBytes: 8, smallUs: 3, fromBytes: 32768, overSync: 1.15 };

/** `tccl run` of an empty job over Open MPI's `mpirun` of the same. */
export const startTarget = 1.5;

/**
 * From the XML of a machine to its paths, warm, milliseconds.
 *
 * @type {Readonly<Record<string, number>>}
 */
export const topologyTargetsMs = { 'dgxh100.n1': 2, 'NVLink domain of 576 GPUs': 1000 };

/**
 * A whole plan from the XML on in a process that did nothing before, and all memory of that process, by hosts of eight
 * GPUs.
 *
 * @type {Readonly<Record<number, { seconds: number, mebibytes?: number } | undefined>>}
 */
export const planTargets = { 2048: { seconds: 3, mebibytes: 1536 }, 12500: { seconds: 25 } };

/** The search of all machines of the oracle over NCCL's own time. */
export const searchTarget = 1.5;

/**
 * Tuning model, predictions and choices of ten kinds of calls at forty sizes, after the plan, the first time in a
 * process; milliseconds.
 */
export const tuningTargetMs = 100;

/**
 * Simulated calls after the plan, the first time in a process: forty sizes of 16 ranks, one size of more; milliseconds.
 *
 * @param {number} ranks
 */
export const simulateTargetMs = (ranks) => (ranks <= 16 ? 1000 : 10_000);

/** `tccl plan dgx-h100 --nodes 2`, the whole process, milliseconds. */
export const planCommandTargetMs = 500;

/** Time of the ranks' choice over that of the best algorithm that can be forced. */
export const choiceTarget = 1.15;

/** All-reduces between two hosts over the best library, by bytes: two ranks by both APIs, and more ranks. */
const betweenHosts = {
  two: {
    sync: { 8: 1, 1024: 1, 32768: 0.8, 1048576: 0.8, 16777216: 0.6, 67108864: 0.6 },
    promise: { 8: 2, 1024: 2, 32768: 1, 1048576: 0.8, 16777216: 0.6, 67108864: 0.6 },
  },
  more: { 8: 1, 1024: 1, 32768: 0.8, 1048576: 0.6, 16777216: 0.6, 67108864: 0.6 },
};

/**
 * The largest allowed ratio between two hosts, or undefined where none is set.
 *
 * @param {{ coll: string, ranks: number, bytes: number }} row
 * @param {'sync' | 'promise'} api
 * @returns {number | undefined}
 */
export function hostsTarget({ coll, ranks, bytes }, api) {
  /** @type {Readonly<Record<number, number>>} */
  const targets = ranks === 2 ? betweenHosts.two[api] : betweenHosts.more;
  if (coll === 'all_reduce') return targets[bytes];
  return bytes === 1048576 || bytes === 16777216 ? 0.9 : undefined;
}

/** Two workers of a page: this many times two threads of Node.js from some size on, and at most so many µs below. */
export const browserTarget = { fromBytes: 1024, ratio: 1.2, smallUs: 0.5 };
