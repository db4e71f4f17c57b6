import { LIMIT_S } from './run-job.mjs';

/** @typedef {import('./job.mjs').Job} Job */
/** @typedef {import('./job.mjs').Failure} Failure */
/** @typedef {import('./run-job.mjs').Outcome} Outcome */
/** @typedef {import('./run-job.mjs').Record_} Record_ */

/**
 * Error of a rank that lost another one in this way, as in docs/guides/failures.md.
 *
 * @type {Record<string, { code: string, names: boolean }>}
 */
const promised = {
  SIGKILL: { code: 'RANK_DIED', names: true },
  'exit 3': { code: 'RANK_DIED', names: true },
  throw: { code: 'RANK_DIED', names: true },
  'exit 0': { code: 'CLOSED', names: true },
  close: { code: 'CLOSED', names: true },
  abort: { code: 'ABORTED', names: true },
  mismatch: { code: 'CALL_MISMATCH', names: false },
  detach: { code: 'BUFFER_DETACHED', names: true },
  'stop long': { code: 'TIMEOUT', names: true },
};

/**
 * Texts of broken promises; empty without one.
 *
 * @param {Job} job
 * @param {Outcome} outcome
 * @returns {string[]}
 */
export function judge(job, { code, records, stderr, other }) {
  const found = [];
  const of = (/** @type {number} */ member) => records.filter((record) => record.member === member);
  for (const record of records.filter(({ wrong }) => wrong !== undefined))
    found.push(`rank ${record.member}: ${record['wrong']}`);
  if (code === 124 || code === null) {
    found.push(`not finished after ${LIMIT_S} s`);
    for (let member = 0; member < job.nRanks; member++)
      found.push(`  rank ${member} at last: ${JSON.stringify(of(member).at(-1))}`);
    return found;
  }
  for (const [phase, { failure }] of job.phases.entries()) {
    const here = records.filter((record) => record.phase === phase);
    const late = job.phases.slice(0, phase).flatMap(({ failure: { kind, victim } }) => (kind === 'stop long' ? [victim] : []));
    found.push(
      ...judgePhase(
        failure,
        here.filter(({ member }) => !late.includes(member)),
      ),
      ...judgeLate(late, here),
    );
  }
  const dead = job.phases.flatMap(({ failure, second }) => [
    ...(['SIGKILL', 'exit 0', 'exit 3', 'throw'].includes(failure.kind) ? [failure.victim] : []),
    ...(second === undefined ? [] : [second.victim]),
  ]);
  for (let member = 0; member < job.nRanks; member++) {
    if (of(member).length > 0 && !dead.includes(member) && of(member).at(-1)?.['end'] !== true)
      found.push(`rank ${member} did not come to its end: ${JSON.stringify(of(member).at(-1))}`);
  }
  if (other !== '') found.push(`unexpected output: ${other}`);
  found.push(...judgeLauncher(job, records, code, stderr));
  return found;
}

/** @returns {string[]} */
function judgePhase(/** @type {Failure} */ failure, /** @type {readonly Record_[]} */ records) {
  const found = [];
  /**
   * Progress of a rank: one that waits in an earlier step, in another communicator or kind of call, has not reached that of the
   * others.
   */
  const stepOf = (/** @type {number} */ rank) =>
    Math.max(
      -1,
      ...records.flatMap(({ member, step, doing }) =>
        member !== rank ? [] : doing === 'last barrier' ? [Infinity] : (step ?? []),
      ),
    );
  const furthest = Math.max(...records.map(({ member }) => stepOf(member)));
  // On a busy machine, a limit may end a call before anything has failed.
  const order = stepOf(failure.victim) < failure.step ? 'before' : 'after';
  for (const { member, failed, after } of records) {
    const told = failed ?? after;
    if (told === undefined) continue;
    const problem = judgeError(failure, member === failure.victim, (rank) => stepOf(rank) < furthest, told);
    if (problem !== undefined)
      found.push(
        `rank ${member} ${failed === undefined ? 'in its next call' : 'in its call'}: ${problem}, ${order} ${failure.kind} of rank ${failure.victim}: ${JSON.stringify(told)}`,
      );
  }
  const [first, ...others] = records.flatMap(({ members }) => (members === undefined ? [] : [String(members)]));
  for (const other of others) if (other !== first) found.push(`ranks disagree about who is left: ${first} and ${other}`);
  if (first !== undefined && failure.leaves && first.split(',').includes(String(failure.victim)))
    found.push(`rank ${failure.victim} is among those who are left: ${first}`);
  return found;
}

