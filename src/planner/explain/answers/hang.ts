import { summarizeConnections } from '../../plan/overview/connections.js';
import type { Draft } from '../answer.js';
import { list } from '../format.js';
import { nodeViews, type Situation } from '../situation.js';

/** Lists what in a plan can make calls wait for ever; most causes are not in a plan. */
export function answerHang(situation: Situation): Draft {
  const { plan, parameters, transports } = situation;
  const kinds = plan.nodes.kinds;
  const counts = [...new Set(kinds.map(({ netDevices }) => netDevices))];
  const views = nodeViews(situation);
  const { none } = summarizeConnections(plan, transports);
  const causes: string[] = [];
  if (counts.length > 1)
    causes.push(
      `Hosts have different numbers of NICs: ${list(views.map(({ name, kind }) => `${name} ${kind.netDevices}`))}. NCCL goes on (NCCL_IGNORE_NET_MISMATCH=${parameters.ignoreNetMismatch}; 0 refuses such hosts), and channels on a NIC that the other side does not have wait for ever. Give all hosts the same NICs (NCCL_IB_HCA), or repair the one that is missing.`,
    );
  if (none > 0)
    causes.push(
      `${none} connections within hosts have no transport (NCCL_SHM_DISABLE=1 without P2P): NCCL fails when it makes them.`,
    );
  return {
    title: causes.length === 0 ? 'nothing in this plan explains a hang' : 'this plan can hang',
    sentences: [
      ...(causes.length === 0
        ? ['Nothing in this plan makes a call wait for ever: every connection has a transport, and all hosts have as many NICs.']
        : causes),
      "A rank that ended, calls that differ between ranks, a network that drops packets and ACS or an IOMMU show in the job's own output: tccl diagnose FOLDER reads logs, flight recordings and outputs of nvidia-smi, and names the cause.",
    ],
    evidence: { netDevices: kinds.map(({ netDevices }) => netDevices), withoutTransport: none, causes: causes.length },
  };
}
