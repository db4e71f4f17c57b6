import { counted } from '../../../counted.js';
import { hostOfFile } from '../job/hosts.js';
import { byGids } from './gids.js';
import type { LogFinding, LogSeverity } from './finding.js';
import { hasEnded, isCaught, isInitialised, isOnOneHost, isOutlived } from '../job/outcome.js';
import type { LogModel } from '../job/model.js';
import type { LogPlace } from '../lines/line.js';
import type { ApartHit, RuleHit } from '../matching/rule-matcher.js';
import type { Kind, LineRule } from '../rules/rule.js';

const severities: Readonly<Record<Kind, LogSeverity>> = {
  fault: 'error',
  failure: 'error',
  symptom: 'error',
  cost: 'warning',
  risk: 'warning',
  outcome: 'error',
  note: 'info',
};
const NAMES_SHOWN = 4;

/** Findings from single lines: one for each code, however many ranks wrote it. */
export function checkLines(model: LogModel): LogFinding[] {
  const outlived = isOutlived(model);
  const caught = isCaught(model);
  const byCode = new Map<string, RuleHit[]>();
  for (const hit of model.hits) {
    if (hit.rule.isSilent === true) continue;
    const key = `${hit.rule.code} ${isSurvived(hit, outlived) || (caught && hit.rule.isCatchable === true) ? 'survived' : ''}`;
    byCode.set(key, [...(byCode.get(key) ?? []), hit]);
  }
  return [...byCode]
    .flatMap(([key, hits]) => {
      const [first, ...others] = [...hits].sort((a, b) => kinds.indexOf(a.rule.kind) - kinds.indexOf(b.rule.kind));
      return first === undefined ? [] : [byGids(finding(first, others, model, key.endsWith(' survived')), model)];
    })
    .concat(model.apart.filter(({ hit }) => hit.rule.isSilent !== true).map((each) => remarkOf(each, model)));
}

/** A line of the kernel of another time or host. */
function remarkOf({ hit, reason }: ApartHit, model: LogModel): LogFinding {
  const plain = finding(hit, [], model, false);
  return {
    ...plain,
    severity: 'info',
    kind: 'note',
    problem: `${plain.problem}, ${reason}`,
    cause: `${plain.cause}; it is no sign of what happened to this job`,
    explains: [],
  };
}

/** True for lines after which all ranks of their files completed init in spite of them. */
function isSurvived({ rule, lastLines }: RuleHit, outlived: (place: LogPlace) => boolean): boolean {
  return (
    rule.lasts !== true &&
    ['fault', 'failure', 'symptom'].includes(rule.kind) &&
    [...lastLines].every(([file, line]) => outlived({ file, line }))
  );
}

const kinds: readonly Kind[] = ['fault', 'failure', 'cost', 'risk', 'symptom', 'outcome', 'note'];

function finding(first: RuleHit, others: readonly RuleHit[], model: LogModel, isSurvived: boolean): LogFinding {
  const { rule, matches, text } = first;
  const all = [first, ...others];
  const count = all.reduce((sum, hit) => sum + hit.count, 0);
  const who = [...new Set([...all.flatMap((hit) => hit.who), ...hostsOf(all, model)])];
  const severity = isSurvived ? 'info' : severityOf(rule, model);
  const names =
    who.length === 0
      ? ''
      : ` on ${who.slice(0, NAMES_SHOWN).join(', ')}${who.length > NAMES_SHOWN ? ` and ${who.length - NAMES_SHOWN} more` : ''}`;
  return {
    code: rule.code,
    severity,
    kind: severity === 'info' ? 'note' : rule.kind,
    problem: `${filled(rule.problem, matches[0]?.groups ?? [])} (${counted(count, 'line')}${names})`,
    cause: isSurvived
      ? `${rule.cause}; but ${rule.isCatchable === true ? 'the program went on' : 'all ranks completed init'} after it`
      : rule.cause,
    remedy: rule.remedy,
    quote: text,
    places: all.flatMap((hit) => hit.matches.map(({ place }) => place)).slice(0, 8),
    explains: [...new Set(all.flatMap((hit) => hit.rule.explains ?? []))],
    ...(rule.source === undefined ? {} : { source: rule.source }),
  };
}

/** Hosts and pods that the lines, the headings or the names of their files name. */
function hostsOf(hits: readonly RuleHit[], model: LogModel): string[] {
  return hits
    .flatMap(({ matches }) => matches)
    .map(({ host, place }) => (host === '' ? hostOfFile(place.file, model) : host))
    .filter((host) => host !== '');
}

/** A line that would explain a failed job is a remark in one that succeeded. */
function severityOf(rule: LineRule, model: LogModel): LogSeverity {
  if (rule.network === true && isOnOneHost(model)) return 'info';
  if (rule.kind === 'risk' && isInitialised(model)) return 'info';
  if ((rule.kind === 'symptom' || rule.kind === 'outcome') && hasEnded(model)) return 'info';
  return severities[rule.kind];
}

/** A rule's text with the groups of its pattern; text in brackets is left out if its group is empty. */
function filled(text: string, groups: readonly string[]): string {
  const group = (number: string) => groups[Number(number) - 1]?.trim() ?? '';
  return text
    .replaceAll(/\[([^\]]*\$\d[^\]]*)\]/g, (_, part: string) =>
      [...part.matchAll(/\$(\d)/g)].every(([, number = '']) => group(number) !== '') ? part : '',
    )
    .replaceAll(/\$(\d)/g, (_, number: string) => group(number))
    .trimEnd();
}
