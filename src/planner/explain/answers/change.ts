import { InvalidArgumentError, TcclError } from '../../../errors.js';
import { comparePlans, type Difference, type Side } from '../../plan/diff/compare.js';
import { formatBytes, formatTime, formatWay } from '../../plan/overview/format.js';
import { isQuickToPredict } from '../../plan/predicted-calls.js';
import type { PredictedRow } from '../../plan/prediction.js';
import type { ScheduledCollective } from '../../schedule/schedule.js';
import { describeCounterfactual, isAsItIs } from '../counterfactual/apply.js';
import type { Counterfactual } from '../counterfactual/counterfactual.js';
import type { Draft, Evidence } from '../answer.js';
import { list } from '../format.js';
import { predicted, type Situation, situationWith, titleOf } from '../situation.js';
import { usesIn } from './use.js';

/** Calls that are compared unless the question names some. */
const usualCollectives: readonly ScheduledCollective[] = ['AllReduce', 'AllGather', 'AllToAll', 'SendRecv'];
const usualSizes: readonly number[] = [2 ** 16, 2 ** 22, 2 ** 27, 2 ** 30];

/** A call before and after a change. */
export interface ChangedCall {
  readonly collective: ScheduledCollective;
  readonly bytes: number;
  readonly before: PredictedRow;
  readonly after: PredictedRow;
  /** Time after by time before. */
  readonly ratio: number;
}

/** The effect of a change: decisions and times. */
export interface Effect {
  readonly after: Situation;
  /** Decisions that differ, in NCCL's order, without the changed variables themselves. */
  readonly differences: readonly Difference[];
  readonly calls: readonly ChangedCall[];
}

/** Smallest relative difference of times that counts. */
const LEAST_CHANGE = 0.005;
/** Decisions that are named. */
const MOST_DECISIONS = 5;

/** Explains the effect of changes: the plan and the times with them and without. */
export function answerChange(
  situation: Situation,
  named: readonly Counterfactual[],
  asked: ScheduledCollective | undefined,
  sizes: readonly number[],
): Draft {
  const news = named.filter((change) => !isAsItIs(situation, change));
  const changes = news.length === 0 ? named : news;
  const what = list(changes.map(describeCounterfactual));
  const evidence = { changes: changes.map((change): Evidence => ({ ...change })) };
  if (named.length > 0 && news.length === 0)
    return {
      title: `${what}: it is so already`,
      sentences: [`${titleOf(situation)} is planned with ${what} as it is, so nothing changes.`],
      evidence,
    };
  let effect: Effect;
  try {
    effect = effectOf(situation, situationWith(situation, changes), asked, sizes);
  } catch (error) {
    if (!(error instanceof TcclError)) throw error;
    if (error instanceof InvalidArgumentError)
      return { title: `${what}: not on this machine`, sentences: [`It cannot be planned: ${error.message}.`], evidence };
    return {
      title: `${what}: NCCL fails`,
      sentences: [`With ${what} NCCL makes no communicator: ${error.message}.`],
      evidence: { ...evidence, refused: error.message },
    };
  }
  return {
    title: `with ${what}, ${headline(effect, asked)}`,
    sentences: [
      ...callSentences(effect, 'with', 'without'),
      ...decisionSentences(effect.differences),
      ...(effect.calls.every(isSame) && effect.differences.length === 0
        ? ['The plan is the same, and so are the simulated times.', ...withoutEffect(situation, effect.after, changes)]
        : []),
      ...reasons(changes),
      ...cautions(changes),
    ],
    evidence: { ...evidence, ...effectEvidence(effect) },
  };
}

