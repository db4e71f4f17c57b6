import { byVersion, since } from './rule.js';

/** Decisions of the tuning model that changed between versions. */
export const tuningRules = {
  tuningModel: byVersion(
    { about: 'Model of time.', source: 'src/graph/tuning.cc, ncclTopoTuneModel; since 2.31 src/tuning/' },
    {
      '2.18.1': ['cost table', 'A table of costs of algorithms and protocols.'],
      '2.31.2': [
        'cost model',
        'One list of candidates: general, symmetric and copy-engine kernels, each with a model of its own. Bandwidths of rings and NVLS are rounded otherwise.',
      ],
    },
  ),
  pipelineModel: since('2.32.6', {
    about: 'Model of rings, trees, NVLS and NVLSTree on Rubin.',
    before: 'That of Blackwell.',
    now: 'A pipeline of slices with round trips of its own: the first slice takes all steps, each other one the slowest link.',
    source: 'src/tuning/pipeline_model, src/tuning/platforms/rubin.h, of commits after 2.32.3',
  }),
  tieGoesTo: byVersion(
    { about: 'The choice among candidates of equal time.', source: 'src/tuning/tuning.cc, ncclTuningSelectBestTuning' },
    { '2.18.1': ['first', 'The first.'], '2.31.2': ['last', 'The last: the results are read from the end.'] },
  ),
  ringSpeedOfTwoNodes: byVersion(
    { about: 'Speed of a channel of a ring on two nodes.', source: 'src/tuning/ring.cc, ncclTuningRingModelInit' },
    {
      '2.18.1': ['within', 'That within a node.'],
      '2.31.2': ['between on blackwell', 'That between nodes on Blackwell, that within a node before.'],
    },
  ),
  treeSpeed: byVersion(
    { about: 'Speed of a channel of a tree.', source: 'src/tuning/tree.cc, ncclTuningTreeModelInit' },
    {
      '2.18.1': ['as ring', 'That within a node on up to two nodes, that between nodes on more.'],
      '2.31.2': ['lesser on blackwell', 'The lesser of both on Blackwell.'],
    },
  ),
  patSpeed: byVersion(
    { about: 'Speed of a channel of PAT.', source: 'src/tuning/pat.cc, ncclTuningPatModelInit' },
    {
      '2.18.1': ['as ring', 'That within a node on two nodes, that between nodes on more.'],
      '2.31.2': ['lesser', 'The lesser of both.'],
    },
  ),
  ringThreads: byVersion(
    {
      about: 'Threads of a ring with Simple.',
      source: 'src/tuning/tuning_general.cc, ncclTuningSetThreadThresholds',
      undo: 'NCCL_NTHREADS=256',
    },
    { '2.18.1': ['256 where slow', '512, or 256 where all channels together carry at most 12 GB/s.'], '2.31.2': ['512', '512.'] },
  ),
  treesOnPower: byVersion(
    { about: 'A step of trees with Simple over PCI on POWER CPUs.', source: 'src/tuning/tree.cc, ncclTuningTreeModelInit' },
    { '2.18.1': ['as ring', 'As a step of rings.'], '2.31.2': ['own', 'As elsewhere.'] },
  ),
  nvlsRanksOfNode: byVersion(
    {
      about: 'Ranks of a node in the model of NVLS for AllGather and ReduceScatter.',
      source: 'src/tuning/nvls.cc, ncclTuningNvlsModelInit',
    },
    { '2.18.1': ['mean', 'Ranks by nodes.'], '2.31.2': ['fewest', 'Those of the smallest node.'] },
  ),
  nvlsGatherMostChannels: byVersion(
    {
      about: 'Most channels of the graph of NVLS for AllGather and ReduceScatter.',
      source: 'src/tuning/nvls.cc, ncclTuningNvlsModelSim',
    },
    { '2.18.1': [Infinity, 'Any number.'], '2.31.2': [32, '32'] },
  ),
  collnetDirectNeedsSwitch: byVersion(
    { about: 'CollNetDirect on nodes without NVSwitches.', source: 'src/tuning/collnet.cc, ncclTuningCollnetModelInit' },
    { '2.18.1': [true, 'It is not used.'], '2.31.2': [false, 'It may be used where the network reduces.'] },
  ),
  collnetReduceNeedsHeads: since('2.31.2', {
    about: 'CollNet for AllReduce between nodes where a node has more ranks than heads.',
    before: 'It is used.',
    now: 'It is not, as for AllGather and ReduceScatter.',
    source: 'src/tuning/collnet.cc, ncclTuningCollnetModelInit',
  }),
  ringPlateau: byVersion(
    {
      about: 'Calls for which rings with Simple have a higher latency from 64 bytes a rank and channel on.',
      source: 'src/tuning/ring.cc, ncclTuningRingModelSim',
    },
    {
      '2.18.1': ['between nodes', 'AllReduce between nodes.'],
      '2.31.2': [
        'blackwell gathers',
        'AllReduce between nodes; AllGather and ReduceScatter on one node of Blackwell GPUs joined by NVLink.',
      ],
      '2.32.3': [
        'blackwell by size',
        'AllReduce between nodes; all three on one node of Blackwell GPUs joined by NVLink, less with few ranks and with more than 256 KiB a rank and channel.',
      ],
    },
  ),
  patPerNode: byVersion(
    {
      about: 'PAT with several ranks a node.',
      source: 'src/tuning/pat.cc, ncclPatEnable and ncclTuningPatModelSim',
      undo: 'NCCL_PAT_ENABLE=0',
    },
    {
      '2.18.1': ['if asked', 'Only with NCCL_PAT_ENABLE=1.'],
      '2.31.2': [
        'nvls',
        'With NVLink SHARP, whose heads are all ranks of each node, but only where nothing else is left (NCCL_ALGO=PAT).',
      ],
    },
  ),
  patScales: since('2.31.2', {
    about: 'PAT for averages in ReduceScatter.',
    before: 'It is not used: it cannot scale.',
    now: 'It is used with one rank a node.',
    source: 'src/tuning/pat.cc, ncclTuningPatModelSim',
  }),
  listsAreForced: since('2.31.2', {
    about: 'NCCL_ALGO for some collectives only, as allreduce:tree.',
    before: 'The others are not affected.',
    now: 'The others are not affected either, unless NCCL_PROTO names them or all: then no algorithm is left.',
    source: 'src/tuning/cost_model.cc, ncclTuningCostModelInit',
  }),
  nvlsTreeCapBlackwell: byVersion(
    {
      about: 'The most that one head of NVLSTree carries on Blackwell between three nodes or more, GB/s.',
      source: 'src/graph/tuning.cc, ncclTunerConstantsDefaults',
    },
    { '2.18.1': [43.8, '43.8'], '2.30.3': [80, '80'] },
  ),
  ringLl128CapBlackwell: byVersion(
    {
      about: 'The most that one channel of a ring carries with LL128 on Blackwell (one node, two, more), GB/s.',
      source: 'src/graph/tuning.cc, perChMaxRingLL128Bws',
    },
    {
      '2.18.1': [[36.7, 36.7, 36.7], '36.7, as on Hopper'],
      '2.25.1': [[73.4, 73.4, 73.4], '73.4'],
      '2.28.9': [[73.4, 34.6, 73.4], '73.4, 34.6, 73.4'],
      '2.29.2': [[34.5, 34.6, 34.5], '34.5, 34.6, 34.5'],
      '2.29.7': [[40, 40, 40], '40'],
    },
  ),
  treeLl128CapBlackwell: byVersion(
    {
      about: 'The most that one channel of a tree carries with LL128 on Blackwell (one node, two, more), GB/s.',
      source: 'src/graph/tuning.cc, perChMaxTreeLL128Bws',
    },
    {
      '2.18.1': [[36.7, 36.7, 29], '36.7, 36.7, 29, as on Hopper'],
      '2.25.1': [[73.4, 73.4, 58], '73.4, 73.4, 58'],
      '2.28.3': [[55.6, 31.67, 20], '55.6, 31.67, 20'],
    },
  ),
  treeCapBlackwell: byVersion(
    {
      about: 'The most that one channel of a tree carries on Blackwell (one node, two, more), GB/s.',
      source: 'src/graph/tuning.cc, perChMaxTreeBws',
    },
    {
      '2.18.1': [[38.7, 41.4, 36], '38.7, 41.4, 36, as on Hopper'],
      '2.25.1': [[77.4, 82.8, 72], '77.4, 82.8, 72'],
      '2.28.3': [[70, 42.8, 24], '70, 42.8, 24'],
    },
  ),
  nvlsByEfficiency: since('2.28.3', {
    about: 'Bandwidth of NVLS and NVLSTree in the model.',
    before: 'That of their graph, times 5/6 for AllReduce.',
    now: 'An efficiency by generation, (n-1)/n of the channels, a cap for each channel of NVLSTree; at least two channels.',
    source: 'src/graph/tuning.cc, nvlsEfficiency',
    undo: 'NCCL_ALGO',
  }),
  nvlsShareOfRanks: since('2.27.3', {
    about: 'Bandwidth of NVLS for AllGather and ReduceScatter.',
    before: 'As for AllReduce.',
    now: '(n-1)/n of what the switch does, and 9/10 of the network.',
    source: 'src/graph/tuning.cc, ncclTopoTuneModel',
  }),
  nvlsGatherOnOneNode: byVersion(
    { about: 'NVLS for AllGather and ReduceScatter by ranks.', source: 'src/enqueue.cc, updateCollCostTable' },
    { '2.18.1': [true, 'On one node.'], '2.27.3': [false, 'On one node and on several.'] },
  ),
  collnetGathers: since('2.20.3', {
    about: 'CollNetDirect for AllGather and ReduceScatter.',
    before: 'It is for AllReduce only.',
    now: 'It is there, where each rank of a node has a head.',
    source: 'src/graph/tuning.cc, ncclTopoTuneModel',
  }),
  nvlsGathers: since('2.19.1', {
    about: 'NVLS for AllGather and ReduceScatter.',
    before: 'It is for AllReduce only.',
    now: 'It is there.',
    source: 'src/graph/tuning.cc, ncclTopoTuneModel',
  }),
  nvlsModel: byVersion(
    { about: 'NVLS and NVLSTree between nodes in the model.', source: 'src/graph/tuning.cc, ncclTopoTuneModel' },
    {
      '2.18.1': [
        'as rings',
        'Bandwidth as that of rings, NVLSTree 0.7 n/(2(n-1)) of it for n nodes; NVLSTree takes 2(n-1) steps.',
      ],
      '2.19.1': ['own', 'The lesser of the bandwidths within and between nodes; NVLSTree takes 2 log2(n) steps.'],
    },
  ),
  collnetUs: byVersion(
    {
      about: 'Latency of CollNet: for a step of CollNetDirect and of chains, and for each rank that a head serves, µs.',
      source: 'src/graph/tuning.cc, baseLat and hwLat',
    },
    {
      '2.18.1': [
        {
          base: { LL: 6.8, LL128: 14, Simple: 0 },
          direct: { nvlink: 8, pci: 8, net: 10.7 },
          chain: { nvlink: 4.75, pci: 8, net: 14 },
          rank: 0.5,
        },
        '8, 8, 10.7 and 4.75, 8, 14 over NVLink, PCI and network, 0.5',
      ],
      '2.19.1': [
        {
          base: { LL: 0, LL128: 0, Simple: 0 },
          direct: { nvlink: 3.7, pci: 3.7, net: 31 },
          chain: { nvlink: 2.8, pci: 2.8, net: 30 },
          rank: 0.4,
        },
        '3.7, 3.7, 31 and 2.8, 2.8, 30 over NVLink, PCI and network, 0.4',
      ],
    },
  ),
  nvlsSmallWhereSlow: since('2.19.3', {
    about: 'Chunks of NVLS between nodes where it carries less than 150 GB/s.',
    before: 'As elsewhere.',
    now: 'At most 32 KiB.',
    source: 'src/enqueue.cc, computeColl',
    undo: 'NCCL_NVLS_CHUNKSIZE sets the chunk where NVLS carries more',
  }),
  nvlsGatherMostRanks: byVersion(
    { about: 'Most ranks a node for NVLS with AllGather and ReduceScatter.', source: 'src/enqueue.cc, updateCollCostTable' },
    { '2.18.1': [Infinity, 'Any number.'], '2.25.1': [32, '32'] },
  ),
  patShare: byVersion(
    { about: 'Share of the bandwidth of trees that PAT has.', source: 'src/graph/tuning.cc, ncclTopoTuneModel' },
    { '2.18.1': [0.85, '0.85'], '2.24.3': [0.75, '0.75'] },
  ),
  collnetFewRanks: byVersion(
    { about: 'CollNet on nodes of more than eight ranks.', source: 'src/enqueue.cc, updateCollCostTable' },
    {
      '2.18.1': ['any', 'Chains and CollNetDirect are considered.'],
      '2.23.4': ['chain', 'Chains are considered, CollNetDirect is not.'],
      '2.28.3': ['none', 'Neither is.'],
    },
  ),
  nvlsNeedsHeads: since('2.27.3', {
    about: 'NVLS for AllGather and ReduceScatter between nodes.',
    before: 'Never: it is for one node.',
    now: 'With CollNet, where each rank of a node has a head.',
    source: 'src/graph/tuning.cc, ncclTopoTuneModel',
  }),
  collnetGatherByHeads: since('2.27.3', {
    about: 'Bandwidth of CollNetDirect for AllGather and ReduceScatter.',
    before: 'A factor between 0.95 and 0.85 by ranks a node; none where ranks a node are on average more than heads.',
    now: '9/10 of the network; none where any node has more ranks than heads.',
    source: 'src/graph/tuning.cc, ncclTopoTuneModel',
  }),
  ll128Gpus: byVersion<readonly number[] | 'from 70'>(
    {
      about: 'GPUs on which LL128 is used, by compute capability × 10.',
      source: 'src/graph/tuning.cc, ncclTopoTuneModel',
      undo: 'NCCL_PROTO',
    },
    {
      '2.18.1': [[70, 80, 90], 'exactly 7.0, 8.0 and 9.0'],
      '2.25.1': [[70, 80, 90, 100, 120], 'exactly 7.0, 8.0, 9.0, 10.0 and 12.0'],
      '2.27.3': ['from 70', 'all from 7.0 on'],
    },
  ),
  ll128OverPxn: byVersion(
    {
      about: 'LL128 from Hopper on where GPUs reach NICs by way of other GPUs or over C2C.',
      source: 'src/graph/tuning.cc, ncclTopoTuneModel',
    },
    {
      '2.18.1': ['pxn', 'By way of other GPUs.'],
      '2.27.3': ['pxn, c2c if asked', 'By way of other GPUs; over C2C unless NCCL_LL128_C2C=0.'],
      '2.27.5': ['if asked', 'Both, unless NCCL_LL128_C2C=0.'],
    },
  ),
  llCapHopper: byVersion(
    {
      about: 'The most that rings and trees carry with LL on one node of Hopper GPUs, GB/s.',
      source: 'src/graph/tuning.cc, llMaxBws',
    },
    { '2.18.1': [87.7, '87.7, as on Ampere'], '2.21.5': [141, '141'] },
  ),
  ringLlShare: byVersion(
    {
      about:
        'Share of the bandwidth that a ring keeps with LL: for AllReduce, Reduce and between nodes, and for the others on one node.',
      source: 'src/graph/tuning.cc, ncclTopoTuneModel',
    },
    { '2.18.1': [{ usual: 1 / 4, copies: 1 / 3 }, 'a quarter, a third'], '2.21.5': [{ usual: 1 / 2, copies: 1 / 2 }, 'half'] },
  ),
  nvlsUs: byVersion(
    { about: 'Latency of NVLS and NVLSTree on a node, µs.', source: 'src/graph/tuning.cc, hwLat' },
    { '2.18.1': [23, '23'], '2.21.5': [25, '25'] },
  ),
  treeChunks: byVersion(
    {
      about: 'Trees whose chunks get smaller where data are few.',
      source: 'src/enqueue.cc, computeColl and computeCollChunkInfo',
    },
    {
      '2.18.1': ['simple too', 'Those with Simple and with LL128, which counts its flags as data.'],
      '2.20.3': ['ll128', 'Those with LL128.'],
    },
  ),
  llCapBlackwell: byVersion(
    {
      about: 'The most that rings and trees carry with LL on one node of Blackwell GPUs, GB/s.',
      source: 'src/graph/tuning.cc, llMaxBws',
    },
    { '2.18.1': [87.7, '87.7, as on Hopper'], '2.21.5': [141, '141, as on Hopper'], '2.25.1': [282, '282'] },
  ),
  treeUs: byVersion(
    {
      about: 'Latency of trees with Simple: at least, and for a step over NVLink, PCI and network, µs.',
      source: 'src/graph/tuning.cc, baseLat and hwLat',
    },
    {
      '2.18.1': [{ base: 0, nvlink: 28, pci: 28, net: 28 }, '0, and 28 for each step'],
      '2.18.3': [{ base: 0, nvlink: 4, pci: 6, net: 14 }, '0, and 4, 6, 14'],
      '2.19.1': [{ base: 0, nvlink: 28, pci: 28, net: 28 }, '0, and 28 for each step'],
      '2.23.4': [{ base: 8.4, nvlink: 4, pci: 4, net: 14 }, '8.4, and 4, 4, 14'],
    },
  ),
  ringLl128ShareAlone: byVersion(
    {
      about: 'Share of the bandwidth that a ring with LL128 keeps between nodes of one rank.',
      source: 'src/graph/tuning.cc, ncclTopoTuneModel',
    },
    { '2.18.1': [0.7, '0.7'], '2.23.4': [0.92, '0.92, as with more ranks'] },
  ),
  ringNodeSteps: byVersion(
    { about: 'Steps of a ring that go from node to node, in its latency.', source: 'src/graph/tuning.cc, ncclTopoTuneModel' },
    {
      '2.18.1': ['nodes', 'As many as nodes (twice for AllReduce); one less for AllGather and ReduceScatter.'],
      '2.23.4': ['nodes - 1', 'One less than nodes (twice for AllReduce).'],
    },
  ),
  aloneAsTree: byVersion(
    {
      about: 'Latency of a step between nodes of one rank.',
      source: 'src/graph/tuning.cc, ncclTopoTuneModel; src/tuning/ring.cc',
    },
    {
      '2.18.1': ['none', 'That of the algorithm.'],
      '2.23.4': ['all', 'That of trees, for nothing hides it.'],
      '2.31.2': ['rings', 'That of trees for rings, that of the algorithm for others.'],
    },
  ),
  nvlsGatherAsReduce: byVersion(
    {
      about: 'Bandwidth of NVLS for AllGather and ReduceScatter, beside what it is for AllReduce.',
      source: 'src/graph/tuning.cc, ncclTopoTuneModel',
    },
    { '2.18.1': [true, 'Times 5/6, too.'], '2.23.4': [false, 'Without the factor.'] },
  ),
  treePatternOfAll: since('2.26.2', {
    about: 'Whose tree pattern slows trees in the model.',
    before: "Each rank's own.",
    now: 'The plainest of all nodes.',
    source: 'src/graph/tuning.cc, ncclTopoTuneModel',
  }),
  pat: since('2.23.4', {
    about: 'Algorithm PAT for AllGather and ReduceScatter.',
    before: 'There is none.',
    now: 'It is there, between nodes of one rank unless NCCL_PAT_ENABLE says more.',
    source: 'src/graph/tuning.cc, ncclPatEnable',
    undo: 'NCCL_PAT_ENABLE=0',
  }),
  ringsForNothingElse: byVersion(
    { about: 'Collectives for which NCCL_ALGO and NCCL_PROTO leave nothing.', source: 'src/graph/tuning.cc, ncclTopoTuneModel' },
    {
      '2.18.1': ['rings but for AllReduce', 'NCCL_ALGO never takes rings from others than AllReduce; else the call fails.'],
      '2.19.1': ['rings', 'Rings are used nevertheless, with any protocol.'],
      '2.22.3': ['rings as asked', 'Rings are used nevertheless, with the protocols that are left.'],
      '2.24.3': ['nothing', 'The call fails.'],
    },
  ),
  listsByCollective: since('2.24.3', {
    about: 'Lists in NCCL_ALGO and NCCL_PROTO.',
    before: 'One list for all collectives; a name that there is not is ignored.',
    now: 'Lists for single collectives, too (allreduce:tree); a name that there is not is an error.',
    source: 'src/graph/tuning.cc, parseList',
  }),
  collnetOnlyIgnored: byVersion(
    {
      about: 'NCCL_ALGO that leaves only CollNet where the network does not reduce.',
      source: 'src/graph/tuning.cc, ncclTopoTuneModel',
    },
    { '2.18.1': [true, 'Rings and trees are used nevertheless.'], '2.24.3': [false, 'Nothing is left.'] },
  ),
  treeFactorFrom64: since('2.22.3', {
    about: 'Correction of trees for calls of less than 64 B.',
    before: 'As for 64 B: Simple has 9/10 of its bandwidth.',
    now: 'None.',
    source: 'src/graph/tuning.cc, ncclTopoGetAlgoTime',
  }),
  copiesServeCalls: since('2.22.3', {
    about: 'Channels that were copied because NVLink SHARP has more.',
    before: 'Rings and trees do not use them.',
    now: 'Rings and trees use them, too.',
    source: 'src/enqueue.cc, topoGetAlgoInfo',
  }),
  treesUseAllThreads: since('2.22.3', {
    about: 'Threads of a tree.',
    before: 'By size, as those of rings.',
    now: 'Always all.',
    source: 'src/enqueue.cc, topoGetAlgoInfo',
  }),
  chunksOfWholeLines: since('2.22.3', {
    about: 'Sizes of chunks.',
    before: 'They may end anywhere.',
    now: 'They are multiples of the data that the protocol moves at a time.',
    source: 'src/enqueue.cc, calcCollChunking',
  }),
  nvlsTreeNetUs: byVersion(
    { about: 'Latency of a step of NVLSTree between nodes, µs.', source: 'src/graph/tuning.cc, hwLatencies' },
    { '2.18.1': [19, '19'], '2.19.1': [14, '14'], '2.28.9': [20.9, '20.9'] },
  ),
  patNetUs: byVersion(
    { about: 'Latency of a step of PAT between nodes of several ranks, µs.', source: 'src/graph/tuning.cc, hwLatencies' },
    { '2.18.1': [0, 'none'], '2.28.3': [14, '14'] },
  ),
  nvlsTreeCorrection: byVersion(
    {
      about: 'NVLSTree at middle sizes on Blackwell.',
      source: 'src/graph/tuning.cc, ncclTopoGetAlgoTime; src/tuning/nvls.cc, ncclTuningNvlsModelSim',
    },
    {
      '2.18.1': ['none', 'As the model says.'],
      '2.29.2': ['x86', 'Slower than the model with x86 CPUs, by the same factors as trees.'],
      '2.31.2': [
        'arm below 512 MiB',
        'Slower with x86 CPUs, and with ARM CPUs, four ranks a node and NICs of 96 GB/s: on two nodes below 512 MiB.',
      ],
      '2.32.3': ['arm below 64 MiB', 'The same, with ARM CPUs on two nodes below 64 MiB.'],
    },
  ),
  nvlsChannelsOfNodes: since('2.28.3', {
    about: 'Channels of NVLS between nodes.',
    before: 'Those of NVLink SHARP.',
    now: 'No more than rings have.',
    source: 'src/enqueue.cc, ncclGetAlgoInfo',
  }),
  ll128BetweenGenerations: since('2.30.3', {
    about: 'LL128 between GPUs of different compute capability.',
    before: 'Never.',
    now: 'Where all are Hopper or newer.',
    source: 'src/graph/tuning.cc, ncclTopoTuneModel',
    undo: 'NCCL_PROTO=^LL128',
  }),
  collnetChainNeedsHeads: since('2.30.7', {
    about: 'CollNet chains whose heads do not reach the network directly.',
    before: 'They are used nevertheless.',
    now: 'They are not used.',
    source: 'src/graph/tuning.cc, ncclTopoTuneModel',
  }),
} as const;
