import type { FlightRecording } from '../../readers/flight.js';

interface CauseAndRemedy {
  readonly cause: string;
  readonly remedy: string;
}

/** Advice that depends on the library which recorded: NCCL's ranks are Python with GPUs, those of tccl are Node.js. */
interface Advice {
  /** Ways to see where ranks are in their program. */
  readonly stacks: (ranks: string) => string;
  /** All ranks are in a call, and none comes out. */
  readonly allInside: CauseAndRemedy;
  /** Some ranks are in a call that the others have completed. */
  readonly leftInside: (ranks: string) => CauseAndRemedy;
}

const ofPyTorch: Advice = {
  stacks: (ranks) => `\`py-spy dump\` of ${ranks}`,
  allInside: {
    cause: 'the ranks agree, so the program is not at fault: the network, a GPU or a NIC stands still',
    remedy: "look at NCCL's log, `dmesg -T` and NIC counters (`ethtool -S`) of these hosts; run nccl-tests between pairs of them",
  },
  leftInside: (ranks) => ({
    cause: 'the GPU is busy or stuck with work before it on that stream, or data of the others do not arrive there',
    remedy: `\`nvidia-smi\` and \`dmesg -T\` (Xid) on the hosts of ${ranks}; \`py-spy dump\` of ${ranks}`,
  }),
};

const ofTccl: Advice = {
  stacks: (ranks) => `\`tccl inspect\` says whether ${ranks} computes, sleeps or is stopped; a debugger shows where`,
  allInside: {
    cause: 'the ranks agree, so the program is not at fault: the network between the hosts stands still, or a rank is stopped',
    remedy: '`tccl inspect` on their hosts; then the counters of their NICs (`ethtool -S`) and a firewall between them',
  },
  leftInside: (ranks) => ({
    cause: 'the process is stopped or gets no processor time, or data of the others do not arrive there',
    remedy: `\`tccl inspect\` on the hosts of ${ranks}; then the counters of their NICs (\`ethtool -S\`)`,
  }),
};

export function adviceFor([first]: readonly FlightRecording[]): Advice {
  return first?.isOfTccl === true ? ofTccl : ofPyTorch;
}
