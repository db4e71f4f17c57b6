import type { Ask } from './question.js';
import type { Concept } from './vocabulary.js';
import type { Term } from './question.js';

/**
 * A sign in a question: an idea of the vocabulary, a term (`#pxn`), or something that is named by number or name (`#rate`,
 * `#ways` for two algorithms).
 */
export type Sign = Concept | `#${Term}` | `#${Named}`;
type Named =
  | 'rate'
  | 'took'
  | 'size'
  | 'collective'
  | 'workload'
  | 'pairs'
  | 'way'
  | 'ways'
  | 'feature'
  | 'rank'
  | 'ranks'
  | 'nic'
  | 'ringNumber'
  | 'nodes'
  | 'twoNodeCounts'
  | 'gpus'
  | 'channels'
  | 'version'
  | 'versions'
  | 'machine'
  | 'variable'
  | 'value'
  | 'change'
  | 'definition'
  | 'controlled'
  | 'fact'
  | 'sureFact'
  | 'calls'
  | 'beyond'
  | 'gpuCounts'
  | 'values'
  | 'comparedFigures'
  | 'variants'
  | 'figuresOfCalls'
  | 'unsettable'
  | 'figures';

/** A subject of questions, and the signs by which it is recognised. */
export interface Intent {
  readonly asks: Ask;
  /** A question that is read so, and its purpose, for lists and completion. */
  readonly example: string;
  readonly purpose: string;
  /** Each entry is a way to ask: of each of its groups, one sign at least must be there. */
  readonly when: readonly (readonly (readonly Sign[])[])[];
  /** None of these signs may be there. */
  readonly not?: readonly Sign[];
  /** True if a call alone is named: a misspelt word may say what is asked. */
  readonly isGuess?: true;
}

