import type { NcclAlgorithm } from '../../tuning/names.js';
import type { Draft } from '../answer.js';
import type { Controlled, PartialWay, Question, Term } from '../grammar/question.js';
import type { Situation } from '../situation.js';
import { explainVariable } from './variable.js';

/** A variable of NCCL, with the values that switch something on and off; without, values worth a try are tried. */
interface Setting {
  readonly name: string;
  readonly on?: string;
  readonly off?: string;
}

/** Variables for a purpose, and what there is to say beside them. */
interface Control {
  readonly settings: readonly Setting[];
  readonly notes?: readonly string[];
}

const setting = (name: string, values: Omit<Setting, 'name'> = {}): Setting => ({ name, ...values });

const NICS: Control = {
  settings: [setting('NCCL_IB_HCA'), setting('NCCL_CROSS_NIC')],
  notes: [
    'NCCL_IB_HCA=mlx5_0,mlx5_2 uses the devices whose names begin so, NCCL_IB_HCA==mlx5_0:1 exactly that device and port, NCCL_IB_HCA=^mlx5_3 all but that one. NCCL_SOCKET_IFNAME does the same for interfaces of sockets.',
    'Which of these NICs a ring takes, NCCL decides by nearness to the GPUs and by number; no variable names a NIC for a ring. NCCL_GRAPH_FILE gives whole rings with their NICs (tccl graph writes such a file), NCCL_TOPO_FILE another machine.',
    'To plan with fewer NICs: ask what if only 4 NICs are used, or write overrides.nics into a cluster file.',
  ],
};

const CHANNELS: Control = {
  settings: [setting('NCCL_MAX_CTAS'), setting('NCCL_MIN_CTAS'), setting('NCCL_MAX_P2P_NCHANNELS')],
  notes: [
    'A channel is a thread block (CTA), and takes one multiprocessor (SM). NCCL_MIN_CTAS and NCCL_MAX_CTAS (2.17 on, also minCTAs and maxCTAs of ncclConfig_t) take the place of NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS; NCCL_MAX_P2P_NCHANNELS is for send, receive and all-to-all; NCCL_NVLS_NCHANNELS for NVLink SHARP.',
  ],
};

