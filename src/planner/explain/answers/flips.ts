import { counted } from '../../../counted.js';
import { choose } from '../../tuning/choose.js';
import { flips } from '../../tuning/flips.js';
import { type Collective, collectives } from '../../tuning/names.js';
import { formatBytes, formatWay } from '../../plan/overview/format.js';
import type { Draft } from '../answer.js';
import type { Situation } from '../situation.js';
import { wayEvidence } from './choice.js';

const LEAST_BYTES = 8;
const MOST_BYTES = 2 ** 34;

/** Largest ratio of two sizes that are near each other. */
const NEAR = 4;

/** Lists the sizes at which NCCL changes to another algorithm or protocol, and says whether one is near a size. */
export function answerFlips(situation: Situation, collective: Collective | undefined, near?: number): Draft {
  const asked: readonly Collective[] = collective === undefined ? [...collectives].reverse() : [collective];
  const found = asked.map((each) => ({
    collective: each,
    first: choose(situation.tuning, each, LEAST_BYTES) ?? null,
    flips: flips(situation.tuning, each, LEAST_BYTES, MOST_BYTES),
  }));
  return {
    title: `the choice changes at ${counted(
      found.reduce((sum, each) => sum + each.flips.length, 0),
      'size',
    )}`,
    sentences: [
      ...(near === undefined ? [] : [nearText(situation, collective ?? 'AllReduce', near)]),
      ...found.map((each) => {
        const start = `${each.collective}: ${formatWay(each.first)}`;
        if (each.flips.length === 0)
          return `${start} at all sizes from ${formatBytes(LEAST_BYTES)} to ${formatBytes(MOST_BYTES)}.`;
        return `${start} up to ${each.flips.map(({ bytes, to }) => `${formatBytes(bytes)} (${bytes}), then ${formatWay(to)}`).join(' up to ')}.`;
      }),
    ],
    evidence: {
      fromBytes: LEAST_BYTES,
      toBytes: MOST_BYTES,
      collectives: found.map((each) => ({
        collective: each.collective,
        first: wayEvidence(each.first),
        flips: each.flips.map(({ bytes, from, to }) => ({ bytes, from: wayEvidence(from), to: wayEvidence(to) })),
      })),
    },
  };
}

/** True changes of the choice near a size explain a step in a curve there. */
function nearText({ tuning }: Situation, collective: Collective, size: number): string {
  const changes = flips(tuning, collective, LEAST_BYTES, MOST_BYTES).filter(
    ({ bytes }) => bytes <= size * NEAR && size <= bytes * NEAR,
  );
  return changes.length === 0
    ? `Around ${formatBytes(size)} ${collective} keeps ${formatWay(choose(tuning, collective, size) ?? null)}: a dip there is no change of algorithm or protocol. Repeat it with more iterations; then caches, buffers of switches, or another flow in the network are likelier.`
    : `Near ${formatBytes(size)} ${collective} changes ${changes.map(({ bytes, from, to }) => `from ${formatWay(from)} to ${formatWay(to)} at ${formatBytes(bytes)}`).join(' and ')}: a step in the curve there is that change. NCCL_ALGO or NCCL_PROTO of the other one shows whether the change comes too early or too late on this machine.`;
}
