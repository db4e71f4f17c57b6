import { counted } from '../../../counted.js';
import type { Draft } from '../answer.js';
import { type Situation, titleOf } from '../situation.js';

/** Lists facts of a network that NCCL detects, and the variables that tell it the rest. */
export function answerAware(situation: Situation): Draft {
  const { plan, parameters } = situation;
  const nNics = Math.min(...plan.nodes.kinds.map(({ netDevices }) => netDevices));
  return {
    title: 'NCCL knows the inside of hosts, not the network between them',
    sentences: [
      'NCCL detects each host by itself: PCIe, NVLinks, CPUs, and how near each NIC is to each GPU. It detects neither switches, rails and subnets, nor which NIC can reach which NIC of another host.',
      'It pairs NICs by their number and nearness: a GPU uses its nearest NIC, and equal machines pair NICs with the same number. Therefore number NICs equally in all hosts.',
      `NCCL_CROSS_NIC says whether NICs of different rails reach each other: 0 no, 1 yes, 2 (default) yes where it makes rings faster. Here it is ${parameters.crossNic}.`,
      'NCCL_IB_HCA (or NCCL_SOCKET_IFNAME for sockets) selects the NICs that work: if only some NICs of a host reach the others, name those, as NCCL_IB_HCA==mlx5_2,mlx5_3. NCCL does not find out by itself, and a NIC that reaches nobody makes init or the first call fail or hang.',
      'PXN does not know rails either: it sends through the GPU of its host that is next to the NIC with the number of the destination, which keeps data on a rail where rails are wired by number.',
      ...(plan.nodes.kinds.length > 0 && nNics > 0
        ? [`${titleOf(situation)}: ${counted(nNics, 'NIC')} a host, paired by number.`]
        : []),
    ],
    evidence: { crossNic: parameters.crossNic, netDevices: nNics },
  };
}