const byName: Readonly<Record<Controlled, Control>> = {
  interface: {
    settings: [setting('NCCL_SOCKET_IFNAME'), setting('NCCL_OOB_NET_IFNAME'), setting('NCCL_IB_HCA')],
    notes: [
      'NCCL_SOCKET_IFNAME=eth0,ens takes interfaces whose names begin so, =eth0 exactly that one, ^docker,lo all but those. It is for the bootstrap always, for data only if they go by sockets; RDMA devices are selected by NCCL_IB_HCA.',
    ],
  },
  queuePairs: { settings: [setting('NCCL_IB_QPS_PER_CONNECTION'), setting('NCCL_IB_SPLIT_DATA_ON_QPS')] },
  trafficClass: { settings: [setting('NCCL_IB_TC'), setting('NCCL_IB_FIFO_TC'), setting('NCCL_IB_SL')] },
  gid: { settings: [setting('NCCL_IB_GID_INDEX'), setting('NCCL_IB_ROCE_VERSION_NUM'), setting('NCCL_IB_ADDR_FAMILY')] },
  timeout: {
    settings: [setting('NCCL_IB_TIMEOUT'), setting('NCCL_IB_RETRY_CNT')],
    notes: [
      'NCCL has no time limit for a collective itself; the watchdog of the framework has one (in PyTorch, timeout of init_process_group).',
    ],
  },
  relaxedOrdering: { settings: [setting('NCCL_IB_PCI_RELAXED_ORDERING')] },
  adaptiveRouting: { settings: [setting('NCCL_IB_ADAPTIVE_ROUTING'), setting('NCCL_IB_AR_THRESHOLD')] },
  merge: { settings: [setting('NCCL_IB_MERGE_NICS'), setting('NCCL_NET_MERGE_LEVEL')] },
  topologyFile: {
    settings: [setting('NCCL_TOPO_FILE'), setting('NCCL_TOPO_DUMP_FILE')],
    notes: ['NCCL_TOPO_DUMP_FILE=topo.xml writes what NCCL found, which NCCL_TOPO_FILE and tccl read.'],
  },
  ringOrder: {
    settings: [setting('NCCL_GRAPH_FILE'), setting('NCCL_GRAPH_DUMP_FILE'), setting('NCCL_CROSS_NIC')],
    notes: [
      'The search decides the order of a ring within a host by the topology. Between hosts rings follow the order of the ranks, so number ranks host by host. NCCL_GRAPH_FILE gives other rings: dump, edit, and give the file.',
    ],
  },
  sockets: {
    settings: [setting('NCCL_IB_DISABLE', { on: '1' }), setting('NCCL_NET', { on: 'Socket' }), setting('NCCL_SOCKET_IFNAME')],
    notes: [
      'NCCL_IB_DISABLE=1, or NCCL_NET=Socket, makes NCCL use TCP sockets; NCCL_SOCKET_IFNAME says over which interfaces. What it costs here: ask what if it runs over TCP sockets.',
      'NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD open more sockets for each connection.',
    ],
  },
  infiniband: {
    settings: [setting('NCCL_IB_DISABLE', { on: '0', off: '1' }), setting('NCCL_IB_HCA')],
    notes: [
      'NCCL takes RDMA by itself where it finds devices (ibv_devices) and libibverbs, which containers must have. NCCL_IB_DISABLE=1 turns it off; NCCL_NET=IB fails in place of falling back to sockets.',
    ],
  },
  threads: { settings: [setting('NCCL_NTHREADS')] },
  buffer: {
    settings: [setting('NCCL_BUFFSIZE')],
    notes: [
      'Buffers of LL and LL128 have NCCL_LL_BUFFSIZE and NCCL_LL128_BUFFSIZE. More channels, or larger buffers, take more memory of the GPU.',
    ],
  },
  peerChannels: {
    settings: [setting('NCCL_NCHANNELS_PER_NET_PEER')],
    notes: [
      'NCCL_NCHANNELS_PER_NET_PEER (nChannelsPerNetPeer of ncclConfig_t) sets it for a peer on another host. Within a host nothing does: a peer gets 2 channels over PCIe or SHM, and over NVLink 2 for each link between the two, within NCCL_MAX_P2P_NCHANNELS.',
      'A grid of send and receive has more blocks if a group has messages to several peers.',
    ],
  },
  memory: {
    settings: [setting('NCCL_BUFFSIZE'), setting('NCCL_MAX_CTAS')],
    notes: [
      'Memory goes into buffers: of each connection of each channel, for each communicator. Fewer channels, smaller buffers and fewer communicators take less.',
    ],
  },
  cpuAffinity: {
    settings: [setting('NCCL_IGNORE_CPU_AFFINITY')],
    notes: ['NCCL binds its helper threads to the CPUs that are near to the GPU, within the affinity of the process.'],
  },
  plugin: { settings: [setting('NCCL_NET_PLUGIN'), setting('NCCL_TUNER_PLUGIN'), setting('NCCL_NET')] },
  registration: { settings: [setting('NCCL_LOCAL_REGISTER'), setting('NCCL_GRAPH_REGISTER')] },
  rackNvlink: { settings: [setting('NCCL_MNNVL_ENABLE'), setting('NCCL_CUMEM_ENABLE')] },
  log: { settings: [setting('NCCL_DEBUG'), setting('NCCL_DEBUG_SUBSYS'), setting('NCCL_DEBUG_FILE')] },
  subset: NICS,
};

const byTerm: Readonly<Partial<Record<Term, Control>>> = {
  nics: NICS,
  channel: CHANNELS,
  p2p: {
    settings: [setting('NCCL_P2P_DISABLE', { on: '0', off: '1' }), setting('NCCL_P2P_LEVEL', { on: 'SYS' })],
    notes: [
      'NCCL_P2P_LEVEL says how far apart two GPUs may be: LOC never, NVL over NVLink, PIX below a switch, PXB several switches, PHB a CPU, SYS anywhere.',
    ],
  },
  shm: {
    settings: [setting('NCCL_SHM_DISABLE', { on: '0', off: '1' })],
    notes: ['Without shared memory and without P2P, ranks of a host exchange over the network.'],
  },
  gdr: {
    settings: [
      setting('NCCL_NET_GDR_LEVEL', { on: 'SYS', off: 'LOC' }),
      setting('NCCL_NET_GDR_READ'),
      setting('NCCL_DMABUF_ENABLE'),
    ],
    notes: [
      'It also takes a driver part: nvidia-peermem, or DMA-BUF of the kernel. NCCL_NET_GDR_LEVEL=LOC turns it off, SYS allows it over any distance.',
    ],
  },
  pxn: { settings: [setting('NCCL_PXN_DISABLE', { on: '0', off: '1' }), setting('NCCL_P2P_PXN_LEVEL')] },
  rail: { settings: [setting('NCCL_CROSS_NIC')] },
  sockets: {
    settings: [setting('NCCL_IB_DISABLE', { on: '1' }), setting('NCCL_NET', { on: 'Socket' }), setting('NCCL_SOCKET_IFNAME')],
  },
  nvlink: {
    settings: [setting('NCCL_P2P_DISABLE', { off: '1' }), setting('NCCL_P2P_LEVEL')],
    notes: [
      'No variable turns NVLink off alone: P2P over PCIe goes with it. What the machine does without NVLink: ask what if the GPUs had no NVLink.',
    ],
  },
  chunk: {
    settings: [setting('NCCL_P2P_NET_CHUNKSIZE'), setting('NCCL_P2P_NVL_CHUNKSIZE'), setting('NCCL_BUFFSIZE')],
    notes: [
      'Chunks of send and receive have variables; those of collectives follow from the buffer (an eighth of it is a step), the algorithm and the size.',
    ],
  },
};

