import { kernelFor, kernelName, moduleText } from '../../src/runtime/device/ptx/kernels.js';
import type { Step } from '../../src/runtime/device/ptx/step-record.js';
import type { Gpu } from './gpu.js';
import { withGpu, type Seen, type Setting } from './part.js';

/** Data of a round: one access of each thread. */
const BYTES = 256;
const THREADS = 32;

export interface LitmusSize {
  /** Pairs of blocks that exchange data at the same time. */
  readonly pairs: number;
  /** Rounds of a launch. */
  readonly rounds: number;
  readonly launches: number;
}

/** The flags of a text as ordinary accesses of memory: nothing orders data and flags any more. */
export function weakened(text: string): string {
  return text.replace(/\b(ld\.acquire|st\.release)\.sys/g, (access) => access.replace(/acquire|release/, 'relaxed'));
}

/**
 * Message passing: of each pair, one block writes data and posts a flag, the other waits for it and copies what it finds.
 *
 *     writer   wait ack = r-1   data ← values[r]     post flag = r
 *     reader   wait flag = r    found[r] ← data      post ack = r
 *
 * With `lines`, data carry flags of their own. Returns the number of rounds in which the reader found other data.
 */
export function countViolations(gpu: Gpu, text: string, protocol: 'flags' | 'lines', size: LitmusSize): number {
  const { pairs, rounds, launches } = size;
  const values = new Uint8Array(pairs * rounds * BYTES);
  const words = new Uint32Array(values.buffer);
  for (let i = 0; i < words.length; i++) words[i] = Math.imul(i + 1, 0x9e3779b1);
  const flagBytes = pairs * 256;
  const memory = (bytes: number): bigint => {
    const pointer = gpu.allocate(bytes);
    gpu.upload(pointer, new Uint8Array(bytes));
    return pointer;
  };
  const [source, found] = [memory(values.length), memory(values.length)];
  const [wire, flags] = [memory(2 * BYTES * pairs), memory(flagBytes)];
  gpu.upload(source, values);
  const lists: Step[][] = [];
  for (let pair = 0; pair < pairs; pair++) {
    const at = (base: bigint, bytes: number): bigint => base + BigInt(bytes);
    const data = at(wire, 2 * BYTES * pair);
    const [flag, ack] = [at(flags, 256 * pair), at(flags, 256 * pair + 128)];
    const each = (make: (round: number, place: number) => Step): Step[] =>
      Array.from({ length: rounds }, (_, i) => make(i + 1, (pair * rounds + i) * BYTES));
    const posted = (address: bigint, round: number) => (protocol === 'lines' ? [] : [{ address, value: BigInt(round) }]);
    const onLines = (round: number): Partial<Step> => (protocol === 'lines' ? { lineFlag: round } : {});
    const wires = Number(protocol === 'lines');
    lists.push(
      each((round, place) => ({
        ...onLines(round),
        bytes: BYTES,
        sources: [at(source, place)],
        destinations: [data],
        nWireDestinations: wires,
        waits: [{ address: ack, value: BigInt(round - 1) }],
        posts: posted(flag, round),
      })),
      each((round, place) => ({
        ...onLines(round),
        bytes: BYTES,
        sources: [data],
        destinations: [at(found, place)],
        nWireSources: wires,
        waits: posted(flag, round),
        posts: [{ address: ack, value: BigInt(round) }],
      })),
    );
  }
  const launch = gpu.stepsLauncher(gpu.kernel(text, kernelName(kernelFor(protocol, { bytes: 8 }))), THREADS, lists);
  const seen = Buffer.alloc(values.length);
  let violations = 0;
  for (let i = 0; i < launches; i++) {
    gpu.upload(flags, new Uint8Array(flagBytes));
    launch();
    gpu.download(found, seen);
    if (seen.equals(values)) continue;
    for (let at = 0; at < values.length; at += BYTES)
      if (!seen.subarray(at, at + BYTES).equals(values.subarray(at, at + BYTES))) violations++;
  }
  return violations;
}

const small = { pairs: 1, rounds: 6, launches: 2 };
const large = { pairs: 16, rounds: 500, launches: 128 };

/** Our kernels' releases and acquires 10⁶ times, with a control that has none. */
export function* litmus(setting: Setting): Generator<Seen> {
  const size = setting.isFake ? small : large;
  const nRounds = size.pairs * size.rounds * size.launches;
  const textOf = (protocol: 'flags' | 'lines'): string => moduleText([kernelFor(protocol, { bytes: 8 })], 75);
  for (const protocol of ['flags', 'lines'] as const)
    yield* withGpu(setting, (gpu) => {
      const startMs = performance.now();
      const violations = countViolations(gpu, textOf(protocol), protocol, size);
      const us = ((performance.now() - startMs) * 1000) / (size.rounds * size.launches);
      const text = `${violations} of ${nRounds} messages between blocks were other data, ${us.toFixed(1)} µs each`;
      return [
        {
          name: `litmus of ${protocol}`,
          text,
          verdict: violations > 0 ? 'wrong' : 'right',
          figures: { nRounds, violations, us },
        },
      ];
    });
  if (setting.isFake) yield { name: 'litmus, control', text: 'the interpreter ends with a race instead', verdict: 'skipped' };
  else
    yield* withGpu(setting, (gpu) => {
      const violations = countViolations(gpu, weakened(textOf('flags')), 'flags', size);
      const meaning =
        violations === 0 ? 'this GPU orders them all the same, so the lines above say little' : 'so the litmus can fail';
      const text = `${violations} of ${nRounds} without release and acquire: ${meaning}`;
      return [{ name: 'litmus, control', text, figures: { nRounds, violations } }];
    });
}