/**
 * A rank that was stopped too long may have all data of its call, and get the others' error only in its next call.
 *
 * @returns {string[]}
 */
function judgeLate(/** @type {readonly number[]} */ late, /** @type {readonly Record_[]} */ records) {
  return records.flatMap(({ member, failed, after }) => {
    const told = failed ?? after;
    if (told === undefined || !late.includes(member) || (told.code === 'TIMEOUT' && told.ranks?.includes(member))) return [];
    return [`rank ${member} was stopped before, but hears something else than that: ${JSON.stringify(told)}`];
  });
}

/** @returns {string | undefined} */
function judgeError(
  /** @type {Failure} */ failure,
  /** @type {boolean} */ isVictim,
  /** @type {(rank: number) => boolean} */ isBehind,
  /** @type {any} */ { code, about, ranks, message, besides },
) {
  const { kind, victim } = failure;
  // Others have got the failure, and closed a stream or child of these ranks, before this rank made a call
  // that could not complete.
  if (code === 'CLOSED' && besides !== undefined && !besides.includes(victim)) return undefined;
  const expected = promised[kind];
  if (expected === undefined) return 'nothing was to fail';
  if (isVictim) {
    if (kind === 'detach') return code === 'BUFFER_DETACHED' ? undefined : 'not BUFFER_DETACHED';
    if (kind === 'mismatch') return code === 'CALL_MISMATCH' ? undefined : 'not CALL_MISMATCH';
    return undefined;
  }
  if (code !== expected.code) return `not ${expected.code}`;
  if (code === 'TIMEOUT') {
    const innocent = ranks?.find((/** @type {number} */ rank) => rank !== victim && !isBehind(rank));
    return ranks?.length > 0 && innocent === undefined
      ? undefined
      : `it does not name rank ${victim}, nor only ranks that have not come`;
  }
  if (expected.names && about !== victim && !ranks?.includes(victim)) return `rank ${victim} is not named`;
  if (message.includes('undefined')) return 'its message has a hole';
  return undefined;
}

/** @returns {string[]} */
function judgeLauncher(
  /** @type {Job} */ job,
  /** @type {readonly Record_[]} */ records,
  /** @type {number} */ code,
  /** @type {string} */ stderr,
) {
  const shrinks = (/** @type {number} */ rank, /** @type {number} */ phase) =>
    records.some((record) => record.member === rank && record.phase === phase && record['doing'] === 'shrink');
  // In the order in which they failed. Ranks do not shrink after a phase in which nothing failed.
  const failures = job.phases.flatMap(({ failure, second }, phase) => [
    failure,
    ...(second !== undefined && shrinks(second.victim, phase) ? [{ kind: 'SIGKILL', victim: second.victim }] : []),
  ]);
  const first = failures.find(
    ({ kind, victim }) =>
      ['SIGKILL', 'exit 3', 'throw'].includes(kind) &&
      records.some((record) => record.member === victim && (record['failing'] === kind || record['signal'] === kind)),
  );
  if (records.some(({ wrong }) => wrong !== undefined)) return [];
  if (first === undefined) return code === 0 ? [] : [`exit code ${code}, not 0: ${stderr}`];
  const expected = { SIGKILL: 137, 'exit 3': 3, throw: 1 }[first.kind];
  const says =
    first.kind === 'SIGKILL' ? `rank ${first.victim} was killed by SIGKILL` : `rank ${first.victim} exited with code ${expected}`;
  return [
    ...(code === expected ? [] : [`exit code ${code}, not ${expected}: ${stderr}`]),
    ...(job.place === 'threads' || stderr.includes(says) ? [] : [`standard error does not say "${says}": ${stderr}`]),
  ];
}
