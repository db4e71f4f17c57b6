import { byVersion, since } from './rule.js';

/** Decisions about the graph of a machine and its paths that changed between versions. */
export const topologyRules = {
  hardwareNodes: since('2.30.7', {
    about: 'What holds the PCI link and the NVLinks of a GPU.',
    before: 'The GPU node holds them itself.',
    now: 'A DEV node holds them, and GPU nodes hang behind it, so that several ranks can share a GPU; paths between GPUs have two more hops.',
    source: 'src/graph/topo.cc, ncclTopoAddGpuSub',
  }),
  pathsByType: since('2.30.7', {
    about: 'Which of two paths to a node is kept while paths are searched.',
    before: 'The one with more bandwidth, if it is not longer.',
    now: 'The one of the nearer type, then the one with more bandwidth, then the shorter one.',
    source: 'src/graph/paths.cc, ncclTopoSetPaths',
  }),
  cpuByBandwidth: since('2.30.7', {
    about: 'Which CPU counts as the CPU of a GPU.',
    before: 'The one with the fewest hops between.',
    now: 'The one with the most bandwidth, then the nearest type of path, then the fewest hops.',
    source: 'src/graph/paths.cc, ncclGetLocalCpu',
  }),
  firstNicModuloGpus: byVersion(
    {
      about: 'Which of its nearest NICs a GPU starts with.',
      source: 'src/graph/topo.cc, ncclTopoGetLocalNetType',
      undo: 'NCCL_TOPO_SCATTER_START_NET=1',
    },
    {
      '2.18.1': ['never', 'The one with the number of the GPU.'],
      '2.30.7': ['always', 'The one with the number of the GPU modulo the number of GPUs that share these NICs.'],
      '2.31.2': [
        'connectx-8',
        'The one with the number of the GPU, modulo the GPUs that share these NICs only for Blackwell and newer next to a ConnectX-8, or with NCCL_TOPO_SCATTER_START_NET=1.',
      ],
    },
  ),
  guidWithoutPrefix: since('2.28.7', {
    about: 'The guid of a network device that does not begin with 0x.',
    before: 'It counts as 0, so that all such devices look like ports of one card.',
    now: 'It is read as a hexadecimal number.',
    source: 'src/graph/topo.cc, ncclTopoAddNet',
  }),
  railsAndPlanes: since('2.30.7', {
    about: 'Rail and plane of a network device.',
    before: 'There are none: a rail is a port of a card.',
    now: 'Attributes rail and plane of <net> are read: rings keep to a rail, and nothing joins two planes.',
    source: 'src/graph/search.cc, ncclTopoSearchCheckNet',
  }),
  proxyNeedsGdr: since('2.30.7', {
    about: 'Whether a GPU may send over the NIC of another GPU (PXN).',
    before: 'It depends on types and bandwidths of the paths.',
    now: 'The NIC has to be able to read the memory of that other GPU, too.',
    source: 'src/graph/paths.cc, ncclTopoComputePaths',
    undo: 'NCCL_PXN_DISABLE=1 leaves PXN out in all versions',
  }),
  nearestNicsOverC2c: since('2.29.2', {
    about: 'Which NICs a GPU reaches over C2C and its CPU (path type P2C).',
    before: 'All NICs below that CPU.',
    now: 'Only the NICs nearest to the GPU; others are better reached by way of another GPU.',
    source: 'src/graph/paths.cc, ncclTopoComputePaths',
  }),
  gdrLevelCountsC2c: since('2.29.2', {
    about: 'How NCCL_NET_GDR_LEVEL counts NICs that are reached over C2C.',
    before: 'As C2C, nearer than any PCI path, unless NCCL_NET_GDR_C2C=0.',
    now: 'As P2C, which is farther than PXB.',
    source: 'src/graph/paths.cc, ncclTopoCheckGdr',
  }),
  pxnC2c: byVersion(
    {
      about: 'NCCL_PXN_C2C where it is not set: whether PXN goes by way of GPUs that reach the NIC over C2C.',
      source: 'src/graph/paths.cc',
      undo: 'NCCL_PXN_C2C=0',
    },
    { '2.18.1': [0, 'Off, or not there yet.'], '2.28.3': [1, 'On.'] },
  ),
  pxnBeyond: byVersion(
    {
      about: 'From which type of its own path on a GPU takes PXN though it brings no bandwidth.',
      source: 'src/graph/paths.cc, ncclTopoComputePaths',
    },
    {
      '2.18.1': ['pxb', 'From PHB or beyond PXB on.'],
      '2.27.5': ['proxy', 'Beyond what the other GPU may have: PXB, or P2C with NCCL_PXN_C2C=1.'],
      '2.28.3': ['pxn', 'Beyond PXN.'],
    },
  ),
  pathOrder: byVersion(
    { about: 'Where path type P2C (C2C to the CPU, then PCI) stands among the others.', source: 'src/graph/topo.h' },
    {
      '2.18.1': ['no p2c', 'There is no such type: such a path is PHB.'],
      '2.27.3': ['pxn before p2c', 'After PXN: PXN is nearer.'],
      '2.27.5': ['p2c before pxn', 'Before PXN: P2C is nearer.'],
    },
  ),
  c2cFromParts: since('2.27.5', {
    about: 'Which paths count as C2C to the CPU and PCI from there (P2C).',
    before: 'Paths between GPU and NIC through the host bridge, where the GPU has C2C to its CPU.',
    now: 'All paths that are put together from C2C and a host bridge.',
    source: 'src/graph/paths.cc, mergePathType',
  }),
  netGdrC2c: byVersion(
    {
      about: 'NCCL_NET_GDR_C2C where it is not set: GPU Direct RDMA over C2C.',
      source: 'src/graph/paths.cc',
      undo: 'NCCL_NET_GDR_C2C=0',
    },
    { '2.18.1': [0, 'Off, or not there yet.'], '2.27.3': [1, 'On.'] },
  ),
  newestGpu: byVersion(
    {
      about: 'The newest GPUs that kernels are made for, by compute capability × 10; newer ones are treated as these.',
      source: 'makefiles/common.mk',
    },
    { '2.18.1': [90, '9.0 (Hopper)'], '2.25.1': [120, '10.0 and 12.0 (Blackwell)'] },
  ),
  blackwellNvLinkGBps: byVersion(
    { about: 'Bandwidth of one NVLink of a Blackwell GPU, GB/s.', source: 'src/graph/topo.h, SM100_NVLINK_BW' },
    {
      '2.18.1': [20, '20, as on Hopper'],
      '2.20.3': [20.6, '20.6, as on Hopper'],
      '2.25.1': [40, '40'],
      '2.27.5': [40.1, '40.1'],
    },
  ),
  hopperNvLinkGBps: byVersion(
    { about: 'Bandwidth of one NVLink of a Hopper GPU, GB/s.', source: 'src/graph/topo.h, SM90_NVLINK_BW' },
    { '2.18.1': [20, '20'], '2.20.3': [20.6, '20.6'] },
  ),
  rubinNvLinkGBps: byVersion<number | 'as blackwell'>(
    { about: 'Bandwidth of one NVLink of a Rubin GPU, GB/s.', source: 'src/graph/topo.h, RUBIN_NVLINK_BW' },
    { '2.18.1': ['as blackwell', 'As that of a Blackwell GPU.'], '2.32.3': [31.2, '31.2'] },
  ),
  broadcomSwitches: byVersion(
    {
      about: 'Which Broadcom switches, that show themselves as two levels, are flattened into one.',
      source: 'src/graph/topo.cc, ncclTopoFlattenBcmSwitches',
    },
    {
      '2.18.1': ['gen4', 'PEX Gen4, where both levels have exactly the same device number.'],
      '2.20.3': ['gen4 and gen5', 'PEX Gen4 and Gen5.'],
    },
  ),
  p2pThroughCpu: byVersion(
    {
      about: 'Between which GPUs peer-to-peer may go through CPUs.',
      source: 'src/graph/paths.cc, ncclTopoCheckP2p',
      undo: 'NCCL_P2P_LEVEL',
    },
    {
      '2.18.1': ['by vendor', 'Between all, but on ARM, Intel and Zhaoxin CPUs.'],
      '2.23.4': ['amd pairs', 'Between two GPUs on AMD CPUs; never where there are more.'],
    },
  ),
  amdCpuModels: since('2.31.2', {
    about: 'Models of AMD CPUs.',
    before: 'They are not told apart.',
    now: 'They are told apart by attribute familyid, without which NCCL fails.',
    source: 'src/graph/topo.cc, ncclTopoAddCpu',
  }),
  amdInterconnectGBps: byVersion(
    { about: 'Bandwidth between sockets with AMD CPUs, GB/s.', source: 'src/graph/topo.cc, ncclTopoGetInterCpuBw' },
    {
      '2.18.1': [{ zen2: 5000, zen4: 5000, zen5: 5000 }, '5000, as within a GPU'],
      '2.19.1': [{ zen2: 16, zen4: 16, zen5: 16 }, '16'],
      '2.31.2': [{ zen2: 16, zen4: 24, zen5: 32 }, '16 for Zen 1 and 2, 24 for Zen 3 and 4, 32 for Zen 5'],
    },
  ),
  linksBackByType: since('2.19.1', {
    about: 'Which link leads back where two devices are joined by links of two types.',
    before: 'The first to that device.',
    now: 'The first of the same type.',
    source: 'src/graph/paths.cc, ncclTopoSetPaths',
  }),
  gpuOfNicIsNear: since('2.19.1', {
    about: 'Which GPU counts as the one that uses a NIC.',
    before: 'The first of all GPUs that would use it.',
    now: 'The first of the GPUs nearest to it.',
    source: 'src/graph/topo.cc, ncclTopoGetLocalGpu',
  }),
  gdrReadsFromAmpere: since('2.19.1', {
    about: 'Whether NICs read the memory of GPUs that have no NVLink (GPU Direct RDMA for sends).',
    before: 'No.',
    now: 'From Ampere on.',
    source: 'src/graph/paths.cc, ncclTopoCheckGdr',
    undo: 'NCCL_NET_GDR_READ=0',
  }),
  c2cLinks: byVersion(
    { about: 'Links between GPU and CPU over C2C (Grace).', source: 'src/graph/topo.cc, ncclTopoAddC2c' },
    {
      '2.18.1': ['none', 'They are not seen: a GPU reaches its CPU over PCI.'],
      '2.19.1': ['as nvlink', 'They count as NVLinks.'],
      '2.26.2': ['own type', 'They have a type of their own, C2C.'],
    },
  ),
  cpuSearchGoesUp: since('2.26.2', {
    about: 'How the CPU above a GPU is found, for C2C and for NVLinks to the CPU.',
    before: 'By the first PCI link of each device; behind a PCI bridge the search may never end, and NCCL crashes.',
    now: 'Upwards only.',
    source: 'src/graph/topo.cc, findLocalCpu',
  }),
  gpuLinksToItself: byVersion(
    { about: 'Whether a GPU has a link to itself.', source: 'src/graph/topo.cc, ncclTopoCreateNode' },
    { '2.18.1': [true, 'Yes; no path uses it.'], '2.22.3': [false, 'No.'] },
  ),
  newerIntelCpus: byVersion(
    {
      about: 'Bandwidth between sockets with Intel CPUs newer than Skylake.',
      source: 'src/graph/topo.cc, ncclTopoGetInterCpuBw and ncclTopoAddCpu',
    },
    {
      '2.18.1': ['as skylake', '10 GB/s, as Skylake.'],
      '2.26.2': ['by number', '22 GB/s from Sapphire Rapids on, 40 from Emerald Rapids on, by model number.'],
      '2.31.2': [
        'granite rapids',
        '40 GB/s for Granite Rapids and Sierra Forest, too, whose model numbers are lower than that of Emerald Rapids.',
      ],
    },
  ),
  nicOfFunction: since('2.24.3', {
    about: 'Functions of one PCI device that are network cards.',
    before: 'They are one card: ports hang below the first.',
    now: 'Each is a card of its own.',
    source: 'src/graph/topo.cc, ncclTopoAddPci',
  }),
  pciLinks: since('2.22.3', {
    about: 'Extra links between PCI switches (<pcilink>).',
    before: 'NCCL takes the element for a device without attributes, and fails.',
    now: 'They are links.',
    source: 'src/graph/topo.cc, ncclTopoAddPciLinks',
  }),
  detoursNearOnly: since('2.21.5', {
    about: 'Paths between a GPU and a NIC that cannot reach its memory, which are led through the CPU next to the GPU.',
    before: 'All.',
    now: 'Those that do not go through a CPU anyway.',
    source: 'src/graph/paths.cc, ncclTopoComputePaths',
  }),
  nvLinkDomains: since('2.21.5', {
    about: 'Topologies of several hosts that NVLink joins (racks).',
    before: 'NCCL knows hosts only.',
    now: 'They are one system.',
    source: 'src/graph/topo.cc, ncclTopoGetSystem',
  }),
  netPathName: byVersion(
    { about: 'How NCCL names paths that only the network leads along.', source: 'src/graph/topo.cc, topoPathTypeStr' },
    { '2.18.1': ['DIS', 'DIS'], '2.21.5': ['NET', 'NET'] },
  ),
  flattenFromFirst: since('2.27.3', {
    about: 'Broadcom switches that are flattened into one level.',
    before: 'After each switch NCCL goes on with the second switch.',
    now: 'It goes on with the first.',
    source: 'src/graph/topo.cc, ncclTopoFlattenBcmSwitches',
  }),
  netsOfOneHost: since('2.28.7', {
    about: 'Network devices where all ranks are on one host.',
    before: 'They are taken out of the graph.',
    now: 'They stay in it.',
    source: 'src/graph/paths.cc, ncclTopoTrimSystem',
  }),
} as const;