/** Subjects in the order in which they are tried: the first one whose signs are there is taken. */
export const intents: readonly Intent[] = [
  {
    asks: 'meaning',
    example: 'what is the difference between busbw and algbw',
    purpose: 'what a term means, with its value here',
    when: [[['#definition']]],
    not: ['#size', '#collective', '#rate', '#change', '#variable', '#value', '#sureFact'],
  },
  {
    asks: 'hang',
    example: 'why does the job hang',
    purpose: 'what in this plan can make calls wait for ever',
    when: [[['hang']]],
  },
  {
    asks: 'observe',
    example: 'how can I see which algorithm NCCL uses',
    purpose: 'the variable that makes NCCL print it, and what it would print here',
    when: [
      [
        ['observe'],
        [
          'choose',
          '#way',
          '#ways',
          '#channel',
          '#channels',
          '#nics',
          '#nvls',
          '#gdr',
          '#p2p',
          '#shm',
          '#pxn',
          '#ring',
          'order',
          'used',
        ],
      ],
    ],
    not: ['#size', '#rate', '#took', '#change', '#value', 'improve', 'slow'],
  },
  {
    asks: 'control',
    example: 'how do I force the ring algorithm',
    purpose: 'the variables that set something, their values, and what these change here',
    when: [[['control'], ['#controlled', '#way', '#feature', '#nics', '#channel', '#channels', '#rail', '#chunk', '#nvls']]],
    not: ['#variable', '#unsettable', 'speed', 'slow', '#rate', '#took', 'scale', 'hang'],
  },
  {
    asks: 'fact',
    example: 'why is the factor of bus bandwidth 2(n-1)/n',
    purpose: 'figures of nccl-tests, and facts of NCCL that hold for any plan',
    when: [[['#fact']]],
    not: ['#change', '#variable', '#rate', '#took', '#versions'],
  },
  {
    asks: 'fact',
    example: 'why is bandwidth higher for larger sizes',
    purpose: 'facts that are asked beside figures: sizes, pairs of hosts, several rings and NICs',
    when: [[['#sureFact']]],
    not: ['#change', '#versions'],
  },
  {
    asks: 'aware',
    example: 'does NCCL detect the network topology',
    purpose: 'what NCCL knows about the network, and which variables tell it',
    when: [[['aware'], ['outside']]],
    not: ['#size', '#rate', '#took', '#value', '#ranks', '#rank'],
  },
  {
    asks: 'upgrade',
    example: 'would NCCL 2.27 be faster than 2.19',
    purpose: 'what another version of NCCL changes here, by rule',
    when: [
      [['#versions'], ['upgrade', 'slow', 'improve', 'exceed', 'why', 'what', 'is', 'choose', 'bandwidth', 'scale', 'does']],
      [['#version'], ['upgrade', 'slow', 'improve', 'exceed', 'scale']],
    ],
  },
  {
    asks: 'exceeds',
    example: 'why is the bus bandwidth higher than my network',
    purpose: 'how bus bandwidth passes the speed of the NICs',
    when: [
      [['exceed'], ['network', 'theory', '#nics', 'limit'], ['bandwidth', '#busbw', '#algbw', '#rate', 'why', '#collective']],
      [['exceed'], ['#nics', 'network'], ['is', 'why']],
      [['exceed'], ['#nvlink', '#pcie'], ['#busbw', '#algbw', 'bandwidth', '#collective'], ['why', 'is', 'what']],
    ],
    not: ['#change', '#variable'],
  },
  {
    asks: 'scaling',
    example: 'is 480 GB/s on one node and 240 GB/s on 2 nodes good',
    purpose: 'figures of several layouts or algorithms, each judged',
    when: [[['#variants']]],
  },
  {
    asks: 'calls',
    example: 'why is alltoall at 25 GB/s where all_reduce has 200 GB/s',
    purpose: 'two calls with a figure each: what each sends, and what is to be expected',
    when: [[['#figuresOfCalls'], ['slow', 'exceed', 'why', 'is', 'bandwidth', 'good', '#busbw']]],
    not: ['#change', '#variable', 'otherTool'],
  },
  {
    asks: 'unclear',
    example: 'ib_write_bw has 390 Gb/s and NCCL 240',
    purpose: 'figures of another program, or of no named call: what to ask instead',
    when: [
      [['otherTool'], ['#rate', '#took']],
      [['#figures'], ['#rate']],
    ],
    not: ['#change', '#collective', '#comparedFigures', '#busbw', '#algbw'],
  },
  {
    asks: 'judge',
    example: 'is 365 GB/s good for all_reduce',
    purpose: 'a measured bandwidth or time beside the expected one, and what would explain the difference',
    when: [
      [['#rate'], ['good', 'slow', 'expect', 'why', 'is', 'what', 'bandwidth', '#busbw', '#algbw', '#collective', '#size']],
      [['#took'], ['good', 'slow', 'expect', 'why', 'is', 'time'], ['#collective', '#size', 'time', 'bandwidth']],
    ],
    not: ['#change', '#comparedFigures'],
  },
  {
    asks: 'scaling',
    example: 'how does it scale from 2 to 64 nodes',
    purpose: 'time and bandwidth by the number of nodes',
    when: [
      [['scale']],
      [['#twoNodeCounts'], ['slow', 'exceed', 'improve', 'why', 'bandwidth', 'time', 'good']],
      [['oneNode'], ['slow', 'exceed', 'choose'], ['nodes', '#nodes', 'between']],
      [['#nodes', 'between'], ['slow'], ['oneNode', 'scale']],
    ],
    not: ['#ways', '#change', '#variable'],
  },
  {
    asks: 'scaling',
    example: 'why does NVLS not help on more than 2 nodes',
    purpose: 'time and bandwidth around a number of nodes or GPUs, with an algorithm and without it',
    when: [
      [['#beyond'], ['slow', 'exceed', 'improve', 'negation', 'why', 'bandwidth', 'time', 'good', 'used', 'choose']],
      [['#gpuCounts'], ['slow', 'exceed', 'improve', 'why', 'bandwidth', 'time', 'good', '#busbw', '#collective']],
      [['#comparedFigures']],
    ],
    not: ['#ways', '#variable', '#channels', '#variants'],
  },
  {
    asks: 'variable',
    example: 'is NCCL_NVLS_ENABLE=0 or 1 better',
    purpose: 'several values of a variable, each tried',
    when: [[['#values']]],
  },
  {
    asks: 'variable',
    example: 'what is NCCL_SHM_DISABLE=1 doing and when would you use it',
    purpose: 'what an option does, with its effect here',
    when: [[['#variable'], ['optionAsked']]],
    not: ['#rate'],
  },
  {
    asks: 'calls',
    example: 'why is alltoall slower than all_reduce',
    purpose: 'two calls of one size: time, bandwidth and what each sends',
    when: [[['#calls'], ['slow', 'exceed', 'improve', 'why', 'time', 'bandwidth', 'good', '#busbw', 'is']]],
    not: ['#change', '#variable', '#rate', '#took', '#ways', 'upgrade', 'choose'],
  },
  {
    asks: 'change',
    example: 'what if one NIC is down',
    purpose: 'the plan and the times with a change: NICs, links, nodes, a variable, another machine',
    when: [[['#change']]],
  },
  {
    asks: 'variable',
    example: 'what does NCCL_CROSS_NIC do',
    purpose: 'a variable of NCCL, its value here, and what other values change here',
    when: [[['#variable']]],
    not: ['#value'],
  },
  {
    asks: 'change',
    example: 'with NCCL_ALGO=Ring',
    purpose: 'the plan and the times with a variable of NCCL and without it',
    when: [[['#value']]],
    not: [
      'choose',
      '#rail',
      '#pxn',
      '#gdr',
      '#channel',
      '#channels',
      'flips',
      'order',
      '#ranks',
      '#nic',
      '#way',
      'time',
      'bandwidth',
      '#busbw',
      'limit',
    ],
  },
  {
    asks: 'change',
    example: 'would NCCL_MIN_NCHANNELS=32 be faster',
    purpose: 'the plan and the times with a variable of NCCL and without it',
    when: [[['#value'], ['is', 'does'], ['improve', 'slow', 'good', 'exceed']]],
    not: ['what', 'why', 'howMany'],
  },
  {
    asks: 'help',
    example: 'what would help all_reduce 1G',
    purpose: 'single changes, tried and ranked by what they gain',
    when: [
      [
        ['improve'],
        [
          'bandwidth',
          'time',
          '#collective',
          '#pairs',
          '#busbw',
          '#algbw',
          '#size',
          '#workload',
          'what',
          'network',
          'between',
          'slow',
          'is',
        ],
      ],
    ],
    not: ['#ways', '#rail', '#change'],
  },
  {
    asks: 'rails',
    example: 'which rails are crossed',
    purpose: 'channels that arrive by another NIC than they left by',
    when: [[['#rail']]],
  },
  {
    asks: 'channels',
    example: 'how many send/recv channels',
    purpose: 'channels of messages between pairs, and for each peer; or how many channels a call of a size takes',
    when: [[['#channel', '#channels']]],
    not: ['negation'],
  },
  {
    asks: 'use',
    example: 'why no NVLS',
    purpose: 'whether an algorithm, protocol or feature is used, and why not',
    when: [[['#nvls'], ['negation'], ['#channel', '#channels']]],
  },
  {
    asks: 'channels',
    example: 'why 24 channels',
    purpose: 'how the number and speed of channels came about',
    when: [[['#channel', '#channels']]],
  },
  {
    asks: 'flips',
    example: 'which size changes the choice',
    purpose: 'sizes from which another algorithm or protocol is used',
    when: [[['flips'], ['choose', '#way', '#ways', '#collective', 'what']]],
    not: ['#size', '#nic', '#rank', '#nics', '#p2p', '#shm', '#gdr', '#pxn', 'limit', 'bandwidth', 'time', '#busbw'],
  },
  {
    asks: 'flips',
    example: 'why does all_reduce drop at 64 MiB',
    purpose: 'sizes around which another algorithm or protocol is used',
    when: [[['dips'], ['#size'], ['why', 'is', 'what']]],
    not: ['#rate', '#change', '#way'],
  },
  {
    asks: 'nodes',
    example: 'why does it count as 2 nodes',
    purpose: "NCCL's nodes and ranks, and why GPUs of one host are several nodes",
    when: [
      [['#nodes', 'nodes', '#gpus'], ['countsAs'], ['why', 'what', 'howMany', 'is']],
      [['#nodes'], ['why']],
      [['howMany'], ['nodes']],
    ],
    not: ['#way', '#size', '#collective', 'bandwidth', 'time', 'slow', '#busbw', 'limit', '#ranks', '#nics', '#nic'],
  },
  { asks: 'gdr', example: 'why no GDR', purpose: 'whether NICs reach the memory of GPUs directly', when: [[['#gdr']]] },
  { asks: 'pxn', example: 'why PXN', purpose: 'which GPUs send through another GPU to its NIC', when: [[['#pxn']]] },
  {
    asks: 'connection',
    example: 'how are 0 and 5 connected',
    purpose: 'peer-to-peer, shared memory or network between two ranks',
    when: [[['#ranks']]],
    not: ['#size', '#nic', '#nics'],
  },
  {
    asks: 'nic',
    example: 'why does GPU 3 use NIC 5',
    purpose: 'which NIC a GPU uses, and what else it could',
    when: [[['#nic']], [['#nics'], ['#rank']], [['#nics'], ['what', 'howMany'], ['choose', 'used', 'is']]],
    not: ['#size', '#busbw', 'limit', 'flips', 'expect'],
  },
  {
    asks: 'use',
    example: 'is NVLS used',
    purpose: 'whether an algorithm, protocol or feature is used, and at which sizes',
    when: [
      [['#feature'], ['is', 'why', 'does'], ['used', 'negation']],
      [['#feature'], ['negation']],
      [['#way'], ['negation'], ['why', 'is', 'used']],
      [['#way'], ['is'], ['used']],
      [['#feature'], ['what', 'howMany', 'why', 'is']],
      [['#nics'], ['is', 'why'], ['used', 'negation']],
    ],
    not: ['#ways', '#size', '#busbw', 'bandwidth', 'time', 'limit', 'slow', 'order'],
  },
  {
    asks: 'rings',
    example: 'why this ring order',
    purpose: 'why rings visit the GPUs as they do',
    when: [[['order'], ['#way', '#ring', '#ringNumber', 'what', 'why']], [['#ringNumber']]],
    not: ['#size', '#collective', 'time', 'bandwidth'],
  },
  {
    asks: 'limits',
    example: 'what limits send/recv',
    purpose: 'where the time of a call goes',
    when: [
      [['limit'], ['#pairs']],
      [['slow'], ['#pairs'], ['why', 'what', 'is']],
    ],
    not: ['#way'],
  },
  {
    asks: 'limits',
    example: 'what limits',
    purpose: 'the links and rules that bound bandwidth',
    when: [
      [['limit'], ['what', 'why', 'is', 'bandwidth', '#collective', 'network', 'between', 'within', '#busbw', 'howMany']],
      [
        ['slow'],
        ['why', 'what', 'is'],
        [
          'bandwidth',
          '#collective',
          '#workload',
          '#busbw',
          '#algbw',
          'network',
          'between',
          'within',
          '#nvlink',
          '#pcie',
          '#p2p',
          '#shm',
          '#nics',
          'time',
        ],
      ],
    ],
    not: ['#way', '#size', 'expect'],
  },
  {
    asks: 'limits',
    example: 'why is the bandwidth of 64 MiB so low',
    purpose: 'where the time of a call of that size goes',
    when: [[['limit', 'slow'], ['#size'], ['why']]],
    not: ['#way', 'expect'],
  },
  {
    asks: 'time',
    example: 'how long does alltoall take at 64M',
    purpose: "a call's time: NCCL's belief and the simulation",
    when: [[['time'], ['#collective', '#pairs', '#size', 'what', 'howMany', 'expect', 'is', '#workload']]],
    not: ['#way', 'bandwidth', '#busbw'],
  },
  {
    asks: 'bandwidth',
    example: 'what busbw should I expect',
    purpose: 'the expected bandwidth of calls, with its interval and its bound',
    when: [
      [
        ['bandwidth', '#busbw', '#algbw'],
        ['expect', 'what', 'howMany', 'is', 'theory', '#collective', '#size', 'good'],
      ],
      [
        ['expect', 'howMany'],
        ['#collective', '#workload', '#pairs'],
      ],
    ],
    not: ['#ways', '#way'],
  },
  {
    asks: 'bandwidth',
    example: 'what busbw does Ring reach at 1G',
    purpose: 'the expected bandwidth of one algorithm',
    when: [[['bandwidth', '#busbw', '#algbw'], ['expect', 'what', 'howMany'], ['#way']]],
    not: ['#ways', 'why'],
  },
  {
    asks: 'choice',
    example: 'why Tree and not Ring at 4M for all_reduce',
    purpose: 'what each algorithm would take at a size',
    when: [
      [
        ['#way', '#ways'],
        ['why', 'choose', 'negation', 'exceed', 'slow', 'time', '#size', '#collective'],
      ],
      [['#ways'], ['what', 'is']],
      [['choose'], ['#collective', '#size', 'what', 'why']],
    ],
  },
  {
    asks: 'flips',
    example: 'when does NCCL switch from tree to ring',
    purpose: 'sizes from which another algorithm or protocol is used',
    when: [[['flips']]],
    not: ['#nic', '#rank', 'limit', 'bandwidth', 'time'],
    isGuess: true,
  },
  {
    asks: 'choice',
    example: 'all_reduce 4M',
    purpose: 'what NCCL takes for a call, and what each algorithm would take',
    when: [[['#collective', '#size']]],
    isGuess: true,
  },
];
