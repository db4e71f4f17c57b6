import { GdrMode } from '../../topology/paths/gdr.js';
import type { Answer } from './answer.js';
import { answerAbsence } from './answers/absence.js';
import { answerChannels } from './answers/channels.js';
import { answerChoice } from './answers/choice.js';
import { answerConnection } from './answers/connection.js';
import { answerFlips } from './answers/flips.js';
import { answerGdr, answerPxn } from './answers/gdr.js';
import { answerLimits } from './answers/limits.js';
import { answerNic, networkUse } from './answers/nic.js';
import { answerRings } from './answers/rings.js';
import { answerTime } from './answers/time.js';
import type { Question } from './question.js';
import { nodeViews, type Situation } from './situation.js';

/** A question that is answered from what is known of one plan; `what would help` takes other plans. */
export type DirectQuestion = Exclude<Question, { about: 'help' }>;

/**
 * Answers a question about a planned cluster.
 *
 *     const situation = situationOf({ hosts: [{ machine: root, count: 2 }] }, defaultParameters);
 *     const question = parseQuestion('why 16 channels');
 *     if (question !== undefined && question.about !== 'help') explain(situation, question).sentences
 *
 * @throws InvalidArgumentError where the question names a rank, NIC or channel that is not there
 */
export function explain(situation: Situation, question: DirectQuestion): Answer {
  switch (question.about) {
    case 'limits':
      return answerLimits(situation);
    case 'channels':
      return answerChannels(situation, question);
    case 'rings':
      return answerRings(situation, question);
    case 'nic':
      return answerNic(situation, question);
    case 'connection':
      return answerConnection(situation, question);
    case 'choice':
      return answerChoice(situation, question);
    case 'time':
      return answerTime(situation, question);
    case 'absence':
      return answerAbsence(situation, question);
    case 'gdr':
      return answerGdr(situation, question);
    case 'pxn':
      return answerPxn(situation);
    case 'flips':
      return answerFlips(situation, question);
  }
}

/** The questions whose answers say most about a plan: what limits it first, then what is out of the ordinary. */
export function mostTelling(situation: Situation, most = 3): readonly DirectQuestion[] {
  const { plan } = situation;
  const views = nodeViews(situation);
  const collective = 'AllReduce';
  const leaves = (node: number, kindRanks: readonly number[]) =>
    kindRanks.flatMap((local) => networkUse(situation, (plan.nodes.rankBase[node] ?? 0) + local));
  const hasNoGdr = views.some(({ node, kind }) =>
    leaves(node, kind.ranks).some(({ connection }) => connection.gdr === GdrMode.DISABLED),
  );
  const hasSwitch = views.some(({ local }) => local.system.nvSwitches.length > 0);
  const questions: DirectQuestion[] = [{ about: 'limits' }];
  if (hasNoGdr) questions.push({ about: 'gdr', rank: undefined });
  if (hasSwitch && plan.nvls === undefined) questions.push({ about: 'absence', collective, what: { algorithm: 'NVLS' } });
  if (plan.nodes.nRanks > 1) questions.push({ about: 'channels', expected: undefined }, { about: 'flips', collective });
  return questions.slice(0, most);
}
