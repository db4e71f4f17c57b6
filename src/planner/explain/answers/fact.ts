import { counted } from '../../../counted.js';
import { formatBytes, formatRate, formatTime, formatWay } from '../../plan/overview/format.js';
import type { Draft } from '../answer.js';
import type { Fact } from '../grammar/question.js';
import { predicted, type Situation } from '../situation.js';
import { factorHere, hardwareHere, largeHere, linksHere } from './here.js';
import { type FactText, linkFacts } from './link-facts.js';
import { systemFacts } from './system-facts.js';
import { usesIn } from './use.js';

/** Sizes that show how bandwidth grows. */
const shownSizes: readonly number[] = [2 ** 16, 2 ** 20, 2 ** 24, 2 ** 28, 2 ** 32];

/** Facts about NCCL and about figures of nccl-tests, with their values here. */
const facts: Readonly<Record<Fact, FactText>> = {
  ...linkFacts,
  ...systemFacts,
  algorithmNeeds: {
    title: 'Ring and Tree work on any machine; NVLS and NVLSTree need NVSwitches, CollNet needs SHARP in the network',
    sentences: (situation) => [
      'Ring and Tree use what joins the GPUs: NVLinks, PCIe, memory of the host, the network. Neither needs an NVSwitch. Within one node NCCL mostly takes Ring, because there Tree has little to gain.',
      'NVLS and NVLSTree need NVSwitches of NVLink SHARP: GPUs of compute capability 9.0 or newer. CollNet needs a plugin and switches with SHARP. PAT (2.23 on) is for AllGather and ReduceScatter.',
      ...usesIn(situation)
        .filter(({ name }) => name === 'NVLS' || name === 'CollNet')
        .map(({ name, used, text }) => `${name} here: ${used}, ${text}.`),
      ...hardwareHere(situation),
    ],
  },
  flatRings: {
    title: 'rings are flat: each goes through all GPUs of all nodes; trees and NVLSTree are hierarchical',
    sentences: (situation) => [
      'A ring visits all GPUs of a node, leaves by a NIC, visits those of the next node, and so on. There is no ring of nodes above rings within nodes.',
      'A tree reduces within each node first, along a chain of its GPUs, then between nodes, and broadcasts the same way back. As each NIC has a tree with another GPU at its head, this equals a reduce-scatter within nodes, all-reduces between them, and an all-gather. NVLSTree does the first and last part in the NVSwitches.',
      'Rings and trees are not mixed: a call takes one of them. Both use all NICs at the same time, one channel or more for each.',
      largeHere(situation),
    ],
  },
  switchLevels: {
    title: 'NCCL does not see single NVSwitches nor their levels: traffic is spread over all of them by the hardware',
    sentences: (situation) => [
      'A GPU sends over all its NVLinks, and these lead to all NVSwitches. Which switch carries, adds or copies a part of the data, the hardware decides; no channel has a switch of its own, and no variable chooses one.',
      'In a rack (GB200 NVL72 and the like) all GPUs are in one NVLink domain: NCCL knows the domain by the fabric manager’s UUID and clique (NCCL_MNNVL_ENABLE), and uses P2P and NVLink SHARP across hosts in it as within one.',
      ...hardwareHere(situation),
    ],
  },
  factor: {
    title: 'busbw is algbw times what a link of a ring carries of the data: 2 (n - 1) / n for AllReduce',
    sentences: (situation) => [
      'algbw is the size of the call divided by its time. busbw is algbw times a factor that depends on the call and the number of ranks n only.',
      'nccl-tests sees neither the algorithm nor the machine, so the factor is the same for rings, trees and NVLink SHARP: busbw tells to which flat network of that speed the machine is equal, and compares algorithms.',
      'AllReduce on a ring is a reduce-scatter, then an all-gather. In each of the two, a rank sends n - 1 of the n parts of the data, so 2 (n - 1) / n of the size crosses each link.',
      'For AllGather, ReduceScatter, AllToAll, Gather and Scatter it is (n - 1) / n, because a rank’s own part need not travel; for Broadcast, Reduce and SendRecv it is 1.',
      'So busbw can be compared with the speed of the slowest link in one direction, for any number of ranks. Algorithms that send less than a ring (trees over two nodes, NVLink SHARP, SHARP) can pass that speed.',
      factorHere(situation),
    ],
  },
  factorOfNvls: {
    title: 'nccl-tests takes the factor of the call for every algorithm; with NVLink SHARP the links carry about algbw',
    sentences: (situation) => [
      'nccl-tests does not know which algorithm NCCL takes: busbw of AllReduce is algbw times 2 (n - 1) / n with NVLink SHARP, too.',
      'With NVLink SHARP the NVSwitch adds and copies, so each GPU sends and receives about its data once ((n + 1) / n times), not 2 (n - 1) / n times.',
      'Therefore busbw can pass the speed of the NVLinks; algbw, a factor of 1, is about what the links carry. busbw stays right for comparisons of runs and algorithms.',
      ...linksHere(situation),
    ],
  },
  zero: {
    title: 'bus bandwidth is 0 where one rank is alone: it exchanges nothing',
    sentences: (situation) => [
      'With one rank the factor of busbw is 0, 2 (1 - 1) / 1: nothing crosses a link, and algbw is that of a copy within the GPU.',
      'Processes that mpirun or srun starts are jobs of one rank each if nccl-tests was built without MPI: then each prints a table of its own with Rank 0 only. Build it with make MPI=1, or give one process several GPUs (-g 8).',
      'The lines «Rank … Device …» above the table list the ranks of the job. Very small calls show 0.00, too, because the column has two decimals.',
      situation.plan.nodes.nRanks > 1 ? largeHere(situation) : 'Here there is one rank, so busbw is 0.',
    ],
  },
  units: {
    title: 'busbw and algbw are in GB/s: 10^9 bytes a second, in one direction',
    sentences: (situation) => [
      'GB/s are 10^9 bytes a second. Sizes such as -b 1G are powers of two: 2^30 bytes.',
      'Networks are sold in bits: 400 Gb/s are 50 GB/s in each direction.',
      ...hardwareHere(situation),
    ],
  },
  direction: {
    title: 'one direction: links carry as much the other way at the same time',
    sentences: (situation) => [
      'A ring sends one way: each rank sends to its next and receives from the one before, at the same time. busbw counts what a link carries in one direction.',
      'So compare it with the speed of one direction. NVLinks are sold with both directions added: 900 GB/s of an H100 are 450 GB/s each way. NICs are sold by one direction: 400 Gb/s are 50 GB/s each way.',
      ...hardwareHere(situation),
    ],
  },
  algbwVersus: {
    title: 'busbw is algbw times a factor of the call: above 1 for AllReduce, below 1 for AllGather, 1 for SendRecv',
    sentences: (situation) => [
      'algbw is the size divided by the time: take it for the time of a call. busbw is what a link carries: take it to compare with hardware, and calls or numbers of ranks with each other.',
      'The factor is 2 (n - 1) / n for AllReduce, (n - 1) / n for AllGather, ReduceScatter and AllToAll, 1 for Broadcast, Reduce and SendRecv.',
      factorHere(situation),
    ],
  },
  sizeColumn: {
    title: 'the size is the data of all ranks together for AllGather and ReduceScatter, else the buffer of one rank',
    sentences: () => [
      'AllGather: the size is the whole result of a rank, n times what each rank sends. ReduceScatter: the whole input of a rank, n times what it gets.',
      'AllToAll: the whole buffer that a rank sends, a part of which goes to each rank. AllReduce, Broadcast, Reduce, SendRecv: the buffer of one rank.',
    ],
  },
  inPlace: {
    title: 'in place, the result is written over the input',
    sentences: () => [
      'In place, input and result are the same memory: for AllReduce the same buffer, for AllGather and ReduceScatter a rank’s own part of the larger buffer. Out of place they are two buffers.',
      'NCCL takes the same algorithm for both. In place, a rank need not copy its own part, and the GPU reads and writes less memory; out of place more memory is touched, which costs where caches or the speed of memory count.',
      'Times of this planner are those of calls out of place.',
    ],
  },
  wrongColumn: {
    title: '#wrong counts elements that differ from the expected result',
    sentences: () => [
      'It must be 0. N/A stands where nothing is compared: with -c 0, and for AllToAll in place, which does not exist.',
      'Any other number is a fault of memory, links or drivers: wrong data, not a slow call.',
    ],
  },
  oneRank: {
    title: 'NCCL works with one rank, which exchanges nothing',
    sentences: (situation) => [
      'A communicator of one rank is allowed. Its collectives copy the input to the result, or do nothing in place.',
      'Neither NVLink nor a NIC is used, and nccl-tests prints a bus bandwidth of 0.',
      ...(situation.plan.nodes.nRanks > 1 ? [`Here there are ${counted(situation.plan.nodes.nRanks, 'rank')}.`] : []),
    ],
  },
  firstCall: {
    title: 'the first call makes connections and loads kernels, which takes up to seconds',
    sentences: () => [
      'NCCL connects ranks when an algorithm is first used (NCCL_RUNTIME_CONNECT), and each connection allocates and registers buffers. CUDA loads kernels when they are first launched, too (CUDA_MODULE_LOADING=EAGER loads them earlier).',
      'Therefore measure after some calls of the same kind and size: nccl-tests does so (-w, warm-up). The first call of another kind, or of a size with another algorithm, may be slow again.',
      'Init takes longer with more ranks, because all of them meet at one root.',
    ],
  },
  deterministic: {
    title: 'rings and trees add in a fixed order; other sizes, ranks or algorithms add in another',
    sentences: () => [
      'With the same ranks on the same machines, the same variables and the same size, NCCL takes the same algorithm, protocol and channels, and rings and trees add in the same order: results are equal bit by bit.',
      'The order changes with the number or placement of ranks, the size, the version and variables. NVLink SHARP and SHARP add in switches, whose order NCCL does not fix.',
      'NCCL_ALGO=Ring and NCCL_PROTO=Simple fix most of it, at the price that «with NCCL_ALGO=Ring» shows.',
    ],
  },
  bothNetworks: {
    title: 'between nodes both are used at once; within a node only the fastest',
    sentences: (situation) => [
      'Between nodes each ring and tree goes over NVLink (or PCIe) inside a node and over NICs between nodes, in a pipeline, so both are busy at the same time.',
      'Within one node NCCL takes the best kind of path that its search finds for all hops. It does not add PCIe or NICs to NVLink, and two GPUs that NVLinks join never exchange over PCIe. NCCL_P2P_LEVEL=NVL allows P2P over NVLink only.',
      ...hardwareHere(situation),
    ],
  },
  twoCommunicators: {
    title: 'several communicators can be used at a time, if all ranks start their calls in the same order',
    sentences: () => [
      'Kernels of two communicators that run at the same time share the links and the multiprocessors of a GPU, so each is slower.',
      'A call waits on the GPU for its peers. If ranks start calls of two communicators in different orders, and the kernels do not fit on the GPU together, all wait for ever. Start them in the same order on all ranks; NCCL_LAUNCH_ORDER_IMPLICIT=1 (2.26 on) orders the launches of one thread.',
    ],
  },
  mixedGpus: {
    title: 'GPUs of different models can be in a communicator; the slowest decides',
    sentences: () => [
      'NCCL joins GPUs of different models, and hosts of different kinds. All nodes take as many channels, and as fast ones, as the weakest allows; thresholds are those of the lowest compute capability. NVLink SHARP is used only if all nodes have it.',
      'GeForce cards do not reach each other directly over PCIe, so data pass through memory of the host.',
      'A cluster file plans such a job: it lists several hosts, each with its machine.',
    ],
  },
  ethernet: {
    title: 'Ethernet works: with RDMA (RoCE) like InfiniBand, else by sockets',
    sentences: (situation) => [
      'NICs with RoCE are used through the same verbs as InfiniBand: the log says NET/IB and RoCE. Others are used by TCP sockets: NET/Socket, without GPU Direct RDMA and with much less bandwidth.',
      'NCCL_IB_HCA selects RDMA devices, NCCL_SOCKET_IFNAME interfaces; RoCE needs a GID that the network routes (NCCL_IB_GID_INDEX).',
      ...hardwareHere(situation),
      'What sockets would cost here: ask what if it runs over TCP sockets.',
    ],
  },
  pairsDiffer: {
    title: 'equal hosts have equal plans: where pairs of hosts differ, the fabric or one host is the reason',
    sentences: (situation) => [
      'NCCL decides the same for each pair of equal hosts. If one pair is slower than another, its data share a link of the fabric (routing, a bad cable or port), or one host is slower than the others.',
      'Measure other pairs. If a host is slow with every partner, the fault is in that host; if it is fast with some, it is in the fabric between: routing that puts two flows on one link, or a degraded link.',
      largeHere(situation),
    ],
  },
  sizeGrows: {
    title: 'a call has a fixed part, its latency, and a part by size: bandwidth grows until the second is all',
    sentences: (situation) => [
      'The time is the latency (launch, steps through all ranks) and the size divided by the bandwidth of the links. Small calls pay the latency only, so their bandwidth is low without a fault; NCCL also takes other protocols for them, with less latency and less bandwidth.',
      ...shownSizes.flatMap((bytes) => {
        const row = predicted(situation, 'AllReduce', bytes);
        return row === undefined
          ? []
          : [
              `AllReduce of ${formatBytes(bytes)} here: ${formatTime(row.timeUs)}, ${formatRate(row.busGBps)} GB/s of busbw${row.choice === undefined ? '' : ` by ${formatWay(row.choice)}`}.`,
            ];
      }),
    ],
  },
  memory: {
    title: 'mostly buffers: one set for each connection of each channel',
    sentences: ({ plan, parameters }) => [
      `Each connection of a channel has a buffer for Simple (NCCL_BUFFSIZE, 4 MiB by default), one for LL128 of about the same size, and a small one for LL. Here collectives have ${counted(plan.nChannels, 'channel')}, and send and receive ${plan.p2p.nChannels}.`,
      'A ring has one incoming and one outgoing neighbour a channel, a tree up to three and one. Send and receive allocate for each peer that is used, so an all-to-all needs most.',
      `Fewer channels (NCCL_MAX_NCHANNELS, NCCL_MAX_CTAS) and smaller buffers (NCCL_BUFFSIZE) take less memory and may cost bandwidth. Each communicator has its own buffers, unless it is split with shared resources. This is NCCL ${parameters.ncclVersion}; the planner does not count bytes of memory.`,
    ],
  },
};

/** Tells facts that a question is about. */
export function answerFact(situation: Situation, asked: readonly Fact[]): Draft {
  const [first = 'factor'] = asked;
  return {
    title: facts[first].title,
    sentences: [...new Set(asked.flatMap((fact) => facts[fact].sentences(situation)))],
    evidence: { facts: [...asked], nRanks: situation.plan.nodes.nRanks },
  };
}
