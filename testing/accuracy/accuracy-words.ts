/** The prose of docs/notes/accuracy.md: the method, and the causes of errors. */

export const SIMULATED_BEFORE = `# Accuracy: predicted against measured

Written by \`npm run accuracy\` from [measurements](measured/README.md) and [published-results.yaml](published-results.yaml); do not edit it by hand.
Machines are those of the catalogue, without the particularities of a provider's machine.

## Simulated times

Mean of |predicted time / measured time - 1| of the [simulation](simulate.md), which \`tccl plan --predict\`, \`tccl trace\` and \`tccl expect\` print:

- **fitted**: by the parameters that tccl has, fitted to all machines;
- **left out**: by parameters that were fitted without the machine that was measured ([calibration](simulate.md#calibration)). This is what to
  expect of a machine that nobody measured;
- **NCCL's belief**: by the model that the version of NCCL that was measured chooses by ([tuning](tuning.md)). It has none of messages between pairs.
`;

export const SIMULATED_AFTER = `
Other simulators, by their authors: ASTRA-sim 9.7 to 20.6 % on one H100 node, ATLAHS below 5 % on whole applications replayed from traces.
[Aims, misses and doubts](simulate.md#what-to-reach) are in the notes of the simulation.
`;

export const COVERAGE_BEFORE = `## Measurements inside their intervals

Eight of ten measurements should lie in the interval of 10 to 90 % that tccl prints. Fits leave out, in turn, each machine, each fabric, each generation of
GPUs, and each generation between hosts. Each fit predicts what it left out. The interval is that of the call's [distance](simulate.md#intervals) from the
measurements that this fit had.

- **inside**: in the interval that tccl prints;
- **inside intervals of the others**: in an interval that was computed without this machine's measurements, as it will be for the next machine.
`;

export const COVERAGE_AFTER = `
The first share counts a machine's own errors, so it is above 80 %. The second is below 80 % for all-to-all on one node, whose three generations differ most
(A100 left out: 1.35 to 1.7 times the predicted time below 1 MiB). Messages between hosts, and cards over PCIe, were measured on one machine, so they have no second share.
`;

export const METHOD = `## The estimate of published results

For published results of nccl-tests, the bus bandwidth in GB/s three times:

- **measured**: as the source has it.
- **NCCL**: the belief of the model that NCCL 2.30.7 chooses by ([tuning](tuning.md)); \`choose\` of \`tccl/planner\`, and the table of
  \`tccl plan\`.
- **estimate**: the bandwidth that we expect; \`estimate\` of \`tccl/planner\`.

An error is the predicted bandwidth divided by the measured one, minus 1: +10 % is a prediction that is too fast. NCCL's choices are those of 2.30.7, whatever version was measured.

### How the estimate is made

It takes NCCL's choice, latency and bandwidth for the call and corrects three things:

    time = launch + latency + (size + rounds × data in flight) / (bandwidth × reach)

| parameter | value | meaning | source |
|---|--:|---|---|
| launch | 12 µs | launching a kernel, which NCCL's model leaves out | all results marked *fit*: least squares of the logarithms of the errors, each result with the same weight |
| rounds | 1.2 | chunks that pass before all links are busy, and after the first link is idle; data in flight are a chunk in each channel (and head, with NVLink SHARP) | the same |
| reach, rings over NVLink | Ampere 0.970, Hopper 1.031, Blackwell 0.952 | payload of the links, relative to NCCL's tables: 233, 371 and 685 GB/s of 300, 450 and 900 on the wire | largest size of: A100 on Azure; H100 by a maintainer; GB200 tray |
| reach, NVLink SHARP | Hopper 1.012, Blackwell 0.924; between two nodes 1.056 | what switches reduce | H200 on Azure; NVL72; 2 x H200 on Oracle |
| reach, NICs | 0.992 | payload, relative to NCCL's figure for a NIC: 23.8 GB/s of 200 Gb/s | 2 x A100 |
| reach, LL128 between two Blackwells | 0.615 | NCCL's figure of 40 GB/s a channel does not hold for two ranks | 2 of 8 B200 |

They are the same for all machines, and rounded. Volta, PCIe machines and trees have no published result here: the estimate has NCCL's bandwidth for
them, and only launch and rounds are its own. Leaving out the curve of one result at a time shows how well launch and rounds are known:
`;

export const MISSES = `NCCL's own model predicts large calls well: on several Hopper nodes its mean error is even smaller, because the estimate takes its reach from the best
network of the four. The estimate is better at small and middle sizes, where NCCL is too fast by a half to a factor of two and more; the tests of this
are of one machine, H100. On Blackwell it is better, too, but nearly all rows there are fit.

## Where it is off, and why

- **Small sizes.** The cost of a launch depends on the machine: in the fit results NCCL's latency is short by about 6 µs (GB200 tray), 15 µs (H200) and
  28 µs (A100). One value for all makes the first too slow and the last too fast. CUDA graphs reduce it: the source of the other A100 run has 17 µs for
  1 KiB with a graph, where the first run takes 43 µs for 8 KiB without.
- **Middle sizes on the A100**, 8 to 128 MiB: 15 to 30 % too fast. Neither launch nor fill explains it. The run was with NCCL 2.18, which may choose
  differently from 2.30.7 there. Not investigated.
- **NVL72 below 4 GiB**: 72 ranks take 550 to 600 µs in addition to the transfer, of which the estimate has a third. No parameter describes the cost of
  so many ranks.
- **RoCE** (2 and 4 x H100): 320 to 330 GB/s with rings, where 2.30.7 and both predictions have 380. The source does not show if the network or
  NCCL 2.19 is the cause. For a network that gives less than its nominal speed, set \`nic-speed\` in the cluster file.
- **One GPU and one NIC** (2 x 1 A100): 18.7 GB/s, where another program in the same source has 23.3 with such NICs. So NCCL is slow there, and its
  model does not show it.
- **3 x A100**: too slow by a sixth. NCCL's latency of the ring, 443 µs with the AMD CPUs of the catalogue's machine, is more than the measurement on
  Intel CPUs allows.
- **All-gather on one A100 node**: 254 GB/s, more than the 240 that NCCL counts for the links. The reach comes from an all-reduce, which also adds;
  all-gather and reduce-scatter have no parameter of their own.
- **LL128 between two Blackwells**: NCCL believes 640 (633 with its latency) where 382 were measured, and so chooses LL128 where Simple is faster. The
  estimate shows the cost of that choice. Its parameter is this one measurement, so its error of 0 proves nothing.

**Two A100 joined by four NVLinks**, without switches (\`hgx-a100-4\`), are no part of any fit. nccl-tests#331 measured 71 to 73 GB/s of send and receive at 2 GiB; the
simulation has 79.0, in eight of ten cases 69.3 to 81.4. An all-reduce of 1 GiB is another matter: 61.6 GB/s are simulated where NCCL believes 79.9. Its four channels bound it there,
as each is one thread block, which copies and adds on an A100 about 15 GB/s; with 16 (\`NCCL_MIN_NCHANNELS=16\`) 70.8 GB/s are simulated. No public measurement of that pair is known.
`;
