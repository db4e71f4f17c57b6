import { waysOf, type Fault, type Job } from './program.js';
import { limits, type Outcome, type RankProgram } from './rank-program.js';

/** Time beyond its limit that a call may take: other ranks' reports arrive, and connections end. */
export const SLACK_MS = 8000;

/** Time that the faults of a job add to waits, in milliseconds. */
export function waitedMs(faults: readonly Fault[]): number {
  return faults.reduce((sum, fault) => {
    if (fault.kind === 'late') return sum + fault.byMs;
    if (fault.kind === 'slow') return sum + fault.factor * 60;
    return 'forMs' in fault && fault.forMs < 1e9 ? sum + fault.forMs : sum;
  }, 0);
}

/** Promises of the documentation that the living ranks of a job did not get. */
export function brokenPromises(job: Job, living: readonly RankProgram[], end: 'over' | 'nothing left' | 'limit'): string[] {
  const broken = living.flatMap((program) => program.broken);
  if (end !== 'over')
    for (const { isDone, current, rank } of living)
      if (!isDone)
        broken.push(
          `rank ${rank} hangs in ${current?.name ?? 'nothing'} since ${(current?.beginMs ?? 0).toFixed(0)} ms (${end})`,
        );
  const extraMs = SLACK_MS + waitedMs(job.faults);
  for (const { rank, spans } of living)
    for (const { name, beginMs, endMs, limitMs } of spans)
      if (endMs !== undefined && endMs - beginMs > limitMs + extraMs)
        broken.push(`rank ${rank} waited ${(endMs - beginMs).toFixed(0)} ms in ${name}, whose limit is ${limitMs} ms`);
  const harmful = job.faults.filter((fault) => !isHarmless(fault));
  const [fault] = harmful;
  if (fault === undefined)
    for (const { rank, outcome } of living) {
      if (outcome !== undefined) broken.push(`rank ${rank} failed without a reason: ${outcome.text}`);
    }
  else if (harmful.length === 1 && end === 'over') broken.push(...checkCause(job, fault, living), ...checkRest(fault, living));
  return broken;
}

/** True if a job must end in order in spite of a fault. */
function isHarmless(fault: Fault): boolean {
  switch (fault.kind) {
    case 'stranger':
      return true;
    case 'slow':
      return fault.factor <= 10;
    case 'late':
      return fault.byMs < limits.initMs / 2;
    case 'stop':
      return fault.forMs < limits.callMs / 2;
    default:
      return false;
  }
}

/** The error of each rank names what happened. */
function checkCause(job: Job, fault: Fault, living: readonly RankProgram[]): string[] {
  return living.flatMap(({ rank, outcome: own, survived }) => {
    // A rank whose child ended because another rank had closed it revokes the communicator; the others name that rank.
    const outcome =
      fault.kind === 'reset' && own?.code === 'REVOKED' ? living.find((one) => own.ranks.includes(one.rank))?.outcome : own;
    if (outcome === undefined || (fault.kind === 'crash' && survived === undefined) || isCause(job, fault, rank, outcome))
      return [];
    return [`rank ${rank} does not name ${JSON.stringify(fault)}: ${outcome.code} ${outcome.text}`];
  });
}

function isCause(job: Job, fault: Fault, rank: number, { code, text, ranks }: Outcome): boolean {
  const isOf = (one: number): boolean => rank === one || ranks.includes(one);
  const isLimit = code === 'TIMEOUT' || code === 'RANK_MISSING';
  switch (fault.kind) {
    case 'crash':
      return code === 'RANK_DIED' && text.includes(`rank ${fault.rank}`);
    case 'odd call': {
      const [odd, ...rest] = job.calls.slice(fault.call);
      const both = new Set([odd?.kind, fault.makes]);
      // The group's first call is that all-reduce: the ranks differ in the next one, and where there is none, one closes.
      if (both.has('group') && both.has('allReduce') && rest.length === 0) return code === 'CLOSED' || code === 'CALL_MISMATCH';
      if (!both.has('ring')) return code === 'CALL_MISMATCH';
      // A message does not meet a collective: the ranks wait for one another, and one that has its last messages closes.
      return code === 'CALL_MISMATCH' || isLimit || (code === 'CLOSED' && rest.every(({ kind }) => kind === 'ring'));
    }
    case 'stop':
      // When it goes on, the others may have ended.
      return rank === fault.rank || (isLimit && (isOf(fault.rank) || waitsInChild(job, fault.rank, ranks, text)));
    case 'late':
      // A late rank finds nobody, and without rank 0 nobody meets.
      return isLimit && (isOf(fault.rank) || fault.rank === 0);
    case 'slow':
      return true;
    case 'partition':
      // Ranks that are connected may call while the two still dial.
      return code === 'RANK_DIED' || code === 'NETWORK' || (isLimit && waysOf(job, fault).some((ends) => ends.some(isOf)));
    case 'reset':
      // While ranks meet, a lost connection is one that is dialled again; at the end, the other rank may close first.
      return code === 'RANK_DIED' || code === 'NETWORK' || code === 'CLOSED' || isLimit;
    case 'stranger':
      return false;
  }
}

/** True if an error names a rank that waits for `rank` in a child: such a rank counts as missing in the parent. */
function waitsInChild(job: Job, rank: number, named: readonly number[], text: string): boolean {
  const isSibling = (one: number): boolean => one % 2 === rank % 2;
  return job.calls.some(({ kind }) => kind === 'split') && text.includes('last call split') && named.some(isSibling);
}

/** After a crash, and after calls that did not match, those that are left go on together. */
function checkRest(fault: Fault, living: readonly RankProgram[]): string[] {
  if (fault.kind !== 'crash' && fault.kind !== 'odd call') return [];
  if (living.some(({ survived }) => survived === undefined)) return [];
  return living.flatMap(({ rank, survived }) => {
    if (survived === living.length || survived === undefined) return [];
    const got = typeof survived === 'number' ? `${survived} ranks` : `${survived.code} ${survived.text}`;
    return [`rank ${rank} did not go on with ${living.length} ranks, but: ${got}`];
  });
}
