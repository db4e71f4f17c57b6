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

/** Lists the sizes at which NCCL changes to another algorithm or protocol. */
export function answerFlips(situation: Situation, collective: Collective | undefined): Draft {
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
    sentences: found.map((each) => {
      const start = `${each.collective}: ${formatWay(each.first)}`;
      if (each.flips.length === 0) return `${start} at all sizes from ${formatBytes(LEAST_BYTES)} to ${formatBytes(MOST_BYTES)}.`;
      return `${start} up to ${each.flips.map(({ bytes, to }) => `${formatBytes(bytes)} (${bytes}), then ${formatWay(to)}`).join(' up to ')}.`;
    }),
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
