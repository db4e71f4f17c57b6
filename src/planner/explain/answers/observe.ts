import { counted } from '../../../counted.js';
import { formatBytes, formatWay } from '../../plan/overview/format.js';
import type { ScheduledCollective } from '../../schedule/schedule.js';
import { choose } from '../../tuning/choose.js';
import type { Draft } from '../answer.js';
import type { Situation } from '../situation.js';
import { isModelled } from './bandwidth.js';

/** Sizes at which the choice is shown. */
const shownBytes: readonly number[] = [64 * 2 ** 10, 4 * 2 ** 20, 128 * 2 ** 20, 2 ** 30];

/** Names the variables that make NCCL print its decisions, and what they would show here. */
export function answerObserve(situation: Situation, asked: ScheduledCollective | undefined): Draft {
  const { plan, tuning } = situation;
  const collective = asked !== undefined && isModelled(asked) ? asked : 'AllReduce';
  const choices = shownBytes.flatMap((bytes) => {
    const choice = choose(tuning, collective, bytes);
    return choice === undefined ? [] : [{ bytes, way: formatWay(choice) }];
  });
  return {
    title: 'NCCL_DEBUG=INFO, with NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,TUNING',
    sentences: [
      'NCCL_DEBUG=INFO prints the version, the network, the NICs, each connection (P2P, SHM or NET, with GDRDMA) and the number of channels: “N coll channels, M collnet channels, K nvls channels, L p2p channels”.',
      'NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH adds the machine and the rings that the search found; TUNING adds the algorithm and protocol of each call with its size (releases before 2.19 print the table of times at init only).',
      'The algorithm and protocol are chosen for each call by its size, so one job uses several.',
      `Here, without a log: ${counted(plan.nChannels, 'channel')} for rings and trees${plan.nvls === undefined ? '' : `, ${plan.nvls.nChannels} for NVLink SHARP`}, ${plan.p2p.nChannels} for send and receive.`,
      ...(choices.length === 0
        ? []
        : [`${collective} here: ${choices.map(({ bytes, way }) => `${formatBytes(bytes)} by ${way}`).join(', ')}.`]),
      'tccl log FILE compares such a log with this plan.',
    ],
    evidence: { nChannels: plan.nChannels, choices },
  };
}