/** Compares a situation with a changed one. */
export function effectOf(
  before: Situation,
  after: Situation,
  asked: ScheduledCollective | undefined,
  sizes: readonly number[],
): Effect {
  const wanted = sizes.length === 0 ? usualSizes : sizes;
  const nRanks = Math.max(before.plan.nodes.nRanks, after.plan.nodes.nRanks);
  const collectives =
    asked !== undefined ? [asked] : isQuickToPredict(nRanks, 2 * wanted.length) ? usualCollectives : usualCollectives.slice(0, 1);
  const calls = collectives.flatMap((collective) =>
    wanted.flatMap((bytes): ChangedCall[] => {
      const [one, other] = [predicted(before, collective, bytes), predicted(after, collective, bytes)];
      return one === undefined || other === undefined
        ? []
        : [{ collective, bytes, before: one, after: other, ratio: other.timeUs / one.timeUs }];
    }),
  );
  const { differences } = comparePlans(sideOf(before), sideOf(after), []);
  return { after, calls, differences: differences.filter(({ section }) => section !== 'parameters') };
}

function sideOf(situation: Situation): Side {
  return { title: titleOf(situation), plan: situation.plan, systems: situation.systems, simulated: situation.simulated };
}

export function isSame({ ratio, before, after }: ChangedCall): boolean {
  return Math.abs(ratio - 1) < LEAST_CHANGE && formatWay(before.choice) === formatWay(after.choice);
}

/** The effect on the largest call, and on the one that changes most if that is of another collective. */
function headline({ calls }: Effect, asked: ScheduledCollective | undefined): string {
  const changed = calls.filter((call) => Math.abs(call.ratio - 1) >= LEAST_CHANGE);
  const [most] = [...changed].sort((a, b) => Math.abs(Math.log(b.ratio)) - Math.abs(Math.log(a.ratio)));
  if (most === undefined) return 'no call takes another time';
  const largest = changed.filter(({ collective }) => collective === (asked ?? 'AllReduce')).at(-1) ?? most;
  const shown = largest.collective === most.collective ? [largest] : [largest, most];
  return list(shown.map(({ collective, bytes, ratio }) => `${collective} of ${formatBytes(bytes)} ${changeText(ratio)}`));
}

/** `is 1.21 times slower`, `is 1.8 times faster`. */
export function changeText(ratio: number): string {
  if (Math.abs(ratio - 1) < LEAST_CHANGE) return 'takes the same time';
  const factor = ratio > 1 ? ratio : 1 / ratio;
  const text = factor < 1.1 ? `${((factor - 1) * 100).toFixed(1)} %` : `${factor.toFixed(2)} times`;
  return `is ${text} ${ratio > 1 ? 'slower' : 'faster'}`;
}

/** One sentence a collective: the sizes at which its time changes. */
export function callSentences({ calls }: Effect, withIt: string, withoutIt: string): string[] {
  const same: string[] = [];
  const sentences = [...new Set(calls.map(({ collective }) => collective))].flatMap((collective) => {
    const own = calls.filter((call) => call.collective === collective);
    const changed = own.filter((call) => !isSame(call));
    if (changed.length === 0) {
      same.push(`${collective} of ${list(own.map(({ bytes }) => formatBytes(bytes)))}`);
      return [];
    }
    const parts = changed.map(({ bytes, before, after, ratio }) => {
      const ways = [before.choice, after.choice].map((choice) => (choice === undefined ? '' : ` by ${formatWay(choice)}`));
      const way = ways[0] === ways[1] ? (ways[0] ?? '') : `${ways[0] ?? ''} -> ${ways[1]?.replace(' by ', '') ?? ''}`;
      return `${formatBytes(bytes)} ${formatTime(before.timeUs)} -> ${formatTime(after.timeUs)} (${changeText(ratio).replace('is ', '').replace('takes the ', '')}${way})`;
    });
    return [`${collective}, ${withoutIt} -> ${withIt}: ${parts.join(', ')}.`];
  });
  return [...sentences, ...(same.length === 0 ? [] : [`No change of time: ${same.join('; ')}.`])];
}

