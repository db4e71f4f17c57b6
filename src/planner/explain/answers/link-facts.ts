import { counted } from '../../../counted.js';
import { nvLinkGBps } from '../../topology/bandwidths.js';
import { formatBytes } from '../../plan/overview/format.js';
import type { LinkFact } from '../grammar/question.js';
import { nodeViews, type Situation } from '../situation.js';
import { answerCallChannels } from './channels.js';
import { hardwareHere } from './here.js';

/** A fact: its headline, and sentences with its values here. */
export interface FactText {
  readonly title: string;
  readonly sentences: (situation: Situation) => readonly string[];
}

/** Sizes from which a call takes more channels. */
const shownSizes: readonly number[] = [2 ** 13, 2 ** 17, 2 ** 20, 2 ** 24, 2 ** 30];

/** Facts about links, NICs, channels and their thread blocks. */
export const linkFacts: Readonly<Record<LinkFact, FactText>> = {
  severalRings: {
    title: 'rings are channels that work at the same time, each on a part of the data',
    sentences: ({ plan, ...situation }) => [
      'One ring uses one link of a GPU in and one out. Machines have more links and NICs, so NCCL searches several rings over different ones, splits the data of a call among them, and runs all at the same time: each is a channel, a thread block of the kernel.',
      ...nodeViews({ plan, ...situation }).map(
        ({ name, kind }) =>
          `${name}: the search found ${counted(kind.graphs.ring.nChannels, 'ring')}, and collectives have ${counted(plan.nChannels, 'channel')}.`,
      ),
    ],
  },
  linkPorts: {
    title: 'data between two GPUs are spread over all NVLinks that join them; channels have no link of their own',
    sentences: (situation) => [
      'NCCL counts the NVLinks of a pair together, as one link of their bandwidth. The hardware spreads the traffic of a pair evenly over them, and over all links of a GPU to NVSwitches. No variable assigns a link to a ring or channel.',
      ...hardwareHere(situation),
    ],
  },
  reversed: {
    title: 'a ring need not be reversed: each GPU sends and receives at the same time',
    sentences: (situation) => [
      'In a ring every GPU sends to its next and receives from the one before, so both directions of its links are busy already. A ring the other way around would take the same share of each direction, and could gain nothing on a switch.',
      'Where GPUs are joined pairwise, the search itself finds rings in both directions. Channels are doubled to have more thread blocks, not more links.',
      ...hardwareHere(situation),
    ],
  },
  severalNics: {
    title: 'NCCL uses all NICs of a host at the same time, if its GPUs exchange as fast as these',
    sentences: (situation) => [
      'Rings and trees take different NICs, and the data pass all GPUs on the way: with NVLinks the bandwidths of NICs add up; over PCIe alone a second NIC gains little, but for all-to-all. With sockets these are the interfaces of NCCL_SOCKET_IFNAME (eth0,eth1), each in a subnet that reaches the other hosts; with RDMA the devices of NCCL_IB_HCA.',
      'One connection over sockets may not fill a fast card: NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD open more.',
      ...hardwareHere(situation),
    ],
  },
  payload: {
    title: 'NCCL counts what links carry of a call, about four fifths of their signal rate',
    sentences: (situation) => [
      'nvidia-smi nvlink -s prints the signal rate of each NVLink. Packets have headers, and thread blocks write 128 bytes at a time, so about 80 % of it are data. NCCL plans with that number; copy engines, which nvbandwidth and p2pBandwidthLatencyTest use, write larger packets and reach a little more.',
      ...nodeViews(situation).flatMap(({ name, local: { system } }) => {
        const sm = system.gpus[0]?.sm ?? 0;
        return [
          `${name}: NCCL counts ${Number(nvLinkGBps(sm).toPrecision(3))} GB/s in each direction for an NVLink of these GPUs.`,
        ];
      }),
      ...hardwareHere(situation),
      'Figures of data sheets often add both directions.',
    ],
  },
  withoutNvlink: {
    title: 'NCCL cannot leave out NVLink alone: P2P is allowed or not',
    sentences: (situation) => [
      'NCCL has no variable that keeps P2P and avoids NVLink. Where two GPUs are joined by NVLinks, all P2P traffic of the pair takes them.',
      'NCCL_P2P_DISABLE=1, or NCCL_P2P_LEVEL=LOC, turns P2P off with NVLink: data then go through memory of the host (SHM). With NVLink off in the driver, NCCL uses P2P over PCIe only between GPUs that are near enough (NCCL_P2P_LEVEL=PHB or SYS allows farther ones), and SHM between others.',
      'What that costs here: ask what if NCCL_P2P_DISABLE=1.',
      ...hardwareHere(situation),
    ],
  },
  channelIsBlock: {
    title: 'a channel is one thread block (CTA) of the kernel, which occupies one multiprocessor (SM)',
    sentences: ({ plan }) => [
      'Each channel of a call is carried out by one thread block. Blocks of NCCL are large, so each has an SM of its own while the call runs, and a call with 16 channels takes 16 SMs.',
      `Here rings and trees have ${counted(plan.nChannels, 'channel')}, send and receive at most ${plan.p2p.nChannels}${plan.nvls === undefined ? '' : `, NVLink SHARP ${plan.nvls.nChannels}`}. Small calls take fewer.`,
      'Their number follows from the search: as many as it takes to fill the links, since one block carries only a part of them. NVLink SHARP has its own number, because the NVSwitch adds.',
      'NCCL_MAX_CTAS (or maxCTAs of a communicator) bounds all kinds of channels, NVLink SHARP too; NCCL_MAX_NCHANNELS bounds rings and trees, and by them send and receive; NCCL_NVLS_NCHANNELS those of NVLink SHARP.',
    ],
  },
  fewerChannels: {
    title: 'small calls take fewer channels: each must have enough data to be worth its latency',
    sentences: (situation) => [
      'NCCL takes channels away while the size is less than channels x threads x a threshold of the protocol; send and receive count bytes for each channel. More blocks for few bytes would cost time and SMs, and gain nothing.',
      ...shownSizes.flatMap((bytes) => {
        const { title } = answerCallChannels(situation, 'AllReduce', bytes);
        return [`AllReduce of ${formatBytes(bytes)} here: ${title}.`];
      }),
    ],
  },
  bond: {
    title: 'a bond counts as one NIC with the speed of one port, unless its ports are given to NCCL one by one',
    sentences: (situation) => [
      'NCCL sees a bonded device (mlx5_bond_0) as one NIC, and reads the speed of one of its ports. It searches channels for that speed.',
      'A queue pair stays on one port, and a connection has one by default, so one connection fills one port. NCCL_IB_QPS_PER_CONNECTION=2 (or 4) makes more, which may spread over both ports; NCCL_IB_SPLIT_DATA_ON_QPS=0 lets them take turns. The hash of the bond decides, so nothing is certain.',
      'NCCL drives two ports best where they are not bonded but two devices.',
      ...hardwareHere(situation),
    ],
  },
  queuePairs: {
    title: 'each connection of a channel over RDMA has queue pairs of its own: NCCL_IB_QPS_PER_CONNECTION of them',
    sentences: ({ plan }) => [
      'A connection is one direction of one channel between two ranks. It has NCCL_IB_QPS_PER_CONNECTION queue pairs, 1 by default, on its NIC; where a NIC has several ports that are merged, at least one for each. NCCL_IB_SPLIT_DATA_ON_QPS=1 spreads each message over them, 0 lets them take turns.',
      `So their number grows with channels: here rings and trees have ${counted(plan.nChannels, 'channel')}. More queue pairs help where the fabric spreads traffic by them (ECMP, bonds); the numbers of queue pairs (qp_num) come from the driver.`,
    ],
  },
  gpuOrder: {
    title: 'NCCL uses the GPUs that it is given, and finds its rings by their links, not by their order',
    sentences: (situation) => [
      'The program chooses the GPUs: CUDA_VISIBLE_DEVICES, or the device that each rank sets. NCCL then searches rings over exactly these. So which GPUs are chosen matters, in which order they are listed does not change the links that rings take within a host.',
      'Between hosts rings follow the numbers of the ranks, host by host. If the order changes times, look for something else: the binding of processes to CPUs, or ranks whose NICs differ.',
      'To compare sets of GPUs, give tccl a matrix or topology of those GPUs only.',
      ...hardwareHere(situation),
    ],
  },
  ll128Safe: {
    title: 'LL128 needs stores of 128 bytes that arrive whole and in order, so it is on only where that was verified',
    sentences: (situation) => [
      'LL128 sends 120 bytes of data and a flag of 8 bytes in one store of 128. The receiver takes the data as soon as it sees the flag. If the path splits or reorders that store, it reads old data: wrong results without an error.',
      'Therefore NCCL turns it on by itself for generations of GPUs with NVLink, and between hosts for paths, for which the whole way (GPU, NVLink, NVSwitch, PCIe switch, NIC) keeps stores whole; the rule changed with versions. NCCL_PROTO=LL128 overrides the rule and may corrupt data.',
      `Whether it is on here: ask is LL128 used. This is NCCL ${situation.parameters.ncclVersion}.`,
    ],
  },
  graceLinks: {
    title: 'on Grace a NIC is a device of the CPU: data between it and a GPU cross the chip-to-chip links',
    sentences: (situation) => [
      'A GPU on Grace (GH200, GB200, GB300) is joined to its CPU by NVLink-C2C. NICs are on PCIe of the CPU, so network data cross C2C either way; the narrow PCIe link of the GPU is not used.',
      'With GPU Direct RDMA the NIC reads and writes GPU memory through the CPU and C2C; without, data rest in memory of the CPU first. Before 2.27.3 it is off there by default, and NCCL_NET_GDR_LEVEL=SYS, or NCCL_NET_GDR_C2C=1 since 2.26.2, turns it on; later versions use it (path P2C).',
      ...hardwareHere(situation),
      'What it does here: ask why no GDR, and what if NCCL_NET_GDR_LEVEL=LOC.',
    ],
  },
};
