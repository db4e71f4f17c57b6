import { describe, expect, it } from 'vitest';
import { InvalidArgumentError } from '../../../../src/errors.js';
import { defaultParameters, parametersFromEnvironment } from '../../../../src/planner/parameters.js';
import type { Answer } from '../../../../src/planner/explain/answer.js';
import { changedSubject } from '../../../../src/planner/explain/counterfactual/apply.js';
import type { Counterfactual } from '../../../../src/planner/explain/counterfactual/counterfactual.js';
import { explain, mainQuestions } from '../../../../src/planner/explain/explain.js';
import { questionForms } from '../../../../src/planner/explain/grammar/complete.js';
import { parseQuestions } from '../../../../src/planner/explain/grammar/parse.js';
import { type Situation, situationOf } from '../../../../src/planner/explain/situation.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import { asStarted } from '../../../../src/planner/topology/combine/merge-nics.js';
import { collectives } from '../../../../src/planner/tuning/names.js';
import { choose } from '../../../../src/planner/tuning/choose.js';
import { flips } from '../../../../src/planner/tuning/flips.js';
import { predict } from '../../../../src/planner/tuning/predict.js';
import { runs } from '../../../runs.js';

const MiB = 2 ** 20;

/** A cluster by names of the catalogue and counts. */
function situation(hosts: Readonly<Record<string, number>>, environment: Readonly<Record<string, string>> = {}): Situation {
  return situationOf(
    { hosts: Object.entries(hosts).map(([name, count]) => ({ machine: machine(name), count, name })) },
    parametersFromEnvironment(environment).parameters,
  );
}

function ask(about: Situation, text: string): Answer {
  const [question] = parseQuestions(text);
  if (question === undefined) throw new Error(`not understood: ${text}`);
  return explain(about, question);
}

const sentencesOf = ({ lines }: Answer) => lines.map((line) => line.text);
const text = (answer: Answer) => sentencesOf(answer).join('\n');

const clusters = {
  'one H100 host': situation({ 'dgx-h100': 1 }),
  'two H100 hosts': situation({ 'dgx-h100': 2 }),
  'four A100 hosts': situation({ 'dgx-a100': 4 }),
  'V100 cube mesh': situation({ 'dgx-1v': 2 }),
  'PCIe cards': situation({ 'pcie-8-l40s': 1 }),
  'trays of Grace Blackwell': situation({ 'gb200-tray': 3 }),
  'mixed hosts': situation({ 'dgx-h100': 1, 'dgx-a100': 2 }),
  'one GPU': situation({ gh200: 1 }),
};

describe.each(Object.entries(clusters).filter((_, index) => index % runs(3, 1) === 0))('%s', (_, about) => {
  it.each(
    questionForms
      .map(({ example }) => example)
      .filter((example) => example !== 'how are 0 and 5 connected' && !/upgrade|2\.27|help/.test(example)),
  )('%s', (example) => {
    const { plan } = about;
    const question = example.replace('GPU 3', `GPU ${Math.min(3, plan.nodes.nRanks - 1)}`);
    const answer = ask(about, question);
    expect(answer.lines.length).toBeGreaterThan(0);
    for (const sentence of sentencesOf(answer)) expect(sentence).not.toMatch(/undefined|NaN|Infinity|\?\?|null/);
    // A plain value, without loss.
    expect(JSON.parse(JSON.stringify(answer))).toEqual(answer);
  });

  it('describes the connection of any two ranks', () => {
    const last = about.plan.nodes.nRanks - 1;
    expect(text(ask(about, `how are 0 and ${last} connected`))).toMatch(
      last === 0 ? /same/ : /peer-to-peer|memory of the host|network/,
    );
  });

  it('has at most three answers, the first about limits', () => {
    const telling = mainQuestions(about);
    expect(telling[0]).toMatchObject({ asks: 'limits', collective: undefined, changes: [] });
    expect(telling.length).toBeLessThanOrEqual(3);
    expect(new Set(telling.map(({ asks }) => asks)).size).toBe(telling.length);
  });
});

