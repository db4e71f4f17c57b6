import { checkPlan } from '../../plan/checks/check-plan.js';
import { counted } from '../../../counted.js';
import { summarizeConnections } from '../../plan/overview/connections.js';
import { type Use, usesOf } from '../../plan/overview/overview.js';
import { heldBackText, ringUse } from '../../plan/overview/ring-use.js';
import type { Draft } from '../answer.js';
import type { Term } from '../grammar/question.js';
import { type NodeView, nodeViews, type Situation } from '../situation.js';
import { networkUse } from './nic.js';

/** Features of NCCL by the words of questions. */
const featureOf: Readonly<Partial<Record<Term, Use['name']>>> = {
  p2p: 'P2P',
  nvlink: 'P2P',
  nvswitch: 'P2P',
  shm: 'SHM',
  pxn: 'PXN',
  gdr: 'GDR',
};

/** The use of each feature in the plan, with the reasons where one is not used everywhere. */
export function usesIn({ plan, tuning, transports, parameters }: Situation): Use[] {
  return usesOf(plan, tuning, summarizeConnections(plan, transports), parameters);
}

/** Features that a plan lacks and that cost bandwidth, with the reasons. */
export function hindrances(situation: Situation): string[] {
  return [
    ...usesIn(situation)
      .filter(({ name, used }) => (name === 'P2P' || name === 'GDR') && used !== 'yes')
      .map(({ name, used, text }) => `${name === 'P2P' ? 'Peer-to-peer (P2P)' : 'GPU Direct RDMA (GDR)'}: ${used}, ${text}.`),
    ...checkPlan(situation)
      .filter(({ severity }) => severity !== 'info')
      .map(({ problem, consequence, remedy }) => `A fault (tccl topo doctor): ${problem}; ${consequence}. Do: ${remedy}.`),
  ];
}

/** Answers whether a feature is used: P2P, shared memory, NVLink, sockets, or all NICs. */
export function answerUse(situation: Situation, terms: readonly Term[]): Draft {
  if (terms.includes('nics') && !terms.includes('p2p')) return nicsInUse(situation);
  if (terms.includes('sockets'))
    return {
      title: 'a plan does not decide between sockets and RDMA',
      sentences: [
        'NCCL takes sockets of the kernel where it finds no network plugin or NIC for RDMA, or with NCCL_IB_DISABLE=1; its log then says NET/Socket.',
        'What it would cost here: tccl explain CLUSTER what if it runs over sockets.',
      ],
      evidence: { terms },
    };
  const uses = usesIn(situation);
  const term = terms.find((each) => featureOf[each] !== undefined);
  const name = term === undefined ? 'P2P' : featureOf[term];
  const use = uses.find((each) => each.name === name);
  const others = uses.filter((each) => each.name === 'SHM' || each.name === 'P2P').filter((each) => each !== use);
  const word = term === 'nvlink' ? 'NVLink' : term === 'nvswitch' ? 'NVSwitch' : (name ?? 'P2P');
  const evidence = { uses: uses.map((each) => ({ name: each.name, used: each.used, text: each.text })) };
  if (term === 'nvlink' || term === 'nvswitch') return { ...nvlinkInUse(situation, word), evidence };
  if (use === undefined)
    return {
      title: `${word} is not used`,
      sentences: [
        name === 'SHM'
          ? 'No connection of rings and trees goes through memory of the host.'
          : 'No connection of rings and trees stays within a host.',
        ...others.map(sentence),
      ],
      evidence,
    };
  return {
    title: `${word} is ${use.used === 'yes' ? 'used' : use.used === 'no' ? 'not used' : 'used for a part of the connections'}`,
    sentences: [sentence(use), ...others.map(sentence), ...remedies(use, situation)],
    evidence,
  };
}

/** `P2P: yes, over NVL; senders write.` */
function sentence({ name, used, text }: Use): string {
  return `${name}: ${used}, ${text}.`;
}

function remedies({ name, used }: Use, { parameters }: Situation): string[] {
  if (name !== 'P2P' || used === 'yes') return [];
  if (parameters.p2pDisable === 1) return ['NCCL_P2P_DISABLE=1 is set: unset it.'];
  return [
    'NCCL_P2P_LEVEL=SYS allows it over any distance, if the driver does; nvidia-smi topo -p2p r shows whether it does. GeForce drivers refuse it.',
  ];
}

function nvlinkInUse(situation: Situation, word: string): Omit<Draft, 'evidence'> {
  const views = nodeViews(situation);
  const { p2pPaths, p2p, shm } = summarizeConnections(situation.plan, situation.transports);
  const links = views.some(({ local }) => local.system.nvSwitches.length > 0);
  const uses = p2pPaths.includes('NVL') || p2pPaths.includes('NVB');
  const isThere = word === 'NVSwitch' ? links : uses;
  return {
    title: `${word} is ${isThere ? 'used' : 'not used'}`,
    sentences: [
      uses
        ? `${p2p} of ${p2p + shm} connections of rings and trees within hosts are peer-to-peer, over ${p2pPaths.join(', ')}.`
        : `No connection of rings and trees goes over NVLink: within hosts they take ${p2pPaths.length === 0 ? 'memory of the host' : p2pPaths.join(', ')}.`,
      ...(word === 'NVSwitch' ? [links ? 'The machine has NVSwitches.' : 'The machine has no NVSwitch.'] : []),
    ],
  };
}

function nicsInUse(situation: Situation): Draft {
  const { plan } = situation;
  const views = nodeViews(situation);
  if (plan.nodes.nNodes === 1)
    return {
      title: 'no NIC is used',
      sentences: ['All ranks are on one node, and nothing goes over the network.'],
      evidence: { nNodes: 1 },
    };
  const nodes = views.map((view): NodeNics => {
    const used = new Set(
      view.kind.ranks.flatMap((local) =>
        networkUse(situation, (plan.nodes.rankBase[view.node] ?? 0) + local).map(({ connection }) => connection.dev),
      ),
    );
    const all = view.local.system.nets.map(({ dev }) => dev);
    return { view, used: all.filter((dev) => used.has(dev)), unused: all.filter((dev) => !used.has(dev)), all };
  });
  const least = nodes.reduce((worst, node) => (node.unused.length > worst.unused.length ? node : worst), nodes[0] ?? noNode);
  return {
    title:
      least.unused.length === 0
        ? `all ${least.all.length} NICs are used`
        : `${least.used.length} of ${least.all.length} NICs ${least.used.length === 1 ? 'is' : 'are'} used`,
    sentences: nodes.flatMap(({ view, used, unused, all }) => {
      const prefix = nodes.length > 1 ? `${view?.name ?? ''}: ` : '';
      const use = view === undefined ? undefined : ringUse(plan, view.kind, view.local);
      return [
        `${prefix}Rings and trees use ${unused.length === 0 ? `all ${counted(all.length, 'NIC')}` : `NIC ${used.join(' ')} of ${counted(all.length, 'NIC')}; NIC ${unused.join(' ')} ${unused.length === 1 ? 'is' : 'are'} idle`}.`,
        ...(use?.heldBackBy === undefined ? [] : [`${prefix}The search found more rings, but ${heldBackText(use)}.`]),
      ];
    }),
    evidence: { nodes: nodes.map(({ view, used, unused }) => ({ name: view?.name ?? '', used, unused })) },
  };
}

/** NICs of a kind of node, by whether rings and trees use them. */
interface NodeNics {
  readonly view: NodeView | undefined;
  readonly used: readonly number[];
  readonly unused: readonly number[];
  readonly all: readonly number[];
}

const noNode: NodeNics = { view: undefined, used: [], unused: [], all: [] };
