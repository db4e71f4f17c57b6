import { counted } from '../../../counted.js';
import { describeMergeEvent } from '../../graph/merge/trace.js';
import { pathTypeNames } from '../../topology/types.js';
import type { Draft } from '../answer.js';
import { list } from '../format.js';
import type { Situation } from '../situation.js';

/** Explains the number of ranks and nodes: NCCL counts hosts whose GPUs do not reach each other as several nodes. */
export function answerNodes({ plan, prepared, parameters, mergeEvents }: Situation, expected: number | undefined): Draft {
  const { nNodes, nRanks } = plan.nodes;
  const hosts = prepared.reduce((sum, { count }) => sum + count, 0);
  const split = prepared.filter(({ host }) => host.nodes.length > 1);
  const isWrong = expected !== undefined && expected !== nNodes && expected !== nRanks;
  return {
    title: `${counted(nNodes, 'node')}, ${counted(nRanks, 'rank')}`,
    sentences: [
      `${isWrong ? `Not ${expected}: ` : ''}NCCL counts ${counted(nNodes, 'node')} on ${counted(hosts, 'host')}: ${prepared.map(({ name, count, host }) => `${count} x ${name} with ${counted(host.nRanks, 'rank')}`).join(', ')}.`,
      ...(split.length === 0
        ? ['All ranks of a host reach each other without the network, so each host is one node.']
        : [
            'A node is a set of ranks that reach each other without the network.',
            ...split.map(
              ({ name, host }) =>
                `${name} counts as ${counted(host.nodes.length, 'node')}: ranks ${host.nodes.map(({ ranks }) => ranks.join(' ')).join(' | ')} reach each other over the network, because P2P does not go as far as their path (${parameters.p2pLevel === undefined ? 'NCCL_P2P_LEVEL is not set' : `NCCL_P2P_LEVEL=${pathTypeNames[parameters.p2pLevel]}`}) and the NICs are faster than memory of the host.`,
            ),
            'NCCL_NET_DISABLE_INTRA=1 keeps the network out of a host, NCCL_P2P_LEVEL=SYS lets P2P go over any distance.',
          ]),
      ...mergeEvents.filter((event) => event.kind === 'split-host').map(describeMergeEvent),
    ],
    evidence: {
      nNodes,
      nRanks,
      hosts: prepared.map(({ name, count, host }) => ({
        name,
        count,
        nodes: host.nodes.map(({ ranks }) => list(ranks.map(String))),
      })),
    },
  };
}
