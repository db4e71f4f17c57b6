import { counted } from '../../../counted.js';
import { formatWay } from '../../plan/overview/format.js';
import type { Draft } from '../answer.js';
import type { PartialWay, Term } from '../grammar/question.js';
import type { Situation } from '../situation.js';
import { factorHere } from './here.js';
import { usesIn } from './use.js';

/** Meanings of terms, the last sentence with their value here. */
const meanings: Readonly<Partial<Record<Term, (situation: Situation) => readonly string[]>>> = {
  busbw: (situation) => [
    'busbw, the bus bandwidth, is algbw times a factor that depends on the call only: what each link of a ring carries, so that calls and numbers of ranks compare.',
    'For AllReduce the factor is 2 (n - 1) / n for n ranks, for AllGather, ReduceScatter and AllToAll (n - 1) / n, for Broadcast, Reduce and SendRecv 1.',
    factorHere(situation),
  ],
  algbw: (situation) => [
    'algbw, the algorithm bandwidth, is the size of the call divided by its time.',
    'For AllGather and ReduceScatter the size is the data of all ranks together.',
    factorHere(situation),
  ],
  channel: ({ plan }) => [
    'A channel is a thread block of the kernel with a ring and a tree of its own through all ranks; channels work in parallel, each on a part of the data.',
    `Here collectives have ${counted(plan.nChannels, 'channel')}${plan.nvls === undefined ? '' : `, NVLink SHARP ${plan.nvls.nChannels}`}, and send and receive ${plan.p2p.nChannels}.`,
  ],
  ll: () => [
    'LL sends a flag of 4 bytes with each 4 bytes of data, so that no other synchronisation is needed: the least latency, but half of the bandwidth.',
  ],
  ll128: () => [
    'LL128 sends 128 bytes at a time, of which 8 bytes are a flag: nearly the latency of LL, and 120 of 128 bytes of the bandwidth.',
    'The 128 bytes must arrive in one piece, which not every path guarantees: NCCL uses it over NVLink and near NICs only.',
  ],
  simple: () => ['Simple sends large chunks and a counter behind each: most bandwidth and most latency.'],
  ring: () => [
    'Ring: each rank sends to the next one, around all ranks. It uses all links evenly, and its latency grows with the number of ranks.',
  ],
  tree: () => [
    'Tree: ranks of a node are a chain, and nodes form two binary trees, up for the sum and down for the result. Its latency grows with the logarithm of the number of nodes.',
  ],
  nvls: (situation) => [
    'NVLS is NVLink SHARP: the NVSwitch adds and copies, so each rank sends and receives its data once. It takes NVSwitches and GPUs of compute capability 9.0.',
    useHere(situation, 'NVLS'),
  ],
  nvlstree: (situation) => [
    'NVLSTree joins several nodes: NVLink SHARP within each, trees between them.',
    useHere(situation, 'NVLS'),
  ],
  collnet: (situation) => [
    'CollNet lets switches of the network reduce (SHARP): each node sends its data once.',
    useHere(situation, 'CollNet'),
  ],
  pat: () => ['PAT is an algorithm of all-gather and reduce-scatter with a logarithmic number of steps, for one rank a node.'],
  pxn: (situation) => [
    'PXN: a GPU sends through another GPU of its node that is nearer to the NIC, over NVLink, so that the data stay on that rail and cross no CPU.',
    useHere(situation, 'PXN'),
  ],
  gdr: (situation) => [
    'GDR, GPU Direct RDMA: the NIC reads and writes the memory of the GPU, without a copy through memory of the host.',
    useHere(situation, 'GDR'),
  ],
  p2p: (situation) => [
    'P2P: GPUs of a host copy directly into each other’s memory, over NVLink or PCIe.',
    useHere(situation, 'P2P'),
  ],
  shm: (situation) => [
    'SHM: ranks of a host exchange through memory of the host, where P2P does not work.',
    useHere(situation, 'SHM'),
  ],
  rail: () => [
    'A rail is the NICs with the same number in all hosts, which share switches. Traffic within a rail takes one switch; between rails it crosses spine switches.',
  ],
  chunk: ({ plan }) => [
    `A chunk is the data that a channel works on at a time. Chunks of send and receive have ${plan.p2p.chunkBytes} bytes here; those of collectives depend on algorithm, protocol and size (tccl plan --json has them).`,
  ],
  path: () => [
    'Paths are named after their farthest part: NVL (NVLink), NVB (NVLink by way of another GPU), PIX (one PCIe switch), PXB (several), PHB (the host bridge of a CPU), SYS (between CPUs).',
  ],
  nvlink: () => ['NVLink joins GPUs directly, or through NVSwitches; NCCL counts its bandwidth by GPU generation.'],
  nvswitch: () => [
    'An NVSwitch joins all GPUs of a host at full speed; from Hopper on it can add and copy as well (NVLink SHARP).',
  ],
};

const termOfAlgorithm: Readonly<Partial<Record<NonNullable<PartialWay['algorithm']>, Term>>> = {
  Ring: 'ring',
  Tree: 'tree',
  NVLS: 'nvls',
  NVLSTree: 'nvlstree',
  CollNetDirect: 'collnet',
  CollNetChain: 'collnet',
  PAT: 'pat',
};
const termOfProtocol = { LL: 'll', LL128: 'll128', Simple: 'simple' } as const;

/** Explains terms, with their values here. */
export function answerMeaning(situation: Situation, terms: readonly Term[], ways: readonly PartialWay[]): Draft {
  const asked = [
    ...new Set<Term>([
      ...terms,
      ...ways.flatMap(({ algorithm, protocol }) => [
        ...(algorithm === undefined ? [] : [termOfAlgorithm[algorithm]].filter((term) => term !== undefined)),
        ...(protocol === undefined ? [] : [termOfProtocol[protocol]]),
      ]),
    ]),
  ];
  const known = asked.filter((term) => meanings[term] !== undefined);
  return {
    title: known.length === 0 ? ways.map(formatAny).join(', ') : known.join(' and '),
    sentences: [...new Set(known.flatMap((term) => meanings[term]?.(situation) ?? []))],
    evidence: { terms: known },
  };
}

function formatAny({ algorithm, protocol }: PartialWay): string {
  return algorithm !== undefined && protocol !== undefined ? formatWay({ algorithm, protocol }) : (algorithm ?? protocol ?? '');
}

function useHere(situation: Situation, name: string): string {
  const use = usesIn(situation).find((each) => each.name === name);
  return use === undefined ? `Here no connection uses it.` : `Here: ${use.used}, ${use.text}.`;
}