/** Names the variables for a purpose, with their meaning, their values here and what others change here. */
export function answerControl(situation: Situation, question: Question): Draft {
  const controls = controlsOf(question);
  const settings = unique(controls.flatMap((control) => control.settings));
  const drafts = settings.slice(0, MOST_VARIABLES).map(({ name, on, off }) => {
    const values = [...(question.isOff ? [off, on] : [on, off])].filter((value) => value !== undefined);
    return { name, values, ...explainVariable(situation, question, name, values.length === 0 ? undefined : values) };
  });
  return {
    title: drafts.map(({ name, values: [value] }) => (value === undefined ? name : `${name}=${value}`)).join(', '),
    sentences: [
      ...drafts.flatMap(({ name, sentences: [first = '', ...others] }) => [`${name}: ${first}`, ...others]),
      ...new Set(controls.flatMap(({ notes = [] }) => notes)),
    ],
    evidence: { variables: drafts.map(({ evidence }) => evidence) },
  };
}

/** Variables that are explained; plans are made for values of each. */
const MOST_VARIABLES = 4;

/** The most specific first: ways, then features, then named parts. */
function controlsOf({ ways, controls, terms }: Question): Control[] {
  // `the ring order`: rings are no algorithm then. `RoCE` beside a part only says where that part is.
  const named = controls.includes('ringOrder') ? [] : ways.flatMap(ofWay);
  const parts = controls.filter((name) => name !== 'infiniband');
  const features = terms
    .filter((term) => (term !== 'nics' && term !== 'sockets') || parts.length === 0)
    .filter((term) => (term !== 'channel' && term !== 'p2p') || !parts.includes('peerChannels'))
    .flatMap((term) => byTerm[term] ?? []);
  const all = [...named, ...features, ...parts.map((name) => byName[name])];
  return all.length > 0 ? all : controls.includes('infiniband') ? [byName.infiniband] : [NICS];
}

function ofWay({ algorithm, protocol }: PartialWay): Control[] {
  return [
    ...(algorithm === undefined ? [] : [ofAlgorithm(algorithm)]),
    ...(protocol === undefined
      ? []
      : [{ settings: [setting('NCCL_PROTO', { on: protocol, off: `^${protocol}` })], notes: [FORCED] }]),
  ];
}

function ofAlgorithm(algorithm: NcclAlgorithm): Control {
  switch (algorithm) {
    case 'NVLS':
    case 'NVLSTree':
      return {
        settings: [
          setting('NCCL_NVLS_ENABLE', { on: '1', off: '0' }),
          setting('NCCL_ALGO', { on: algorithm, off: '^nvls,nvlstree' }),
        ],
      };
    case 'CollNetDirect':
    case 'CollNetChain':
      return {
        settings: [setting('NCCL_COLLNET_ENABLE', { on: '1', off: '0' })],
        notes: ['The network needs SHARP: its plugin (NCCL_NET_PLUGIN, from HPC-X) and a running aggregation manager.'],
      };
    case 'PAT':
      return { settings: [setting('NCCL_PAT_ENABLE', { on: '1', off: '0' })] };
    default:
      return { settings: [setting('NCCL_ALGO', { on: algorithm, off: `^${algorithm.toLowerCase()}` })], notes: [FORCED] };
  }
}

const FORCED =
  'A name forces it for all sizes, ^ excludes it, and a list (NCCL_ALGO=Ring,Tree) leaves NCCL the choice among those. Newer releases (2.24 on) take one list for each call: NCCL_ALGO="ring,tree;allreduce:tree".';

function unique(settings: readonly Setting[]): Setting[] {
  return settings.filter(({ name }, index) => settings.findIndex((other) => other.name === name) === index);
}
