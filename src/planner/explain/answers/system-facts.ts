import { counted } from '../../../counted.js';
import { formatBytes, formatTime, formatWay } from '../../plan/overview/format.js';
import type { SystemFact } from '../grammar/question.js';
import { nodeViews, predicted, type Situation } from '../situation.js';
import { rate } from '../format.js';
import { nicsOf } from './bandwidth.js';
import { hardwareHere } from './here.js';
import type { FactText } from './link-facts.js';
import { usesIn } from './use.js';

/** Sizes of calls whose time is latency. */
const smallSizes: readonly number[] = [8, 2 ** 10, 2 ** 16];

function smallCallsHere(situation: Situation): string[] {
  return smallSizes.flatMap((bytes) => {
    const row = predicted(situation, 'AllReduce', bytes);
    return row === undefined
      ? []
      : [
          `AllReduce of ${formatBytes(bytes)} here: ${formatTime(row.timeUs)}${row.choice === undefined ? '' : ` by ${formatWay(row.choice)}`}.`,
        ];
  });
}

/** Facts about trees, lines of logs, drivers, containers and networks, which hold for any plan. */
export const systemFacts: Readonly<Record<SystemFact, FactText>> = {
  singleTree: {
    title: 'a single tree keeps half of the NICs waiting, so NCCL builds two: each node is inside one and a leaf of the other',
    sentences: (situation) => [
      'An inner node of a binary tree receives from two children and sends to two, so each byte crosses its NIC twice in each pass; leaves, half of all nodes, send and receive it once. The NICs of inner nodes bound a single tree to about half of the line rate, while those of leaves idle.',
      'Two trees of half of the data each (a double binary tree), in which every node is an inner node of one and a leaf of the other, load all NICs equally and reach about the bandwidth of a ring, with a latency that grows with the logarithm of the nodes.',
      ...hardwareHere(situation),
    ],
  },
  treeInNode: {
    title: 'trees are between nodes, two for each NIC; within a node a tree is a chain of its GPUs, and no ring is involved',
    sentences: ({ plan }) => [
      'AllReduce by Tree reduces along the chain of each node to the GPU next to a NIC, up a binary tree of nodes, and broadcasts the same way back, in a pipeline of chunks. Two complementary trees share the data, in which each node is inside one and a leaf of the other.',
      'Each tree has one place for each node; at that place one GPU, or the two next to the NIC (balanced and split trees), talk to other nodes. With several NICs each has its own pair of trees, headed by other GPUs, so together they equal a reduce-scatter within nodes, all-reduces between them, and an all-gather.',
      'Within a node a chain costs no bandwidth, each GPU has one neighbour before and one behind, and its few steps are short. A binary tree there would give GPUs two children, which share its links. No variable and no graph file makes one: NCCL_GRAPH_FILE gives other chains only.',
      `Here ${plan.nodes.nNodes === 1 ? 'there is one node, so a tree is one chain' : `each tree has ${plan.nodes.nNodes} nodes and ${counted(plan.nodes.nRanks, 'rank')}`}; «why Tree and not Ring at 4M» gives the steps of a call.`,
    ],
  },
  callWays: {
    title:
      'Broadcast and Reduce are pipelined rings; AllReduce has Ring, Tree, NVLS and CollNet; all-to-all is pairs of messages',
    sentences: (situation) => [
      'Broadcast and Reduce have Ring only: each rank forwards chunks to the next while later ones arrive, so a large call takes its size divided by the bandwidth of a link, whatever the number of ranks; these add a step of latency each.',
      'AllReduce by Ring is a reduce-scatter, then an all-gather, on flat rings through all nodes. By Tree it is a reduction up and a broadcast down two trees between nodes, with a chain in each node. NVLS and NVLSTree let NVSwitches add and copy, CollNet the network.',
      'AllGather and ReduceScatter have Ring, NVLS, CollNetDirect, and PAT (2.23 on, mostly with one rank a node): no Tree. If NCCL_ALGO leaves no way, newer releases fail the call, and older ones took Ring.',
      'AllToAll, Gather, Scatter and SendRecv are messages between pairs of ranks: each goes by P2P, SHM or a NIC, and no ring or tree is used.',
      ...(['AllReduce', 'Broadcast', 'AllGather'] as const).flatMap((collective) => {
        const row = predicted(situation, collective, 2 ** 30);
        return row?.choice === undefined
          ? []
          : [`${collective} of 1 GiB here: ${formatWay(row.choice)}, ${formatTime(row.timeUs)}.`];
      }),
    ],
  },
  logTrees: {
    title: '«Trees [0] 1/-1/-1->0->-1»: channel [0], children 1/-1/-1 of rank 0, and its parent -1; -1 is none',
    sentences: () => [
      'In brackets stands the channel, then up to three children, «->», the rank itself, «->», its parent. A reduction goes from children to the parent, the broadcast back.',
      'A rank with one child and a parent is within the chain of its node; one with children on other hosts sends to the network. «Channel 00/02 : 0 1 2 3» is the order of a ring: the channel, the number of channels, and the ranks.',
      'tccl log FILE reads such lines and compares them with a plan; tccl explain … why this ring order says why.',
    ],
  },
  logWays: {
    title: '«via P2P/IPC», «via SHM», «via NET/IB/0/GDRDMA»: the transport of one connection of a channel',
    sentences: () => [
      '«Channel 00/0 : 0[0] -> 1[1] via P2P/IPC»: channel and connection, rank and GPU of the sender, then of the receiver.',
      'P2P is memory of the other GPU: direct pointer within a process, IPC or CUMEM between processes; «read» means that the receiver reads. SHM is memory of the host. NET/IB/0 and NET/Socket/0 are NICs by number; GDRDMA means that the NIC reaches the memory of the GPU, and without it data go through memory of the host. A number in brackets behind the NIC is the rank whose GPU forwards (PXN).',
      'Whether P2P is direct, IPC or CUMEM hardly changes the bandwidth; SHM in place of P2P, or a missing GDRDMA, does.',
    ],
  },
  virtualMachine: {
    title: 'NCCL reads the machine from /sys: where a VM or container hides it, distances are wrong until a file says them',
    sentences: () => [
      'In a VM the hypervisor often shows GPUs and NICs without the PCIe switches above them, so all pairs look far (PHB or SYS): GPU Direct RDMA and P2P may then be off, and NICs are taken by number, not by nearness.',
      'Clouds put a topology file into their images: NCCL reads /var/run/nvidia-topologyd/virtualTopology.xml by itself, or the file of NCCL_TOPO_FILE. A container needs /sys, the devices of RDMA (/dev/infiniband) and libibverbs; without the latter two, NCCL uses sockets.',
      'This shows what NCCL sees: NCCL_TOPO_DUMP_FILE=topo.xml, then tccl topo doctor topo.xml.',
    ],
  },
  shmSize: {
    title: 'SHM needs room in /dev/shm: give containers --shm-size=1g or more, or --ipc=host',
    sentences: () => [
      'Each connection through memory of the host has its buffers in /dev/shm, several MiB for each channel and neighbour; Docker gives 64 MB by default, and Kubernetes needs an emptyDir of medium Memory. Init then fails with «No space left on device» or a bus error.',
      'Newer releases may take host memory of CUDA in its place (NCCL_CUMEM_HOST_ENABLE). NCCL_SHM_DISABLE=1 avoids it, and ranks of a host without P2P then use the network, which is slow.',
    ],
  },
  acs: {
    title: 'with ACS or an IOMMU, PCIe traffic between GPUs goes up to the CPU: P2P is slow, or hangs',
    sentences: () => [
      'Access Control Services make switches send every packet to the root complex, which checks it; P2P and GPU Direct RDMA then share the link to the CPU, and may fail silently. Bare machines should have ACS off: lspci -vvv | grep ACSCtl must show SrcValid- on switches; the BIOS or setpci sets it. An IOMMU should be off or in pass-through (iommu=pt).',
      'In VMs it must stay on; NICs with ATS avoid the detour for GPU Direct RDMA.',
      'NCCL does not see ACS: it plans P2P as if it were fast. p2pBandwidthLatencyTest shows it; what it costs here: what if P2P is disabled.',
    ],
  },
  geforce: {
    title: 'GeForce drivers refuse P2P over PCIe, so NCCL goes through memory of the host (SHM)',
    sentences: (situation) => [
      'RTX 3090, 4090, 5090 and other GeForce cards have no P2P over PCIe in NVIDIA’s drivers; RTX 3090 and older ones with an NVLink bridge have it over the bridge. Data-centre and workstation cards (L40S, A40, RTX A6000, RTX 6000 Ada) have it. nvidia-smi topo -p2p r shows OK, or NS where it is refused.',
      'NCCL notices and takes SHM; NCCL_P2P_LEVEL does not help against the driver. Each byte then crosses PCIe up and down and the memory of the CPU, so 8 to 20 GB/s of bus bandwidth are usual for a machine of PCIe cards.',
      ...hardwareHere(situation),
    ],
  },
  pcieRate: {
    title: 'a PCIe link of 16 lanes carries about 12 (Gen3), 24 (Gen4) or 48 GB/s (Gen5) of a call in each direction',
    sentences: (situation) => [
      'Sixteen lanes have 15.8, 31.5 or 63 GB/s in each direction; headers of packets take a fifth to a quarter. Rings use each link of a GPU once in and once out at the same time.',
      'GPUs below one switch share its link to the CPU, and paths between sockets share the links of the CPUs, which carry less for P2P than for memory. The slowest hop bounds the whole ring.',
      ...hardwareHere(situation),
    ],
  },
  peerOverCpu: {
    title: 'P2P through a CPU (PHB, NODE, SYS) is possible, and off by default: memory of the host (SHM) is mostly faster there',
    sentences: (situation) => [
      'NCCL takes P2P over NVLink and up to PXB, through PCIe switches, because root complexes forward such traffic slowly: writes into memory of the host and reads from it fill a link better. AMD CPUs are an exception, with P2P at any distance: for two GPUs since 2.23, for any number before.',
      'cudaDeviceCanAccessPeer and nvidia-smi topo -p2p r say that it is possible, not that it is fast. NCCL_P2P_LEVEL=PHB allows it below one CPU, SYS over several sockets: ask what if NCCL_P2P_LEVEL=SYS, or measure both.',
      'Without NVLink and NICs, GPUs of different sockets so exchange through memory of the host. NET is taken within a host only where a NIC next to each GPU is faster than that.',
      ...usesIn(situation)
        .filter(({ name }) => name === 'P2P' || name === 'SHM')
        .map(({ name, used, text }) => `${name} here: ${used}, ${text}.`),
    ],
  },
  pathNames: {
    title: 'NCCL has no NODE: PHB is any path through the CPU of one NUMA node, SYS one between NUMA nodes',
    sentences: () => [
      'From near to far: LOC the same device, NVL over NVLink, NVB through another GPU, C2C, PIX one PCIe switch, PXB several, PXN through the GPU next to the NIC, PHB the CPU (a host bridge), SYS the link between CPUs, DIS none.',
      'nvidia-smi topo -m also has NODE, between host bridges of one NUMA node; NCCL counts it as PHB. Where /sys shows no bridges (VMs, some BIOS settings with several NUMA nodes a socket) the two programs can differ.',
      'The levels of NCCL_P2P_LEVEL and NCCL_NET_GDR_LEVEL have the same names. Between a GPU and a NIC, PIX and PXB are good; at PHB or SYS data mostly go through memory of the host: «gdr of rank 3» says it for this machine.',
    ],
  },
  idleLink: {
    title: 'lstopo, lspci and nvidia-smi show the present speed of a PCIe link, which GPUs lower while they idle',
    sentences: (situation) => [
      'A GPU at rest takes its link down to Gen1 or so, a quarter to a sixteenth of the speed, and up again when it works: such a figure is no bound of P2P or of NCCL. Read it under load, or its maximum: LnkCap of lspci -vv, Max of nvidia-smi -q.',
      'A link that stays below its maximum under load (LnkSta «downgraded») is a fault of the slot, the riser or the BIOS. Fewer lanes never come back by load.',
      'Traffic over NVLink does not touch the PCIe link at all.',
      ...hardwareHere(situation),
    ],
  },
  roce: {
    title: 'RoCE is planned like InfiniBand; its settings are the GID, the traffic class and a network without loss',
    sentences: (situation) => [
      'NCCL uses the same verbs and counts the speed of the port, so channels, algorithms and thresholds are those of InfiniBand of that speed.',
      'NCCL_IB_GID_INDEX must be that of a RoCE v2 address that the network routes (show_gids lists them; 3 on many systems); newer releases choose it (NCCL_IB_ROCE_VERSION_NUM, NCCL_IB_ADDR_FAMILY). NCCL_IB_TC must map to the queue that the switches treat without loss (PFC, ECN), and NCCL_IB_HCA name the ports.',
      'Flows of one connection share a path: where switches hash (ECMP), NCCL_IB_QPS_PER_CONNECTION=4 spreads them, and adaptive routing helps (NCCL_IB_ADAPTIVE_ROUTING=1). Pauses, drops and retransmissions (ethtool -S, counters of the switch) explain bandwidth that falls with nodes.',
      ...hardwareHere(situation),
    ],
  },
  socketsUsed: {
    title: 'sockets use the interfaces of NCCL_SOCKET_IFNAME; without it the first that fits: ib*, then any but docker and lo',
    sentences: (situation) => [
      'NCCL uses several interfaces for data if the variable names them (NCCL_SOCKET_IFNAME=eth0,eth1) and each is up with an address that reaches the other hosts. Bootstrap takes the first of them only. Without the variable it looks for names that begin with ib, then for others except docker and lo.',
      'More sockets fill a fast card: NCCL_SOCKET_NTHREADS times NCCL_NSOCKS_PERTHREAD for each connection, 64 at most. On AWS and Google NCCL raises them by itself.',
      '«NET/Socket» beside RDMA cards means that NCCL found none: libibverbs or /dev/infiniband are missing, NCCL_IB_DISABLE=1 or NCCL_NET is set, or NCCL_IB_HCA names no active port. NCCL_DEBUG=INFO says «Using network».',
      ...hardwareHere(situation),
    ],
  },
  chunks: {
    title: 'a call is cut into chunks that follow each other through the buffers of each connection, 8 slots of 512 KiB',
    sentences: ({ plan }) => [
      'Each connection has a buffer for Simple of NCCL_BUFFSIZE, 4 MiB, in eight slots (NCCL_STEPS). A ring AllReduce sends chunks of four slots in two slices each, so a neighbour works on one slice while the next arrives. Small calls have smaller chunks, so that all channels and steps have work; trees choose chunks by depth.',
      `Data are first divided among the channels (here ${plan.nChannels}), each channel loops over its part: as many loops as the part has rounds of ranks times chunk.`,
      'Larger buffers help long-distance networks; NCCL_P2P_NET_CHUNKSIZE is that of send and receive over the network.',
    ],
  },
  smallLatency: {
    title: 'small calls cost latency only: launch, and the steps of the algorithm one after another',
    sentences: (situation) => [
      'A call costs the launch of a kernel (some µs) and its steps: 2 (n - 1) for a ring of n ranks, about 2 log2 of the nodes for a tree and its chains, two for NVLink SHARP. Each step costs about 1 µs over NVLink, and several over PCIe or the network. LL and LL128 avoid waiting for flags, which Simple does.',
      ...smallCallsHere(situation),
      'What helps: one large call in place of many small ones (buckets, groups), CUDA graphs for the launch, buffers in symmetric windows (2.27 on), trees or NVLS over many ranks. More channels, NICs or links do not.',
    ],
  },
  proxyThreads: {
    title: 'threads of NCCL on the CPU: one proxy for each GPU moves network data, and polls while calls run',
    sentences: () => [
      'Kernels need no CPU within a host. For the network a proxy thread of each rank posts sends and receives to the NIC, and polls; 100 % of a core for each GPU is normal during calls. Their number is fixed: no variable adds one. A thread of bootstrap and services sleeps.',
      'Sockets have helper threads of their own (NCCL_SOCKET_NTHREADS); NCCL_NTHREADS counts threads of the GPU.',
      'It is bound to the cores near the GPU, within the affinity of the process (NCCL_IGNORE_CPU_AFFINITY=1 widens it). With fewer cores than ranks, or with cores of another socket, bandwidth over the network falls: give each rank two cores or more.',
    ],
  },
  unequalHosts: {
    title: 'hosts may have different numbers of GPUs: all take as many channels as the weakest allows',
    sentences: ({ plan }) => [
      'NCCL takes the minimum over all nodes of channels, of their speed and of features; a host with one GPU or one NIC therefore slows all. NVLink SHARP and CollNet need all nodes to have them.',
      `Here there ${plan.nodes.nNodes === 1 ? 'is one node' : `are ${counted(plan.nodes.nNodes, 'node')}`} with ${counted(plan.nodes.nRanks, 'rank')}. A cluster file plans unequal hosts: a list of machines, each with its gpus.`,
    ],
  },
  overlap: {
    title: 'NCCL’s kernels take a thread block for each channel, and the bandwidth of memory: kernels beside them are slower',
    sentences: ({ plan }) => [
      `Here a large call takes ${counted(plan.nChannels, 'channel')}, as many multiprocessors. If a computation fills the GPU first, NCCL’s kernel waits for room, on all ranks.`,
      'NCCL_MAX_CTAS leaves more to the computation and costs bandwidth (ask what if NCCL_MAX_CTAS=8). NVLink SHARP needs fewer channels for the same bandwidth. A stream of higher priority lets NCCL start earlier.',
    ],
  },
  sharedGpu: {
    title: 'two ranks of a communicator on one GPU are refused; from 2.30 on NCCL_MULTI_RANK_GPU_ENABLE=1 allows them',
    sentences: () => [
      'Without it NCCL says «Duplicate GPU detected» or «Multiple Ranks are using the same GPU»: two ranks would wait for each other inside kernels that need not run at the same time. The variable is experimental: about two ranks a GPU fit, NVLink SHARP is off, and too few multiprocessors or memory hang (NCCL_MAX_CTAS limits the channels).',
      'Slices of MIG count as the GPU that they are part of, and P2P does not reach them.',
      'Most often it is a mistake: each process takes device 0, because CUDA_VISIBLE_DEVICES or the local rank is missing.',
    ],
  },
  openPorts: {
    title: 'NCCL needs TCP between all hosts of a job, at ports that the kernel chooses; data over InfiniBand need none',
    // bootstrap.cc, misc/socket.cc (port 0), transport/net_ib/connect.cc (ncclIbIfAddr), ras/ras_internal.h of NCCL.
    sentences: () => [
      'Bootstrap and sockets listen at ports of net.ipv4.ip_local_port_range (32768 to 60999 by default) on the interface of NCCL_SOCKET_IFNAME. NCCL has no range of its own: narrow that of the kernel, or allow all TCP between the hosts on that interface.',
      'RDMA connects over TCP on the same interface first. Data over InfiniBand pass no firewall of IP; RoCE v2 is UDP with port 4791.',
      'Only the root’s port can be fixed (NCCL_COMM_ID=ADDRESS:PORT, for programs that exchange no id). Launchers have ports beside (PyTorch: MASTER_PORT, 29500 by default).',
    ],
  },
  frontend: {
    title: 'data go over the RDMA cards; an Ethernet for management or storage only carries the bootstrap, unless it is chosen',
    // transport/net_ib (devices of NCCL_IB_HCA), os/linux.cc (interfaces) of NCCL.
    sentences: (situation) => [
      'NCCL takes all active ports of RDMA, and sockets only if there are none. A plain Ethernet beside them carries the bootstrap, and its speed does not matter.',
      'If it speaks RoCE, NCCL counts it among the NICs, and slower ones can slow rings: name those of the data (NCCL_IB_HCA=mlx5_0,mlx5_1). NCCL_SOCKET_IFNAME chooses the interface of the bootstrap.',
      ...hardwareHere(situation),
    ],
  },
  parallelism: {
    title: 'each group of ranks is a communicator of its own: within a node it uses NVLink or PCIe, across nodes the NICs',
    sentences: ({ plan }) => [
      `Groups of tensor parallelism are mostly consecutive ranks: they stay within a node if they are no larger than it (here ${counted(plan.nodes.nRanks / plan.nodes.nNodes, 'rank')}), and no traffic of theirs goes over the network.`,
      'Groups of data parallelism then have one GPU, or a few, of each node; their AllReduce, or ReduceScatter and AllGather, goes over the NICs next to these. Pipeline stages send to the next stage, mostly on another node; experts exchange all-to-all.',
      'This plan is that of all ranks. A group is planned as a cluster of its own: tccl plan CLUSTER --gpus 1 --nodes N for one GPU of each of N nodes.',
    ],
  },
  lostRank: {
    title:
      'a rank or GPU that dies leaves the others waiting: NCCL ends no call by itself over NVLink, and over the network by error or time-out',
    sentences: () => [
      'Kernels of other ranks poll for data that never come. Sockets and InfiniBand report a dead peer after a while (NCCL_IB_TIMEOUT, NCCL_IB_RETRY_CNT); within a node nothing does. PyTorch ends the job after ten minutes by default.',
      'A communicator cannot go on without a rank: ncclCommAbort frees the others, ncclCommShrink (2.27 on) makes one without it.',
      'Which rank it was: tccl diagnose FOLDER reads the job’s outputs, tccl watch looks at one that runs. The plan without a GPU: what if GPU 3 is missing.',
    ],
  },
  peerMemory: {
    title: 'GPU Direct RDMA needs DMA-BUF or nvidia_peermem: either is enough, and both are equally fast',
    // dmaBufSupported in init.cc, and the fall-through to peermem in transport/net.cc of NCCL.
    sentences: (situation) => [
      'NCCL tries DMA-BUF first (Linux 5.12, CUDA 11.7, the open kernel modules of the driver; NCCL_DMABUF_ENABLE=0 turns it off), then the module nvidia_peermem (modprobe nvidia_peermem; formerly nv_peer_mem).',
      'With neither, data go through memory of the host, and NET/IB lines of the log end without GDRDMA; fast networks lose much: ask what if GDR is disabled. A plan takes it that one of them is there.',
      ...hardwareHere(situation),
    ],
  },
  perRail: {
    title: 'each rail carries what one NIC does; a large call loads all rails equally, so one slow NIC slows all',
    sentences: (situation) => [
      'Rings and trees are spread over all NICs, so each rail has an equal part of the data, and all wait for the slowest: ask what if one NIC runs at 200G. A pair of ranks (SendRecv) uses one NIC, or a few.',
      ...nodeViews(situation).map((view) => {
        const { count, gbps } = nicsOf(view);
        return `${view.name}: ${counted(count, 'NIC')}, ${count === 0 ? 'none' : rate(gbps / count)} each in one direction at line rate.`;
      }),
    ],
  },
  mtu: {
    title: 'NCCL takes the smaller MTU of both ports; a plan does not depend on it',
    // ncclIbRtrQp in transport/net_ib/connect.cc of NCCL: the minimum of both active MTUs.
    sentences: () => [
      'InfiniBand has mostly 4096 bytes. RoCE takes the largest step that fits the Ethernet port: 1024 for 1500, 4096 for 4200 and more (jumbo frames). Small packets cost a few percent; ibv_devinfo shows active_mtu. Switches between must allow it, or packets are dropped. For sockets 9000 saves time of the CPU.',
    ],
  },
  search: {
    title: 'each host is searched alone, for as many channels as fit, from the highest speed on; then hosts are joined by rank',
    // graph/search.cc (ncclTopoCompute) and graph/connect.cc of NCCL.
    sentences: (situation) => [
      'A channel comes in by a NIC (with several hosts), visits all GPUs, and leaves by a NIC; its speed is taken off all links on the way, so the next channel takes others. If fewer channels fit than NCCL wants, it tries slower ones, farther paths, and other orders for each channel, within a time limit. The best is kept: number times speed. Then channels may be doubled.',
      'No interface tells the network between hosts, and a search over many hosts would not end, so there is no graph of all. Hosts exchange their results and take the least. Racks that NVLink joins are searched as one system.',
      'NCCL_GRAPH_DUMP_FILE=graph.xml writes the result; tccl graph shows it, with its reasons by --why. «why 16 channels» gives those of this plan.',
      ...nodeViews(situation).map(
        ({ name, kind }) =>
          `${name}: ${counted(kind.graphs.ring.nChannels, 'ring')} of ${rate(kind.graphs.ring.bwIntra)} within the node.`,
      ),
    ],
  },
  subnets: {
    title: 'NCCL asks nothing of subnets: NICs are paired by number, and each pair must reach each other',
    // transport/net_ib/connect.cc of NCCL (NCCL_IB_SUBNET_AWARE_ROUTING).
    sentences: () => [
      'One VLAN and subnet for all NICs works, and lets any NIC reach any other. Linux must then keep each address at its own port: arp_ignore=1, arp_announce=2, and routes by source, or RoCE traffic leaves by another port than planned.',
      'A subnet for each rail needs routes between them, or traffic that stays on its rail: equal numbers of NICs in all hosts, NCCL_CROSS_NIC=0, PXN for all-to-all. NCCL_IB_SUBNET_AWARE_ROUTING=1 (newest releases) pairs NICs by subnet.',
      'Losses, pauses (PFC) and congestion are the network’s; a plan does not depend on them.',
    ],
  },
  farNetwork: {
    title: 'a far network lowers bandwidth where the data in flight do not fill it: its speed times its round trip',
    sentences: () => [
      'Each connection of a channel has buffers of NCCL_BUFFSIZE (4 MiB in 8 slots): no more is on the way. 50 GB/s with a round trip of 500 us need 25 MB in flight on a NIC. A ring also waits for all its steps once, and all its ranks for the slowest hop.',
      'Larger NCCL_BUFFSIZE, more channels (NCCL_MIN_NCHANNELS) and queue pairs (NCCL_IB_QPS_PER_CONNECTION) put more in flight; trees and fewer far hops need fewer round trips. Plans take networks of a few us.',
    ],
  },
  bufferSizes: {
    title:
      'NCCL checks no buffer size: keep the defaults, or take 120 times a power of two for LL128 and powers of two for others',
    sentences: () => [
      'A buffer is cut into eight slots (NCCL_STEPS). Those of LL128 hold lines of 128 bytes with 120 of data, so its size must fit both: sizes that do not can hang or corrupt data, and NCCL gives no error. Defaults: NCCL_BUFFSIZE 4 MiB, NCCL_LL_BUFFSIZE 512 KiB, NCCL_LL128_BUFFSIZE 4,915,200 bytes, which is 120 KiB times 40.',
      'NCCL_BUFFSIZE also bounds chunks of send and receive: an eighth of it. Smaller buffers put less on the way; larger ones take memory for each connection and channel. All ranks need the same sizes.',
      'After a change run nccl-tests with checks (-c 1) over all sizes.',
    ],
  },
  copyEngines: {
    title:
      'registered buffers (-R 2) with the CTA policy ZERO (-x 2) let copy engines move the data: no ring, tree or channel takes part',
    sentences: () => [
      'NCCL then does AllGather, AllToAll, Gather and Scatter within an NVLink domain by copies of the GPUs’ copy engines (2.28 on), if the buffers lie in symmetric windows. NCCL_ALGO, NCCL_PROTO and numbers of channels do not act on them; nor do they on AllToAll without copy engines, which is messages between pairs.',
      'From 512 MiB a rank and for more than 8 copies at a time, NCCL cuts copies into rounds and lets ranks wait for each other between (ce_coll.cc). Below that nothing in NCCL changes with the size: a drop there comes from copy engines, memory or the driver.',
      'Compare with -x 0, which takes kernels, and without -R. Plans have kernels for windows (--windows symmetric), but no model of copy engines.',
    ],
  },
  perCall: {
    title:
      'NCCL_ALGO and NCCL_PROTO take a list for each collective; CTAs and others are set for each communicator; the rest for all',
    sentences: () => [
      'By collective (2.24 on): NCCL_ALGO="allreduce:^nvls,nvlstree" forbids NVLS for AllReduce only, "allgather:ring;allreduce:tree" has a list for each, and NCCL_PROTO is alike. A tuner plugin (tccl tuner) decides by collective, size and ranks, number of channels included.',
      'By communicator, in ncclConfig_t: minCTAs, maxCTAs, CTAPolicy, nvlsCTAs, collnetEnable, cgaClusterSize, trafficClass, netName, nChannelsPerNetPeer. So calls that need other resources get a communicator of their own, as a process group of PyTorch is.',
      'For all alike: other variables, such as NCCL_IB_QPS_PER_CONNECTION, NCCL_NVLS_ENABLE and NCCL_BUFFSIZE.',
    ],
  },
  geforceRdma: {
    title: 'GeForce drivers have no GPU Direct RDMA: data between hosts go through memory of the host',
    sentences: (situation) => [
      'NICs cannot read or write the memory of GeForce cards, whatever the NIC and NCCL_NET_GDR_LEVEL: nvidia-peermem and DMA-BUF need a data-centre or workstation card. NCCL notices, and its log shows NET/IB without GDRDMA. RDMA between the hosts is used nevertheless, from and to memory of the host. Patched drivers for P2P over PCIe do not add it.',
      'Each byte then crosses PCIe once more and loads the memory of the CPU. What GPU Direct RDMA would gain here: what if there is no GPU Direct RDMA.',
      ...hardwareHere(situation),
    ],
  },
  rackNeeds: {
    title: 'NVLink between hosts (MNNVL) needs cuMem, IMEX and one domain; without one of them NCCL takes the network',
    sentences: ({ plan }) => [
      'NCCL_CUMEM_ENABLE must not be 0: memory is shared between hosts by fabric handles of cuMem. Frameworks set it to 0 at times; then every communicator says MNNVL 0 and goes by NET/IB.',
      'An IMEX daemon has to run on each host, with a channel in /dev/nvidia-caps-imex-channels that the container sees (on Kubernetes a ComputeDomain), and nvidia-smi -q must show the same ClusterUUID and CliqueId on all, state Completed. NCCL_MNNVL_ENABLE=0 turns it off; 1 makes init fail where it is not possible.',
      'The log tells: «MNNVL 1 cliqueId … cliqueSize N» and «via P2P/MNNVL».',
      `This plan counts ${counted(plan.nodes.nNodes, 'node')} for ${counted(plan.nodes.nRanks, 'rank')}: hosts of one NVLink domain are one node.`,
    ],
  },
  patNodes: {
    title: 'PAT is for AllGather and ReduceScatter with one rank on each node',
    sentences: () => [
      'It came with 2.23. NCCL takes it for small and middle sizes, where its steps grow with the logarithm of the nodes and those of a ring with their number. With several ranks on a node it is left out, as its part within a node is not written; such jobs take Ring, or NVLS.',
      'NCCL_PAT_ENABLE=0 turns it off.',
    ],
  },
};
