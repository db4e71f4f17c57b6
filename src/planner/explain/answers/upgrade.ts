import { counted } from '../../../counted.js';
import { comparePlans } from '../../plan/diff/compare.js';
import { describeEffect } from '../../plan/diff/effect-text.js';
import { ruleEffects } from '../../plan/diff/attribute.js';
import { formatBytes, formatTime } from '../../plan/overview/format.js';
import { isQuickToPredict, pairCollectives } from '../../plan/predicted-calls.js';
import type { ScheduledCollective } from '../../schedule/schedule.js';
import { compareVersions } from '../../versions/version.js';
import { rulesBetween } from '../../versions/describe.js';
import type { Draft } from '../answer.js';
import { type Situation, situationWith } from '../situation.js';
import { type ChangedCall, changeText, effectEvidence, effectOf } from './change.js';

/** Sizes of the calls that are compared. */
const sizes: readonly number[] = [2 ** 16, 2 ** 22, 2 ** 25, 2 ** 28, 2 ** 31, 2 ** 34];
const comparedCollectives: readonly ScheduledCollective[] = ['AllReduce', 'AllGather', 'ReduceScatter', 'AllToAll', 'SendRecv'];
/** Rules that are described. */
const MOST_RULES = 6;

/** Explains what another version of NCCL changes on the cluster: calls, and the rules behind. */
export function answerUpgrade(situation: Situation, versions: readonly string[], asked: ScheduledCollective | undefined): Draft {
  const own = situation.parameters.ncclVersion;
  const [one = own, other = own] = versions.length > 1 ? versions : [versions[0], own];
  const [from, to] = compareVersions(one, other) <= 0 ? [one, other] : [other, one];
  if (from === to)
    return {
      title: `the plan is that of NCCL ${from} already`,
      sentences: ['Name the version to compare with, as in: what changed between 2.21 and 2.27.'],
      evidence: { from, to },
    };
  const at = (nccl: string) => (nccl === own ? situation : situationWith(situation, [{ kind: 'version', nccl }]));
  const [before, after] = [at(from), at(to)];
  const names = asked === undefined ? comparedCollectives : [asked];
  const calls = isQuickToPredict(before.plan.nodes.nRanks, 2 * sizes.length)
    ? names.flatMap((name) => effectOf(before, after, name, sizes).calls)
    : [];
  const changed = calls.filter(({ ratio }) => Math.abs(ratio - 1) >= 0.005);
  const comparison = comparePlans(
    { title: from, plan: before.plan, systems: before.systems },
    { title: to, plan: after.plan, systems: after.systems },
    sizes,
  );
  const { cluster, parameters, graphFile } = situation;
  const rules = rulesBetween(from, to);
  const effects =
    comparison.differences.length === 0 && comparison.costs.length === 0 && changed.length === 0
      ? []
      : ruleEffects({
          cluster,
          parameters: { ...parameters, ncclVersion: from },
          from,
          to,
          sizes,
          calls: changed.filter(({ collective }) => (pairCollectives as readonly string[]).includes(collective)),
          ...(graphFile === undefined ? {} : { options: { graphFile } }),
        });
  const texts = effects.map(describeEffect);
  return {
    title:
      changed.length === 0
        ? `from NCCL ${from} to ${to} no call takes another time by the simulation`
        : `from NCCL ${from} to ${to} ${headline(changed)}`,
    sentences: [
      ...comparedSentences(changed),
      ...(texts.length === 0
        ? [
            `None of the ${counted(rules.length, 'rule')} that change decides differently here: look at kernels, drivers and the network plugin.`,
          ]
        : [
            `${texts.length} of the ${counted(rules.length, 'rule')} that change decide differently here.`,
            ...texts
              .slice(0, MOST_RULES)
              .flatMap(({ rules: ofEffect, changes }) =>
                ofEffect.map(
                  ({ name, about, before: was, after: is }) =>
                    `${name}: ${withoutEnd(about)}: ${withoutEnd(was)} -> ${withoutEnd(is)}. ${changes.slice(0, 2).join('; ')}.`,
                ),
              ),
            ...(texts.length > MOST_RULES
              ? [`And ${texts.length - MOST_RULES} more: tccl upgrade CLUSTER --from ${from} --to ${to}.`]
              : []),
          ]),
    ],
    evidence: {
      from,
      to,
      rules: effects.flatMap(({ rules: ofEffect }) => ofEffect.map(({ name }) => name)),
      calls: effectEvidence({ after, differences: [], calls: changed })['calls'] ?? [],
    },
  };
}

function withoutEnd(text: string): string {
  return text.replace(/\.$/, '');
}

/** The largest change, for better or worse. */
function headline(changed: readonly ChangedCall[]): string {
  const [most] = [...changed].sort((a, b) => Math.abs(Math.log(b.ratio)) - Math.abs(Math.log(a.ratio)));
  return most === undefined ? '' : `${most.collective} of ${formatBytes(most.bytes)} ${changeText(most.ratio)}`;
}

function comparedSentences(changed: readonly ChangedCall[]): string[] {
  return [...new Set(changed.map(({ collective }) => collective))].map((collective) => {
    const parts = changed
      .filter((call) => call.collective === collective)
      .map(
        ({ bytes, before, after, ratio }) =>
          `${formatBytes(bytes)} ${formatTime(before.timeUs)} -> ${formatTime(after.timeUs)} (${changeText(ratio).replace('is ', '')})`,
      );
    return `${collective}: ${parts.join(', ')}.`;
  });
}
