import { GdrMode } from '../../topology/paths/gdr.js';
import type { ScheduledCollective } from '../../schedule/schedule.js';
import { type Collective, collectives } from '../../tuning/names.js';
import type { Answer } from './answer.js';
import { answerAbsence } from './answers/absence.js';
import { answerChannels } from './answers/channels.js';
import { answerChoice } from './answers/choice.js';
import { answerConnection } from './answers/connection.js';
import { answerFlips } from './answers/flips.js';
import { answerGdr, answerPxn } from './answers/gdr.js';
import { answerLimits } from './answers/limits.js';
import { answerNic, networkUse } from './answers/nic.js';
import { answerPairChannels, answerPairLimits } from './answers/pairs.js';
import { answerRails } from './answers/rails.js';
import { answerRings } from './answers/rings.js';
import { answerTime } from './answers/time.js';
import { answerVariable } from './answers/variable.js';
import type { Question } from './question.js';
import { nodeViews, type Situation } from './situation.js';

/** A question that one plan answers; `what would help` takes other plans. */
export type DirectQuestion = Exclude<Question, { about: 'help' }>;

/**
 * Answers a question about a planned cluster.
 *
 *     const situation = situationOf({ hosts: [{ machine: root, count: 2 }] }, defaultParameters);
 *     const question = parseQuestion('why 16 channels');
 *     if (question !== undefined && question.about !== 'help') explain(situation, question).sentences
 *
 * @throws InvalidArgumentError where the question names a rank, NIC or channel that does not exist
 */
export function explain(situation: Situation, question: DirectQuestion): Answer {
  switch (question.about) {
    case 'limits':
      return isPairs(question.collective)
        ? answerPairLimits(situation, question.collective, question.bytes ?? LIMIT_BYTES)
        : answerLimits(situation, question.collective);
    case 'channels':
      return question.ofPairs === true ? answerPairChannels(situation, question.expected) : answerChannels(situation, question);
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
    case 'rails':
      return answerRails(situation);
    case 'variable':
      return answerVariable(situation, question);
  }
}

/** A size at which bandwidth decides. */
const LIMIT_BYTES = 2 ** 30;

/** True if NCCL carries it out by messages between pairs of ranks. */
function isPairs(collective: ScheduledCollective | undefined): collective is Exclude<ScheduledCollective, Collective> {
  return collective !== undefined && !(collectives as readonly string[]).includes(collective);
}

/** The questions whose answers are most informative about a plan: its limits first, then its peculiarities. */
export function mainQuestions(situation: Situation, most = 3): readonly DirectQuestion[] {
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