/** The decisions that change, the first ones in full. */
export function decisionSentences(differences: readonly Difference[]): string[] {
  // Hosts and their hardware are what the change is, or have no counterpart on the other side.
  const decisive = differences.filter(
    ({ section, a, b }) => !['hosts', 'tuning', 'chunks'].includes(section) && a !== '-' && b !== '-',
  );
  const shown = decisive.slice(0, MOST_DECISIONS).map(({ what, a, b }) => `${what} ${shortened(a)} -> ${shortened(b)}`);
  const more = decisive.length - shown.length;
  if (shown.length === 0) return [];
  return [`Decisions that change: ${shown.join('; ')}${more > 0 ? `; and ${more} more (tccl diff lists all)` : ''}.`];
}

function shortened(text: string): string {
  return text.length <= 60 ? text : `${text.slice(0, 57)}...`;
}

/** Features by the variables that switch them. */
const switched: Readonly<Record<string, string>> = {
  NCCL_COLLNET_ENABLE: 'CollNet',
  NCCL_NVLS_ENABLE: 'NVLS',
  NCCL_PXN_DISABLE: 'PXN',
  NCCL_P2P_DISABLE: 'P2P',
  NCCL_P2P_LEVEL: 'P2P',
  NCCL_SHM_DISABLE: 'SHM',
};

/** The use of a feature that was switched without effect. */
function withoutEffect(before: Situation, after: Situation, changes: readonly Counterfactual[]): string[] {
  const names = changes.flatMap((change) => (change.kind === 'variable' ? [switched[change.name] ?? ''] : []));
  const unused = usesIn(before).filter(({ name, used }) => names.includes(name) && used === 'no');
  const sentences = unused.map(({ name, text }) => `${name} is not used as it is, either: ${text}.`);
  if (sentences.length > 0 && changes.every((change) => change.kind === 'variable' && change.value === '0')) return sentences;
  return usesIn(after)
    .filter(({ name }) => names.includes(name))
    .map(({ name, used, text }) => `${name} then: ${used}, ${text}.`);
}

/** Meaning of a change for the way of the data, where people ask which of two is better. */
function reasons(changes: readonly Counterfactual[]): string[] {
  return changes.some((change) => change.kind === 'variable' && change.name === 'NCCL_P2P_DISABLE' && change.value === '1')
    ? [
        'With P2P, a GPU writes into the memory of the other one. Without, data pass through memory of the host (SHM): written there by one GPU and read by the other, which loads PCIe, the CPU’s memory and, between sockets, their link.',
        'Copies between GPUs below different CPUs (SYS), or with ACS or an IOMMU on, can be slower than the simulation has it, even slower than SHM: p2pBandwidthLatencyTest or nvbandwidth measures it. NCCL_P2P_LEVEL (PIX, PXB, PHB) then keeps P2P to near pairs.',
      ]
    : [];
}

function cautions(changes: readonly Counterfactual[]): string[] {
  const forcesLl128 = changes.some(
    (change) =>
      change.kind === 'variable' &&
      change.name === 'NCCL_PROTO' &&
      change.value !== null &&
      (change.value.startsWith('^') ? !/\bll128\b/i.test(change.value) : /\bll128\b/i.test(change.value)),
  );
  return forcesLl128
    ? [
        'Beware: NCCL leaves LL128 out where a path may tear its 128 bytes apart, and requested by name it is used nevertheless; results can then be wrong.',
      ]
    : [];
}

export function effectEvidence({ calls, differences }: Effect): { readonly [name: string]: Evidence } {
  return {
    calls: calls.map(({ collective, bytes, before, after, ratio }) => ({
      collective,
      bytes,
      beforeUs: before.timeUs,
      afterUs: after.timeUs,
      ratio,
      wayBefore: before.choice === undefined ? 'pairs' : formatWay(before.choice),
      wayAfter: after.choice === undefined ? 'pairs' : formatWay(after.choice),
    })),
    differences: differences.map(({ section, what, a, b }) => ({ section, what, a, b })),
  };
}
