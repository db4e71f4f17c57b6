import { kernelFor, kernelName, moduleText } from '../../src/runtime/device/ptx/kernels.js';
import type { Step } from '../../src/runtime/device/ptx/step-record.js';
import { withGpu, type Seen, type Setting } from './part.js';

/** Places in the memory that host and GPU share, on cache lines of their own: two counters, and data for each direction. */
const places = { ofHost: 0, ofGpu: 256, toGpu: 512, toHost: 768, bytes: 1024 } as const;
const DATA_BYTES = 64;
/** Host memory begins after the first page, wherever its buffer does. */
const START = 1 << 16;

type Pair = [Int32Array, Int32Array];

/** Ping-pong of counters and data between a thread of the host and a kernel that waits for flags, in memory of the host. */
export function* latency(setting: Setting): Generator<Seen> {
  const { isFake } = setting;
  const rounds = isFake ? 8 : 20_000;
  yield* withGpu(setting, (gpu) => {
    const host = new Uint8Array(new SharedArrayBuffer(2 * START), START, START);
    const mapped = gpu.mapHost(host);
    const at = (place: number): bigint => mapped + BigInt(place);
    // Of the counters, the low words: bigints would take a part of the time.
    const [ofHost, ofGpu] = [places.ofHost, places.ofGpu].map((place) => new Int32Array(host.buffer, START + place, 1)) as Pair;
    const [toGpu, toHost] = [places.toGpu, places.toHost].map(
      (place) => new Int32Array(host.buffer, START + place, DATA_BYTES / 4),
    ) as Pair;
    const steps = Array.from({ length: rounds }, (_, i): Step => ({
      bytes: DATA_BYTES,
      sources: [at(places.toGpu)],
      destinations: [at(places.toHost)],
      waits: [{ address: at(places.ofHost), value: BigInt(i + 1) }],
      posts: [{ address: at(places.ofGpu), value: BigInt(i + 1) }],
    }));
    const kernel = kernelFor('flags', { bytes: 8 });
    const launch = gpu.stepsLauncher(gpu.kernel(moduleText([kernel], 75), kernelName(kernel)), 32, [steps]);
    let wrong = 0;
    const exchange = (round: number, isAwaited: () => boolean): void => {
      toGpu.fill(round);
      Atomics.store(ofHost, 0, round);
      while (!isAwaited());
      if (toHost.some((word) => word !== round)) wrong++;
    };
    let us = 0;
    if (isFake) {
      // Its kernels run while the host waits: one message is all that they can answer.
      launch();
      exchange(rounds, () => (gpu.synchronize(), Atomics.load(ofGpu, 0) === rounds));
    } else {
      launch();
      const isAnswered = (round: number) => () => Atomics.load(ofGpu, 0) >= round;
      // The first rounds include the start of the kernel.
      const first = rounds / 10;
      let startMs = 0;
      for (let round = 1; round <= rounds; round++) {
        if (round === first + 1) startMs = performance.now();
        exchange(round, isAnswered(round));
      }
      us = ((performance.now() - startMs) * 1000) / (rounds - first);
      gpu.synchronize();
    }
    gpu.unmapHost(host);
    const time = isFake ? 'one message' : `${us.toFixed(2)} µs to the GPU and back, ${rounds} times`;
    const data = wrong === 0 ? 'the data are right' : `other data than the counter said ${wrong} times`;
    return [
      {
        name: 'flags in host memory',
        text: `${time}; ${data}`,
        verdict: wrong > 0 ? 'wrong' : 'right',
        figures: { us, rounds, wrong },
      },
    ];
  });
}
