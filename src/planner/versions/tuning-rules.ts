import { byVersion, since } from './rule.js';

/** Decisions of the tuning model that changed between versions. */
export const tuningRules = {
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
    { '2.18.1': [true, 'On one node of up to 32 ranks.'], '2.27.3': [false, 'On nodes of up to 32 ranks.'] },
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
  nvlsTreeNetUs: byVersion(
    { about: 'Latency of a step of NVLSTree between nodes, µs.', source: 'src/graph/tuning.cc, hwLatencies' },
    { '2.18.1': [14, '14'], '2.28.9': [20.9, '20.9'] },
  ),
  patNetUs: byVersion(
    { about: 'Latency of a step of PAT between nodes of several ranks, µs.', source: 'src/graph/tuning.cc, hwLatencies' },
    { '2.18.1': [0, 'none'], '2.28.3': [14, '14'] },
  ),
  nvlsTreeCorrection: since('2.29.2', {
    about: 'NVLSTree at middle sizes on Blackwell with x86 CPUs.',
    before: 'As the model says.',
    now: 'Slower than the model, by the same factors as trees.',
    source: 'src/graph/tuning.cc, ncclTopoGetAlgoTime',
  }),
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
    before: 'They are used all the same.',
    now: 'They are not used.',
    source: 'src/graph/tuning.cc, ncclTopoTuneModel',
  }),
} as const;