describe('the time of a call', () => {
  it("is given with the interval, beside NCCL's belief", () => {
    const { evidence, title } = ask(clusters['two H100 hosts'], 'how long does all_reduce take at 1G');
    const chosen = choose(clusters['two H100 hosts'].tuning, 'AllReduce', 1024 * MiB);
    expect(evidence['believedUs']).toBe(chosen?.timeUs);
    expect(evidence['predictedUs']).toBeGreaterThan(Number(evidence['leastUs']));
    expect(evidence['predictedUs']).toBeLessThan(Number(evidence['mostUs']));
    expect(title).toMatch(/^AllReduce of 1 GiB takes .* ms by the simulation$/);
  });

  it('is given for messages between pairs, for which NCCL has no belief', () => {
    const { evidence } = ask(clusters['PCIe cards'], 'alltoall 1M');
    expect(evidence).toMatchObject({ collective: 'AllToAll', way: 'pairs', believedUs: null });
  });
});

describe('why a choice', () => {
  it('on symmetric windows is a kernel, with the others and the reasons against them', () => {
    const about = situationOf(
      { hosts: [{ machine: machine('dgx-h100'), count: 1, name: 'dgx-h100' }] },
      { ...defaultParameters, windows: 'both' },
    );
    const answer = text(ask(about, 'which algorithm for all_reduce 1M'));
    expect(answer).toContain('with the symmetric kernel AllReduce_RSxLDMC_AGxSTMC on 1 CTA');
    expect(answer).toContain('Not AllReduce_RSxTmaLD_AGxTmaST: It copies by TMA, which is off');
    expect(answer).toContain('Without windows it would be Ring LL');
    expect(answer).toContain('By the simulation it takes 15.0 us');
    const times = text(ask(about, 'how long does all_reduce 1G take'));
    expect(times).toContain('On symmetric windows NCCL takes AllReduce_RSxLDMC_AGxSTMC, whose model expects 2.35 ms.');
    expect(times).toMatch(/The time goes to: throughput of thread blocks \d+ %/);
    expect(text(ask(about, 'which algorithm for broadcast 1M'))).toContain('There is no symmetric kernel for Broadcast.');
  });

  it.each(Object.entries(clusters))('%s: candidates and times are those of the tuning model', (_, { tuning, ...rest }) => {
    for (const collective of collectives) {
      for (const bytes of [64, 4 * MiB, 1024 * MiB]) {
        const { evidence } = ask({ tuning, ...rest }, `which algorithm for ${collective} of ${bytes} bytes`);
        const usable = predict(tuning, collective, bytes).filter(({ timeUs }) => timeUs !== null);
        expect(evidence['candidates']).toHaveLength(usable.length);
        const chosen = choose(tuning, collective, bytes);
        expect(evidence['chosen']).toMatchObject({
          algorithm: chosen?.algorithm,
          protocol: chosen?.protocol,
          timeUs: chosen?.timeUs,
        });
      }
    }
  });

  it('splits the difference into latency and bandwidth', () => {
    const answer = ask(clusters['four A100 hosts'], 'why Tree and not Ring at 4M');
    expect(answer.title).toBe('Tree LL128 for AllReduce of 4 MiB');
    expect(text(answer)).toContain('+84.5 us from latency (150 us instead of 65.5 us), -27.8 us from bandwidth');
    expect(text(answer)).toContain('a ring waits for 62 steps, 6 of them between nodes');
    expect(text(answer)).toContain('2 x (7 steps within a node + 2 levels of nodes)');
  });

  it('gives the simulated times of the chosen one and the other', () => {
    const answer = ask(clusters['four A100 hosts'], 'why Tree and not Ring at 4M');
    const [tree, ring] = answer.evidence['simulated'] as readonly Record<string, string | number>[];
    expect([tree?.['algorithm'], ring?.['algorithm']]).toEqual(['Tree', 'Ring']);
    expect(tree?.['timeUs']).not.toBe(ring?.['timeUs']);
    expect(sentencesOf(answer).at(-1)).toMatch(
      /^By the simulation Tree LL128 takes .* us, in eight of ten cases .*; Ring LL128 takes/,
    );
  });

  it('corrects a question whose algorithm is not chosen', () => {
    expect(sentencesOf(ask(clusters['two H100 hosts'], 'why Ring at 1G'))[0]).toBe('Ring is not what NCCL takes here.');
  });

  it('gives the reason why the algorithm in question cannot be used', () => {
    expect(text(ask(clusters['four A100 hosts'], 'why not NVLS at 1G'))).toContain(
      'NVLS cannot be used here. There is no NVLink SHARP',
    );
  });

  it('reports that no candidate is left', () => {
    expect(text(ask(situation({ 'dgx-a100': 2 }, { NCCL_ALGO: 'nvls' }), 'all_reduce 1M'))).toContain('fails the call');
  });
});

