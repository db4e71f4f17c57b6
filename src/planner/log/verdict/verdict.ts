import type { LogFinding, LogSeverity } from '../checks/finding.js';
import type { Kind } from '../rules/rule.js';

/** Likely causes, the likeliest first. */
export interface Verdict {
  /** Findings above `info` that no other explains, the likeliest cause first. */
  readonly causes: readonly LogFinding[];
  /** Findings above `info` that follow from one of the causes. */
  readonly consequences: readonly LogFinding[];
  /** Remarks. */
  readonly remarks: readonly LogFinding[];
}

/** Root causes come before their consequences, whatever their severity. */
const weights: Readonly<Record<Kind, number>> = {
  fault: 100,
  failure: 80,
  symptom: 60,
  cost: 50,
  risk: 40,
  outcome: 20,
  note: 0,
};
const kindOfSeverity: Readonly<Record<LogSeverity, Kind>> = { error: 'failure', warning: 'cost', info: 'note' };

/** Orders findings by likelihood, and separates causes from their consequences. */
export function verdictOf(findings: readonly LogFinding[]): Verdict {
  const found = sorted(findings.filter(({ severity }) => severity !== 'info'));
  const hasReason = found.some((finding) => ['fault', 'failure'].includes(kindOf(finding)));
  const consequences = found.filter((finding) => {
    const kind = kindOf(finding);
    if (hasReason && (kind === 'symptom' || kind === 'outcome')) return true;
    return found.some(
      (other) =>
        other !== finding && (other.explains ?? []).includes(finding.code) && !(finding.explains ?? []).includes(other.code),
    );
  });
  const causes = found.filter((finding) => !consequences.includes(finding));
  return {
    causes: causes.length > 0 ? causes : found,
    consequences: causes.length > 0 ? consequences : [],
    remarks: findings.filter(({ severity }) => severity === 'info'),
  };
}

/** The likeliest cause first; remarks last. */
export function sortFindings(findings: readonly LogFinding[]): LogFinding[] {
  const { causes, consequences, remarks } = verdictOf(findings);
  return [...causes, ...consequences, ...remarks];
}

function kindOf({ kind, severity }: LogFinding): Kind {
  return kind ?? kindOfSeverity[severity];
}

/** By weight; among equals the earlier one. */
function sorted(findings: readonly LogFinding[]): LogFinding[] {
  const at = ({ places: [first] }: LogFinding) => (first === undefined ? Infinity : first.line);
  return [...findings].sort(
    (a, b) => weights[kindOf(b)] - weights[kindOf(a)] || severityRank(a) - severityRank(b) || at(a) - at(b),
  );
}

function severityRank({ severity }: LogFinding): number {
  return ['error', 'warning', 'info'].indexOf(severity);
}
