/**
 * Meeting point of the ranks of one measurement, outside the library under test: bench/peers/bench.c in JavaScript, with the same
 * barrier, the same probe of the machine and the same clock, so that both kinds of programs measure alike. The ranks share the
 * file BENCH_SHM, mapped over a WebAssembly memory, so that JavaScript's Atomics work on it.
 *
 * @module
 */
import { closeSync, constants, ftruncateSync, openSync, readFileSync, unlinkSync } from 'node:fs';
import { cpus } from 'node:os';
import koffi from 'koffi';

const pageBytes = 65536;
const maxRanks = 64;

/** Places in the shared memory as indices of 32-bit words; what different ranks wait for is on different cache lines. */
const word = { arrived: 0, turn: 32, stop: 64, unsupported: 65, probed: 66, ping: 96, pong: 128 };
/** Indices of 64-bit numbers, behind the words. */
const number = { linkNs: 128, others: 129, seconds: 192, wrong: 192 + maxRanks };

const probeRounds = 1000;

const libc = koffi.load(null);
const memmove = libc.func('void *memmove(void *destination, void *source, size_t bytes)');
const mmap = libc.func('int64_t mmap(int64_t address, size_t bytes, int protection, int flags, int fd, int64_t offset)');
const schedYield = libc.func('int sched_yield()');
const getAffinity = libc.func('int sched_getaffinity(int pid, size_t bytes, void *mask)');
const setAffinity = libc.func('int sched_setaffinity(int pid, size_t bytes, void *mask)');

/** The word that {@link sleep} waits on. */
const sleeper = new Int32Array(new SharedArrayBuffer(4));
export const sleep = (/** @type {number} */ ms) => void Atomics.wait(sleeper, 0, 0, ms);

/** Keeps this thread on one core. */
export function pin(/** @type {number} */ core) {
  const mask = new BigUint64Array(16);
  mask[core >> 6] = 1n << BigInt(core & 63);
  setAffinity(0, mask.byteLength, mask);
}

export class Meeting {
  #rank;
  #size;
  #path;
  #words;
  #numbers;
  #cores = cpus().length;
  #epoch = 0;

  /**
   * @param {number} rank
   * @param {number} size at most 64
   * @param {string} path of a file that only these ranks know; the first rank makes it
   */
  constructor(rank, size, path) {
    if (size > maxRanks) throw new Error(`at most ${maxRanks} ranks`);
    this.#rank = rank;
    this.#size = size;
    this.#path = path;
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
    const bytes = new Uint8Array(memory.buffer);
    const address = koffi.address(memmove(bytes, bytes, 0));
    const file = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    ftruncateSync(file, pageBytes);
    const [readWrite, sharedFixed] = [3, 1 | 16];
    if (Number(mmap(address, pageBytes, readWrite, sharedFixed, file, 0)) === -1) throw new Error(`cannot map ${path}`);
    closeSync(file);
    this.#words = new Int32Array(memory.buffer);
    this.#numbers = new Float64Array(memory.buffer);
    this.probe(); // compiles it: the first result is too long
  }

  /** Spins with a core for each rank. With fewer it yields, so that a rank that is done leaves its core to others. */
  barrier() {
    const words = this.#words;
    const turn = Atomics.load(words, word.turn);
    if (Atomics.add(words, word.arrived, 1) === this.#size - 1) {
      Atomics.store(words, word.arrived, 0);
      Atomics.store(words, word.turn, turn + 1);
      return;
    }
    for (let i = 1; Atomics.load(words, word.turn) === turn; i++) {
      if (this.#size > this.#cores || i % 4000 === 0) schedYield();
    }
  }

  /** The state of the machine, measured by ranks 0 and 1 while the others sleep; bench.c gives the reason. */
  probe() {
    this.#epoch++;
    this.barrier();
    if (this.#size < 2 || this.#cores < 2) return { linkNs: 0, others: 0 };
    if (this.#rank < 2) this.#probeLink();
    else while (Atomics.load(this.#words, word.probed) !== this.#epoch) sleep(2);
    this.barrier();
    return { linkNs: this.#numbers[number.linkNs] ?? 0, others: this.#numbers[number.others] ?? 0 };
  }

  #probeLink() {
    const before = new BigUint64Array(16);
    getAffinity(0, before.byteLength, before);
    pin(this.#rank);
    let best = Infinity;
    for (let repetition = 0; repetition < 3; repetition++) {
      best = Math.min(best, this.#pingPong((this.#epoch * 3 + repetition) * probeRounds));
    }
    setAffinity(0, before.byteLength, before);
    if (this.#rank !== 0) return;
    let least = Infinity;
    for (let i = 0; i < 5; i++, sleep(0.3)) least = Math.min(least, running());
    const mine = 2; // rank 1 waits at the barrier; the others sleep
    this.#numbers[number.linkNs] = best;
    this.#numbers[number.others] = Math.max(0, least - mine);
    Atomics.store(this.#words, word.probed, this.#epoch);
  }

  /** Nanoseconds that a cache line takes one way between ranks 0 and 1. */
  #pingPong(/** @type {number} */ first) {
    const words = this.#words;
    const leads = this.#rank === 0;
    const start = performance.now();
    for (let value = first; value < first + probeRounds; value++) {
      if (leads) {
        Atomics.store(words, word.ping, value);
        while (Atomics.load(words, word.pong) !== value);
      } else {
        while (Atomics.load(words, word.ping) !== value);
        Atomics.store(words, word.pong, value);
      }
    }
    return ((performance.now() - start) * 1e6) / probeRounds / 2;
  }

  /** Rank 0 reports that this size is over. */
  get stop() {
    return Atomics.load(this.#words, word.stop) !== 0;
  }
  set stop(/** @type {boolean} */ value) {
    Atomics.store(this.#words, word.stop, value ? 1 : 0);
  }

  /** Any rank reports that the library does not support the call. */
  get unsupported() {
    return Atomics.load(this.#words, word.unsupported) !== 0;
  }
  set unsupported(/** @type {boolean} */ value) {
    Atomics.store(this.#words, word.unsupported, value ? 1 : 0);
  }

  /** Result of this rank; the others see it after a barrier. */
  report(/** @type {'seconds' | 'wrong'} */ what, /** @type {number} */ value) {
    this.#numbers[number[what] + this.#rank] = value;
  }

  /** The reports of all ranks. */
  reported(/** @type {'seconds' | 'wrong'} */ what) {
    return this.#numbers.subarray(number[what], number[what] + this.#size);
  }

  close() {
    if (this.#rank === 0) unlinkSync(this.#path);
  }
}

/** Threads that run or could, on the whole machine. */
function running() {
  return Number(/^\S+ \S+ \S+ (\d+)/.exec(readFileSync('/proc/loadavg', 'utf8'))?.[1] ?? 0);
}
