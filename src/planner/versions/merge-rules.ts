import { byVersion, since } from './rule.js';

/** Decisions about the channels of all ranks that changed between versions. */
export const mergeRules = {
  netSpeedOfRank: since('2.30.3', {
    about: 'The bandwidth of the slowest NIC that ranks agree on.',
    before: 'The slowest network device of the host; each rank has its own figure.',
    now: 'The slowest path of each rank to the NICs that it uses.',
    source: 'src/graph/topo.cc, ncclTopoGetMinNetBw',
  }),
  nvlsTunedForBlackwell: since('2.30.3', {
    about: 'Channels and chunks of NVLink SHARP on Blackwell between nodes.',
    before: '32 channels and chunks of one size.',
    now: 'They follow the speed of the NICs, the ranks a node and the distance between GPU and NIC.',
    source: 'src/transport/nvls.cc, ncclNvlsTuning',
    undo: 'NCCL_NVLS_NCHANNELS, NCCL_NVLS_CHUNKSIZE and NCCL_NVLSTREE_MAX_CHUNKSIZE',
  }),
  p2pMaxPeers: since('2.30.3', {
    about: 'How many peers send and receive are tuned for.',
    before: 'All ranks.',
    now: 'All ranks, or NCCL_P2P_MAX_PEERS.',
    source: 'src/graph/paths.cc, ncclTopoComputeP2pChannels',
  }),
  p2pNetChannels: byVersion(
    {
      about: 'Send and receive channels to a peer on another host.',
      source: 'src/graph/paths.cc, ncclTopoGetNchannels',
      undo: 'NCCL_NCHANNELS_PER_NET_PEER',
    },
    {
      '2.18.1': ['fixed', 'Two.'],
      '2.20.3': [
        'by scale',
        'Two, one where there are many ranks, and at least one for each NIC that it takes to keep up with PCI; each rank counts for itself.',
      ],
      '2.29.2': [
        'by bandwidth',
        'What the NICs can carry at 14 GB/s a channel, then fewer until all peers fit in one round; all ranks take the least.',
      ],
    },
  ),
  swappedRings: byVersion(
    { about: 'Which nodes at odd places swap pairs of rings.', source: 'src/graph/connect.cc, ncclTopoPostset' },
    {
      '2.18.1': ['none', 'None.'],
      '2.20.3': [
        'crossing, even nodes',
        'All, where rings cross NICs, in pairs or because NCCL_CROSS_NIC=1, and the number of nodes is even.',
      ],
      '2.21.5': ['crossing', 'All, where any node has rings that cross NICs, whatever the number of nodes.'],
      '2.26.2': ['pairs', 'All, where any node has rings that cross NICs in pairs.'],
      '2.28.3': ['own pairs', 'Those that have rings in crossing pairs themselves.'],
    },
  ),
  channelsForNvls: byVersion(
    { about: 'Channels of rings and trees where NVLink SHARP has more.', source: 'src/graph/connect.cc, ncclTopoPostset' },
    {
      '2.18.1': [false, 'They stay as they are.'],
      '2.20.3': [true, 'They are copied until there are as many.'],
      '2.28.3': [false, 'They stay as they are.'],
    },
  ),
  channelsDoubledFor: byVersion(
    {
      about: 'GPUs for which fast rings between nodes are copied once more.',
      source: 'src/graph/connect.cc, ncclTopoPostset',
      undo: 'NCCL_MAX_NCHANNELS',
    },
    {
      '2.18.1': ['hopper, up to 16', 'Where the oldest GPU is a Hopper, up to 16 channels.'],
      '2.20.3': ['hopper', 'Where the oldest GPU is a Hopper, fewer than 16 channels.'],
      '2.25.1': ['newer', 'Hopper and newer ones, fewer than 16 channels.'],
    },
  ),
  channelsDoubledToUnpack: since('2.22.3', {
    about: 'Channels between nodes where GPUs put together what the network received (GPUDirect-TCPX).',
    before: 'As many as with other networks.',
    now: 'Twice as many, where there are fewer than 16.',
    source: 'src/graph/connect.cc, ncclTopoPostset',
    undo: 'NCCL_UNPACK_DOUBLE_NCHANNELS=0',
  }),
  nvlsChannelsWithinParent: since('2.21.5', {
    about: 'Channels copied for NVLink SHARP in a communicator that shares the resources of the one it was split from.',
    before: 'As many as NVLink SHARP has.',
    now: 'No more than that one has.',
    source: 'src/graph/connect.cc, ncclTopoPostset',
  }),
  nvlsChunksOfParent: since('2.30.3', {
    about: 'Chunks of NVLink SHARP in a communicator that shares the resources of the one it was split from.',
    before: 'Its own.',
    now: 'Those of that one.',
    source: 'src/transport/nvls.cc, ncclNvlsSetup',
  }),
  channelsFitArguments: since('2.22.3', {
    about: 'Channels that find room in the arguments of a kernel.',
    before: 'There is no such limit.',
    now: 'No more than NCCL_WORK_ARGS_BYTES has room for.',
    source: 'src/graph/connect.cc, ncclMaxNchannels',
    undo: 'NCCL_WORK_ARGS_BYTES',
  }),
  worstPathCounts: since('2.25.1', {
    about: 'Whether GPUs count as joined by NVLink, which sets the chunk of send and receive on one host.',
    before: 'Where any two of them are.',
    now: 'Where all are.',
    source: 'src/graph/paths.cc, ncclTopoPathAllNVLink',
    undo: 'NCCL_P2P_NVL_CHUNKSIZE and NCCL_P2P_PCI_CHUNKSIZE',
  }),
  crossNicOfAll: since('2.21.5', {
    about: 'Whether rings of a node that cross NICs matter for other nodes.',
    before: "Each rank looks at its own node's.",
    now: 'All ranks take the same: rings cross NICs where those of any node do.',
    source: 'src/init.cc, initTransportsRank',
  }),
  smallBuffersOnArm: byVersion(
    { about: 'Buffer of Simple on ARM CPUs.', source: 'src/init.cc, computeBuffSizes', undo: 'NCCL_BUFFSIZE=1048576' },
    { '2.18.1': [true, '1 MiB.'], '2.19.1': [false, '4 MiB, as elsewhere.'] },
  ),
  p2pChunkInBuffer: since('2.19.1', {
    about: 'Chunks of send and receive that are larger than a step of the buffer.',
    before: 'They are used.',
    now: 'They are cut.',
    source: 'src/init.cc, computeBuffSizes',
  }),
  nvlsTreeChunk: byVersion(
    { about: 'The largest chunk of NVLSTree.', source: 'src/enqueue.cc, computeColl', undo: 'NCCL_NVLSTREE_MAX_CHUNKSIZE' },
    {
      '2.18.1': ['buffer, any nodes', 'An eighth of the buffer of Simple.'],
      '2.19.3': ['buffer', 'An eighth of the buffer of Simple, and 64 KiB from four nodes on.'],
      '2.21.5': ['nvls', 'That of NVLS, and 64 KiB from four nodes on.'],
    },
  ),
  compCapOfAll: since('2.21.5', {
    about: 'Compute capability that the tuning model looks at where GPUs differ.',
    before: "Each rank's own.",
    now: 'The lowest and the highest of all ranks.',
    source: 'src/init.cc, initTransportsRank',
  }),
  cpusOfAllRanks: since('2.24.3', {
    about: 'CPUs that the tuning model looks at.',
    before: "Each rank's own.",
    now: 'Those of all ranks: hosts with different CPUs count as mixed.',
    source: 'src/init.cc, initTransportsRank',
  }),
  collnetOnLargeNodes: since('2.23.4', {
    about: 'CollNet on nodes of more than eight ranks.',
    before: 'The network does not reduce.',
    now: 'It may.',
    source: 'src/init.cc, initTransportsRank',
  }),
  nvlsHeadsOnce: since('2.20.3', {
    about: 'A GPU that is head of two channels of NVLink SHARP.',
    before: 'It counts as two heads.',
    now: 'It counts once.',
    source: 'src/graph/connect.cc, ncclTopoPreset',
  }),
  nvlsTreesOfAllHeads: since('2.20.3', {
    about: 'Which heads of NVLink SHARP have trees to other nodes.',
    before: 'The first ones, as many as rings.',
    now: 'All.',
    source: 'src/graph/connect.cc, ncclTopoPreset',
  }),
  nvlsChannelsBlackwell: byVersion(
    {
      about: 'Channels of NVLink SHARP on Blackwell.',
      source: 'src/transport/nvls.cc, ncclNvlsInit',
      undo: 'NCCL_NVLS_NCHANNELS',
    },
    {
      '2.18.1': [{ within: 16, between: 16 }, '16'],
      '2.25.1': [{ within: 32, between: 32 }, '32'],
      '2.27.3': [{ within: 24, between: 32 }, '24 on one host, 32 on several'],
    },
  ),
  nvlsChannelsRubin: byVersion<{ readonly within: number; readonly between: number } | 'as blackwell'>(
    {
      about: 'Channels of NVLink SHARP on Rubin.',
      source: 'src/transport/nvls.cc, of a commit after 2.32.3',
      undo: 'NCCL_NVLS_NCHANNELS',
    },
    {
      '2.18.1': ['as blackwell', 'As many as on Blackwell.'],
      '2.32.6': [{ within: 48, between: 64 }, '48 on one host, 64 on several'],
    },
  ),
  p2pOrder: byVersion(
    { about: 'In which order ranks exchange when all exchange with all.', source: 'src/init.cc, ncclP2pSchedule' },
    {
      '2.18.1': ['by node', 'Node by node at distances 0, +1, -1, +2 …, and rank by rank in each.'],
      '2.22.3': [
        'quadratic',
        'Nodes at distances 0, 1, 3, 6, 10 …, and ranks in the same way; one list of all ranks where nodes differ in size.',
      ],
      '2.28.7': ['groups', 'Groups of up to 8 ranks at distances 0, 1, 3, 6, 10 …, and one rank after the other in each.'],
    },
  ),
  p2pLl: byVersion(
    { about: 'The largest message between two ranks that takes LL.', source: 'src/enqueue.cc, addP2pToPlan' },
    {
      '2.18.1': ['by message', '16 KiB for each channel that the message would take with Simple.'],
      '2.22.3': ['by peer', '16 KiB for each channel that a peer may take, however few the message takes.'],
      '2.29.2': ['by message', '16 KiB for each channel that the message would take with Simple.'],
    },
  ),
  p2pParts: byVersion(
    {
      about: 'Parts of a message between two ranks, each on a channel of its own.',
      source: 'src/enqueue.cc, scheduleP2pTasksToPlan',
    },
    {
      '2.18.1': ['small', 'At least an eighth of a chunk; on one node, as few as leave each rank a channel.'],
      '2.20.3': ['large between nodes', 'Between nodes at least half a chunk; everywhere as few as leave each rank a channel.'],
    },
  ),
  collnetDirectMostRanks: since('2.28.3', {
    about: 'Links for CollNetDirect on nodes of more than eight ranks.',
    before: 'They are made nevertheless.',
    now: 'There are none.',
    source: 'src/graph/connect.cc, ncclTopoPostset',
  }),
  p2pChunkOfGraceBlackwell: since('2.29.2', {
    about: 'Chunk of send and receive between hosts with Grace CPUs and Blackwell GPUs.',
    before: 'NCCL_P2P_NET_CHUNKSIZE.',
    now: 'Twice that.',
    source: 'src/init.cc, computeBuffSizes',
    undo: 'NCCL_P2P_NET_CHUNKSIZE=65536',
  }),
  directP2pAlone: since('2.28.7', {
    about: 'Whether a GPU that is alone on its node counts as joined to all others by direct copies.',
    before: 'No.',
    now: 'Yes.',
    source: 'src/transport.cc, ncclTransportCheckP2pType',
  }),
  relayedNvLinkChannels: since('2.30.7', {
    about: 'Send and receive channels to a GPU that is reached over NVLink by way of another GPU.',
    before: 'Two, as over PCI.',
    now: 'As many as its bandwidth is worth in NVLinks, twice.',
    source: 'src/graph/paths.cc, ncclTopoGetNchannels',
  }),
  directNvLinkAlone: since('2.30.7', {
    about: 'Whether a GPU that is alone on its host counts as joined by NVLink directly.',
    before: 'No.',
    now: 'Yes.',
    source: 'src/graph/paths.cc, ncclTopoPathAllDirectNVLink',
  }),
} as const;