describe('why channels', () => {
  it.each(Object.entries(clusters))('%s: as many as planned', (_, about) => {
    const answer = ask(about, 'why channels');
    expect(answer.evidence['nChannels']).toBe(about.plan.nChannels);
    expect(sentencesOf(answer)[0]).toMatch(new RegExp(`^There (are|is) ${about.plan.nChannels} channel`));
  });

  it('lists the speeds without channels, and the obstacles', () => {
    const answer = ask(clusters['V100 cube mesh'], 'why 12 channels');
    expect(sentencesOf(answer)[0]).toBe('Not 12: there are 8 channels for rings and trees.');
    expect(text(answer)).toContain(
      'At 10 GB/s 16 tries brought nothing better (16 ran out of steps), mostly because a path is farther than allowed',
    );
    expect(text(answer)).toContain('4 channels become 8');
  });

  it('names the minimum that a variable sets', () => {
    expect(text(ask(situation({ 'dgx-a100': 2 }, { NCCL_MIN_NCHANNELS: '32' }), 'why 32 channels'))).toContain(
      'NCCL_MIN_NCHANNELS or NCCL_MIN_CTAS asks for more',
    );
  });

  it('gives the common values of nodes that differ', () => {
    expect(text(ask(clusters['mixed hosts'], 'why channels'))).toContain('Nodes differ in their ring graphs');
  });
});

describe('why a NIC', () => {
  it('compares the NIC in question with the nearest', () => {
    const answer = ask(clusters['V100 cube mesh'], 'why does GPU 3 not use NIC 2');
    expect(sentencesOf(answer)).toContain('Nearest to GPU 3 (rank 3) is NIC 1: PIX, 12 GB/s.');
    expect(sentencesOf(answer)).toContain(
      'NIC 2 is not among the nearest: 6 GB/s instead of 12 GB/s. No channel of GPU 3 uses it.',
    );
  });

  it('refuses ranks and NICs that do not exist', () => {
    expect(() => ask(clusters['two H100 hosts'], 'gpu 16 nic')).toThrow(InvalidArgumentError);
    expect(() => ask(clusters['two H100 hosts'], 'who uses nic 88')).toThrow(InvalidArgumentError);
    expect(() => ask(clusters['two H100 hosts'], 'ring 77 order')).toThrow(InvalidArgumentError);
  });
});

describe('why something is missing', () => {
  it.each([
    ['old GPUs', clusters['four A100 hosts'], 'why no NVLS', 'compute capability 8.0, where 9.0 is needed'],
    ['switched off', situation({ 'dgx-h100': 1 }, { NCCL_NVLS_ENABLE: '0' }), 'why no NVLS', 'NCCL_NVLS_ENABLE=0 switches'],
    ['another node has none', clusters['mixed hosts'], 'why no NVLS', 'some other node has none'],
    ['no NVSwitch', clusters['PCIe cards'], 'why no NVLS', 'has no NVSwitch'],
    ['NVLSTree instead', clusters['two H100 hosts'], 'why no NVLS', 'NVLSTree takes the place of NVLS'],
    ['far paths', clusters['PCIe cards'], 'why no LL128', 'LL128 needs paths between GPUs of type NVB or nearer'],
    ['several ranks a node', clusters['two H100 hosts'], 'why no PAT', 'one rank a node only'],
    [
      'GPU Direct off',
      situation({ 'hgx-a100-4': 2 }, { NCCL_NET_GDR_LEVEL: 'LOC' }),
      'why no gdr',
      'farther than NCCL_NET_GDR_LEVEL allows',
    ],
    ['PXN off', situation({ 'dgx-h100': 2 }, { NCCL_PXN_DISABLE: '1' }), 'why no pxn', 'NCCL_PXN_DISABLE=1'],
  ])('%s', (_, about, question, reason) => {
    expect(text(ask(about, question))).toContain(reason);
  });

  it('corrects a question about a feature that is in use', () => {
    expect(sentencesOf(ask(clusters['two H100 hosts'], 'why no LL128'))[0]).toMatch(
      /^LL128 is used for AllReduce: Tree LL128 from /,
    );
  });
});

