import { counted } from '../../../counted.js';
import { excerpt } from '../lines/excerpt.js';
import type { LogFinding } from './finding.js';
import type { LoggedWarning, LogModel } from '../job/model.js';
import { hasEnded, isInitialised, isUntroubled } from '../job/outcome.js';

/** Reports warnings without a rule, and calls that failed without a warning: equal ones once, with the lines around the first. */
export function checkWarnings(model: LogModel): LogFinding[] {
  const unknown = model.warnings.filter(({ source }) => source !== 'returned');
  // In an excerpt, a process that connects after its warning stands for processes without later lines.
  const wentOn = unknown.some((warning) => warning.wentOn) && !unknown.some(({ failed }) => failed) && isUntroubled(model);
  const findings = unknown.map((warning) => unknownWarning(warning, model, wentOn));
  const [returned, ...others] = model.warnings.filter(({ source }) => source === 'returned');
  if (returned !== undefined) findings.push(failedCalls(returned, others.length, model));
  return findings;
}

function unknownWarning(
  { text, source, count, places, ranks, before, after, failed }: LoggedWarning,
  model: LogModel,
  wentOn: boolean,
): LogFinding {
  const isHarmless = !failed && (wentOn || isInitialised(model));
  return {
    code: 'nccl-warning',
    severity: isHarmless ? 'info' : failed ? 'error' : 'warning',
    kind: isHarmless ? 'note' : failed ? 'failure' : 'risk',
    problem: `NCCL warned: '${excerpt(text, 300)}' (${counted(count, 'line')}${ranks.length === 0 ? '' : ` on ${ranks.slice(0, 4).join(', ')}${ranks.length > 4 ? ` and ${ranks.length - 4} more` : ''}`})`,
    cause: isHarmless
      ? `tccl does not know this warning; the job ${wentOn ? 'connected after it' : 'got through init in spite of it'}`
      : 'tccl does not know this warning; the lines around it may say more',
    remedy:
      source === undefined ? "search NCCL's issues for its text" : `search NCCL's issues and source (${source}) for its text`,
    places: places.slice(0, 4),
    quote: excerpt(text, 500),
    context: [...before, `WARN ${excerpt(text, 300)}`, ...after],
  };
}

/** Reports calls that returned an error, if nothing else reports one. */
function failedCalls({ text, ranks, places }: LoggedWarning, others: number, model: LogModel): LogFinding {
  const isHarmless = hasEnded(model);
  return {
    code: 'calls-failed',
    severity: isHarmless ? 'info' : 'error',
    kind: isHarmless ? 'note' : 'symptom',
    problem: `calls of NCCL failed: ${text}${ranks.length === 0 ? '' : ` on ${ranks.slice(0, 4).join(', ')}`}${others > 0 ? `; ${counted(others, 'more kind', 'more kinds')}` : ''}`,
    cause: 'a warning before them says why; where there is none, it was written elsewhere, to stderr or another file',
    remedy: 'give that output too; set NCCL_DEBUG=WARN or INFO for all ranks',
    places: places.slice(0, 4),
  };
}
