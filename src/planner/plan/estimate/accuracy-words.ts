/** What docs/notes/accuracy.md says in words: how the numbers come about, and where and why they are off. */

export const method = `# Predicted against measured

Written by \`npm run accuracy\` from [published-results.yaml](published-results.yaml); do not edit it by hand.

For results that people published, bus bandwidth in GB/s as nccl-tests prints it, three times:

- **measured**, as the source has it.
- **NCCL**: what the model that NCCL 2.30.7 chooses by believes ([tuning](tuning.md)); \`choose\` of \`tccl/planner\`, and the
  table of \`tccl plan\`.
- **estimate**: what we expect, \`estimate\` of \`tccl/planner\`.

An error is the prediction by the measurement, less 1: +10 % is a prediction that is too fast. Machines are those of the
catalogue, so without what a provider's machine has of its own; NCCL's choices are those of 2.30.7, whatever version was
measured.

## How the estimate is made

It takes NCCL's choice, latency and bandwidth for the call and corrects three things:

    time = launch + latency + (size + rounds × data on its way) / (bandwidth × reach)

| parameter | value | what it is | from |
|---|--:|---|---|
| launch | 12 µs | launching a kernel, which NCCL's model leaves out | all results marked *fit*, least squares of the logarithms of the errors, each result weighing the same |
| rounds | 1.2 | chunks that pass before all links are busy, and after the first are no more; data on its way is a chunk in each channel (and head, with NVLink SHARP) | the same |
| reach, rings over NVLink | Ampere 0.970, Hopper 1.031, Blackwell 0.952 | payload that the links carry, by what NCCL has in its tables: 233, 371 and 685 GB/s of 300, 450 and 900 on the wire | largest size of: A100 on Azure; H100 by a maintainer; GB200 tray |
| reach, NVLink SHARP | Hopper 1.012, Blackwell 0.924; between two nodes 1.056 | what switches reduce | H200 on Azure; NVL72; 2 x H200 on Oracle |
| reach, NICs | 0.992 | payload of what NCCL counts for a NIC: 23.8 GB/s of 200 Gb/s | 2 x A100 |
| reach, LL128 between two Blackwells | 0.615 | NCCL's figure of 40 GB/s a channel does not hold for two ranks | 2 of 8 B200 |

They are the same for all machines, and rounded. Volta, PCIe machines and trees have no published result here: for them
the estimate has NCCL's bandwidth, and only launch and rounds are its own. How well launch and rounds are known shows when
the curve of one result at a time is left out:
`;

export const misses = `Large calls NCCL's own model predicts well already: on several Hopper nodes its mean error is even the lesser one, because
the estimate takes its reach from the best network of the four. What the estimate gains is in small and middle sizes, where
NCCL is too fast by a half to a factor of two and more; tests of that are of one machine, H100. On Blackwell it gains too,
but nearly all rows there are fit.

## Where it is off, and why

- **Small sizes.** What a launch costs depends on the machine: of the fit results NCCL's latency is short by about 6 µs
  (GB200 tray), 15 µs (H200) and 28 µs (A100). One value for all makes the first too slow and the last too fast. With CUDA
  graphs there is less of it: the source of the other A100 run has 17 µs for 1 KiB with a graph, where the first run takes
  43 µs for 8 KiB without.
- **Middle sizes on the A100**, 8 to 128 MiB: 15 to 30 % too fast. Neither launch nor fill explains it; the run was with NCCL
  2.18, which may choose other ways there than 2.30.7. Not looked into.
- **NVL72 below 4 GiB**: 72 ranks take 550 to 600 µs beside the transfer, of which the estimate has a third. No parameter
  tells what so many ranks cost each other.
- **RoCE** (2 and 4 x H100): 320 to 330 GB/s with rings, where 2.30.7 and both predictions have 380. Whether the network or
  NCCL 2.19 is the reason cannot be told from the source. A network that gives less than its name says can be told to the
  planner: \`nic-speed\` of a cluster file.
- **One GPU and one NIC** (2 x 1 A100): 18.7 GB/s, where another program in the same source has 23.3 from such NICs. So it
  is NCCL that is slow there, and nothing in its model says so.
- **3 x A100**: too slow by a sixth. NCCL's latency of the ring, 443 µs with the AMD CPUs of the catalogue's machine, is more
  than the measurement on Intel CPUs has room for.
- **All-gather on one A100 node**: 254 GB/s, more than the 240 that NCCL counts for the links. The reach comes from an
  all-reduce, which has to add as well; all-gather and reduce-scatter have no parameter of their own.
- **LL128 between two Blackwells**: NCCL believes 640 (633 with its latency) where 382 were measured, and so chooses LL128
  where Simple is faster. The estimate tells what that choice costs; its parameter is this one measurement, so its error of
  0 proves nothing.
`;
