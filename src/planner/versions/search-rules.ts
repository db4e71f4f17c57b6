import { byVersion, since } from './rule.js';

const SOURCE = 'src/graph/search.cc, sm90SpeedArrayIntra to sm100SpeedArrayInter';
const hopperBetween = [48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12];
const blackwellBetween = (...fastest: number[]) => [...fastest, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12];
const hopperWithin = [60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3];

/** Decisions of the channel search that changed between versions. */
export const searchRules = {
  balancedTreesFromFar: since('2.29.2', {
    about: 'How far GPUs before Hopper may be from the NICs of a graph.',
    before: 'As far as the farthest NIC of any GPU.',
    now: 'Any distance, for balanced trees sometimes come back from far.',
    source: 'src/graph/search.cc, ncclTopoCompute',
  }),
  simpleOrderNics: since('2.29.2', {
    about: 'NICs of the slow channel that is taken where the search finds nothing.',
    before: 'NIC 0 at both ends, even without a network.',
    now: 'Those of the first and of the last GPU; without a network NCCL fails.',
    source: 'src/graph/search.cc, ncclTopoCompute',
  }),
  stepsOfSearch: byVersion(
    {
      about: 'How many steps the search takes at most once it has a solution.',
      source: 'src/graph/search.cc, NCCL_SEARCH_GLOBAL_TIMEOUT',
    },
    { '2.18.1': [1 << 18, '262,144'], '2.18.3': [5 << 16, '327,680'], '2.19.1': [1 << 19, '524,288'] },
  ),
  alikeThroughAmd: byVersion(
    { about: 'Whether channels may differ where they go through AMD CPUs.', source: 'src/graph/search.cc, ncclTopoCompute' },
    { '2.18.1': [false, 'Yes.'], '2.19.1': [true, 'No, all are alike.'] },
  ),
  byNumberWithSwitches: byVersion(
    {
      about: 'Whether the search tries GPUs as they are numbered first on a host with NVSwitches.',
      source: 'src/graph/search.cc, ncclTopoSearchRecNet',
    },
    { '2.18.1': [true, 'Yes, as on all others.'], '2.19.3': [false, 'No.'] },
  ),
  nicsInTurn: since('2.19.1', {
    about: 'With which NIC the search begins for a channel.',
    before: 'The first, for each channel.',
    now: 'The next, channel by channel.',
    source: 'src/graph/search.cc, ncclTopoSearchRecNet',
  }),
  fasterChannels: byVersion(
    {
      about: 'What the search makes faster when it has a solution, and when it splits fast channels into two.',
      source: 'src/graph/search.cc, ncclTopoCompute',
    },
    {
      '2.18.1': ['trees', 'Channels of trees and NVLS between GPUs; fast channels are split at the end.'],
      '2.19.1': ['trees and heads', 'Channels of trees between GPUs and of NVLS to NICs; fast channels are split at the end.'],
      '2.19.3': ['all', 'Rings, too; fast channels are split before.'],
    },
  ),
  crossNicOfAllGraphs: byVersion(
    {
      about: 'NCCL_CROSS_NIC=1 in graphs of other patterns, and in the search at lower speeds.',
      source: 'src/graph/search.cc, ncclTopoCompute',
    },
    {
      '2.18.1': [true, 'All graphs are marked as crossing NICs; at lower speeds both ways are tried.'],
      '2.19.1': [false, 'Rings and trees may cross NICs, and do so at all speeds.'],
    },
  ),
  nvlsBandwidthCounts: since('2.19.1', {
    about: 'What makes one search result for NVLink SHARP better than another.',
    before: 'More heads.',
    now: 'More heads, or more bandwidth.',
    source: 'src/graph/search.cc, ncclTopoCompareGraphs',
  }),
  firstGpus: byVersion(
    { about: 'At which GPUs a channel that comes in by a NIC may start.', source: 'src/graph/search.cc, ncclTopoSearchRecNet' },
    {
      '2.18.1': [
        'unused first',
        'Those with the most bandwidth and the fewest hops to the NIC, first those whose PCI link is free.',
      ],
      '2.19.1': [
        'rotating',
        'Those with the most bandwidth and the fewest hops to the NIC, from another one on in each channel; none if that bandwidth is too little.',
      ],
      '2.27.3': ['nearest', 'Those with the most bandwidth and the nearest type of path.'],
      '2.27.5': ['own first', 'The GPU that uses the NIC, then the other nearest ones.'],
    },
  ),
  replayWhereAlike: since('2.27.5', {
    about: 'Whether a channel first tries to repeat the one before.',
    before: 'Always.',
    now: 'Only where all channels have to be alike.',
    source: 'src/graph/search.cc, ncclTopoSearchRecNet',
  }),
  refusesUnconnected: since('2.27.3', {
    about: 'Paths between nodes that are not connected.',
    before: 'The search may take them in parts of a channel and where all types are allowed.',
    now: 'The search never takes them.',
    source: 'src/graph/search.cc, ncclTopoFollowPath',
  }),
  mostNicsOfPolicy: since('2.28.7', {
    about: 'NCCL_NETDEVS_POLICY=MAX:n in the search.',
    before: 'The search goes on to other NICs when the first n are used.',
    now: 'The search never takes more than n NICs a GPU.',
    source: 'src/graph/search.cc, ncclTopoSelectNets',
  }),
  mostChannels: byVersion(
    { about: 'The most channels that there can be.', source: 'src/include/device.h, MAXCHANNELS' },
    { '2.18.1': [32, '32; a search finds up to 16'], '2.25.1': [64, '64; a search finds up to 32'] },
  ),
  typesOfMachine: since('2.25.1', {
    about: 'Types of paths that the search tries.',
    before: 'From NVLink (between GPUs) and PIX (to NICs) to SYS.',
    now: 'From the nearest to the farthest that the machine has.',
    source: 'src/graph/search.cc, ncclTopoCompute',
  }),
  pairedPatterns: byVersion(
    {
      about: 'Graphs whose channels come in pairs that cross NICs.',
      source: 'src/graph/search.cc, ncclTopoSearchRecNet and ncclTopoSearchRecGpu',
      undo: 'NCCL_CROSS_NIC=0 keeps all channels on their NICs in all versions',
    },
    {
      '2.18.1': ['none', 'None: each channel may cross NICs for itself (crossNic 1).'],
      '2.20.3': ['all', 'Rings and trees, wherever NICs may be crossed (crossNic 1).'],
      '2.23.4': ['rings', 'Rings, where NCCL_CROSS_NIC=2 (the default) lets the search cross NICs (crossNic 2).'],
    },
  ),
  crossingBonus: byVersion(
    {
      about: 'How much more bandwidth channels need that cross NICs, to count as better than those that do not.',
      source: 'src/graph/search.cc, ncclTopoCompareGraphs',
    },
    { '2.18.1': [0.15, '15 %'], '2.20.3': [0, 'Any.'] },
  ),
  twoRingsForIslands: since('2.26.2', {
    about: 'Fewest rings on hosts whose GPUs are two NVLink islands.',
    before: 'One.',
    now: 'Two, for trees need two channels there.',
    source: 'src/graph/search.cc, ncclTopoSplitNvLink',
  }),
  nvlsHeadNics: byVersion(
    {
      about: 'NICs that are tried for a head of NVLink SHARP between nodes.',
      source: 'src/graph/search.cc, ncclTopoSearchRecNet',
    },
    {
      '2.18.1': ['all for one head', 'All, with the GPU of the NIC that has the number of the channel as head.'],
      '2.19.1': ['one', 'One for each channel; the same GPU may be head twice.'],
      '2.22.3': ['until found', 'All, until one has a GPU that is no head yet.'],
    },
  ),
  switchNeighbours: byVersion(
    {
      about: 'GPUs that a channel tries next on a host with NVSwitches.',
      source: 'src/graph/search.cc, ncclTopoSearchNextGpuSort',
    },
    {
      '2.18.1': ['any', 'Any, best first.'],
      '2.19.3': ['first', 'The two neighbours first, then all others.'],
      '2.21.5': ['only', 'Only the two neighbours.'],
    },
  ),
  loneGpuIsLimited: since('2.21.5', {
    about: 'The bandwidth with which the search starts on hosts with one GPU.',
    before: 'Any that the path to the NIC carries.',
    now: 'No more than the links of the GPU carry together.',
    source: 'src/graph/search.cc, ncclTopoSearchInit and ncclTopoCompute',
  }),
  mostNvlsHeads: byVersion(
    { about: 'Most heads of NVLink SHARP.', source: 'src/graph/search.cc, ncclTopoCompute' },
    {
      '2.18.1': ['channels', 'As many as channels between nodes.'],
      '2.19.1': ['gpus', 'As many as GPUs.'],
      '2.25.1': ['gpus, 32', 'As many as GPUs, and 32.'],
    },
  ),
  mostDirectHeads: byVersion(
    { about: 'Most heads of CollNetDirect.', source: 'src/graph/search.cc, ncclTopoCompute' },
    { '2.18.1': [Infinity, 'As many as GPUs.'], '2.25.1': [8, '8'] },
  ),
  nvlsFewestGpus: byVersion(
    {
      about: 'Fewest GPUs of a host for NVLink SHARP.',
      source: 'src/transport/nvls.cc, ncclNvlsInit',
      undo: 'NCCL_NVLS_ENABLE=0',
    },
    { '2.18.1': [3, 'Three.'], '2.28.7': [2, 'Two.'] },
  ),
  collnetHeadsSearched: since('2.22.3', {
    about: 'Channels of CollNetDirect.',
    before: 'Those of CollNet chains.',
    now: 'A search of its own finds heads that reach all GPUs.',
    source: 'src/init.cc, initTransportsRank',
  }),
  hopperSpeedsWithin: byVersion(
    { about: 'Speeds of a channel that the search tries on a host with Hopper GPUs, GB/s.', source: SOURCE },
    {
      '2.18.1': [[60, 40, 30, 24, 20, 15, 12, 6, 3], '60, 40, 30, 24, 20, 15, 12, 6, 3'],
      '2.19.1': [[60, 50, 40, 30, 24, 20, 15, 12, 6, 3], '50 is tried too'],
      '2.21.5': [hopperWithin, '11 is tried too'],
    },
  ),
  hopperSpeedsBetween: byVersion(
    { about: 'Speeds of a channel that the search tries between hosts with Hopper GPUs, GB/s.', source: SOURCE },
    {
      '2.18.1': [hopperBetween.filter((gbps) => gbps > 22 || gbps <= 15), '48, 45, 42, 40, 30, 24, 15, 12, 6 and less'],
      '2.18.3': [hopperBetween.filter((gbps) => gbps !== 22), '20 and 17.5 are tried too'],
      '2.19.3': [hopperBetween, '22 is tried too'],
    },
  ),
  blackwellSpeedsWithin: byVersion(
    { about: 'Speeds of a channel that the search tries on a host with Blackwell GPUs, GB/s.', source: SOURCE },
    {
      '2.18.1': [hopperWithin, 'those of Hopper'],
      '2.25.1': [[90, 80, 70, 60, 50, 40, 30, 24, 20, 19], '90, 80, 70, 60, 50, 40, 30, 24, 20, 19'],
      '2.27.3': [[90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18], '18 is tried too'],
      '2.29.2': [[90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18], '45 is tried too'],
    },
  ),
  blackwellSpeedsBetween: byVersion(
    { about: 'Speeds of a channel that the search tries between hosts with Blackwell GPUs, GB/s.', source: SOURCE },
    {
      '2.18.1': [hopperBetween, 'those of Hopper'],
      '2.25.1': [blackwellBetween(48, 45), '48, 45, 42 and less'],
      '2.27.3': [blackwellBetween(47.9, 45), '47.9 in place of 48'],
      '2.27.5': [blackwellBetween(48, 45.1), '48, and 45.1 in place of 45'],
      '2.27.6': [blackwellBetween(96, 48, 45.1), '96 is tried too'],
      '2.29.7': [blackwellBetween(96, 80, 48, 45.1), '80 is tried too'],
      '2.30.3': [blackwellBetween(96, 86, 80, 48, 45.1), '86 is tried too'],
      '2.31.2': [blackwellBetween(96, 90.2, 86, 80, 48, 45.1), '90.2 is tried too'],
    },
  ),
} as const;