it('flips are those of the tuning model', () => {
  const about = clusters['two H100 hosts'];
  const { evidence } = ask(about, 'flips all_reduce');
  expect(evidence['collectives']).toMatchObject([
    { collective: 'AllReduce', flips: flips(about.tuning, 'AllReduce', 8, 2 ** 34) },
  ]);
});

it('ranks of one host without a path to each other use its memory or the network', () => {
  expect(text(ask(clusters['PCIe cards'], 'how are 0 and 5 connected'))).toContain('counts them as two nodes');
  expect(text(ask(situation({ 'pcie-2-l40s': 1 }, { NCCL_P2P_DISABLE: '1' }), 'how are 0 and 1 connected'))).toContain(
    'NCCL_P2P_DISABLE',
  );
});

describe('which rails are crossed', () => {
  it('are none by default, and many where NICs may be crossed', () => {
    expect(ask(clusters['two H100 hosts'], 'which rails are crossed').title).toBe('no rail is crossed');
    const crossing = ask(situation({ 'dgx-a100': 3 }, { NCCL_CROSS_NIC: '1' }), 'which rails are crossed');
    expect(crossing.title).toBe('16 channel graphs of 32 cross rails');
    expect(text(crossing)).toContain('Channel 0: 3 of 3 hops between nodes, as from rank 1 by NIC 1 to rank 8 by NIC 0.');
    expect(text(crossing)).toContain('No tree crosses rails.');
  });
});

describe('what a variable does', () => {
  it.each([
    ['NCCL_CROSS_NIC', 'Here it has its default, 2.'],
    ['NCCL_IB_TIMEOUT', 'No decision of a plan depends on it.'],
    ['NCCL_IB_HCA', 'Plans do not take it into account'],
    ['NCCL_IB_TIMEOUTS', 'The nearest name is NCCL_IB_TIMEOUT.'],
  ])('%s', (variable, sentence) => {
    expect(text(ask(clusters['two H100 hosts'], `what does ${variable} do`))).toContain(sentence);
  });

  it('gives its value', () => {
    expect(text(ask(situation({ 'dgx-h100': 2 }, { NCCL_CROSS_NIC: '0' }), 'NCCL_CROSS_NIC'))).toContain('Here it is 0.');
  });
});

it('channels of send and receive are those of the plan', () => {
  for (const about of Object.values(clusters)) {
    const { p2p } = about.plan;
    expect(ask(about, 'how many send/recv channels').evidence).toMatchObject({
      nChannels: p2p.nChannels,
      channelsPerPeer: p2p.channelsPerPeer,
    });
  }
});

it('ports of a card are apart again where a change makes NCCL join none', () => {
  const built = machine('oci-h100');
  const hosts = [{ machine: asStarted(built, defaultParameters), count: 2 }];
  const subject = situationOf({ hosts }, defaultParameters, { searches: 'none' });
  const machinesWith = (change: Counterfactual) => changedSubject(subject, [change]).cluster.hosts.map((host) => host.machine);
  expect(machinesWith({ kind: 'variable', name: 'NCCL_IB_MERGE_NICS', value: '0' })).toEqual([built]);
  expect(machinesWith({ kind: 'version', nccl: '2.19.4' })).toEqual([built]);
  expect(machinesWith({ kind: 'variable', name: 'NCCL_ALGO', value: 'Ring' })).toEqual([hosts[0]?.machine]);
  expect(machinesWith({ kind: 'machine', name: 'oci-h100' })).toEqual([hosts[0]?.machine]);
});

describe('a measured figure', () => {
  it('has the number of faults that were not tried', () => {
    const [question] = parseQuestions('why is alltoall only 47 GB/s');
    if (question === undefined) throw new Error('not understood');
    const { lines, evidence } = explain(clusters['two H100 hosts'], question, { keepGoing: () => false });
    const leftOut = Number(evidence['leftOut']);
    expect(leftOut).toBeGreaterThan(10);
    expect(lines.map(({ text: line }) => line)).toContain(`${leftOut} possible faults not tried, for lack of time.`);
  });
});
