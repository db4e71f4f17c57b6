import { expect, it } from 'vitest';
import { drawJob } from '../../../bench/soak/job.mjs';
import { judge } from '../../../bench/soak/judge.mjs';

it.each([
  [0, 'before'],
  [1, 'after'],
])('a call that fails while the victim is in step %i is told to fail %s its mismatch in step 1', (step, order) => {
  const [phase] = drawJob(94005).phases;
  const failure = { ...phase!.failure, kind: 'mismatch', step: 1, victim: 1 };
  const job = { ...drawJob(94005), nRanks: 2, phases: [{ ...phase!, failure }] };
  const failed = { code: 'TIMEOUT', ranks: [1] };
  const records = [
    { member: 0, phase: 0, step: 0, doing: 'window' },
    { member: 1, phase: 0, step, doing: 'window' },
    { member: 0, phase: 0, failed },
  ];
  expect(judge(job, { code: 0, records, stderr: '', other: '' })).toContain(
    `rank 0 in its call: not CALL_MISMATCH, ${order} mismatch of rank 1: ${JSON.stringify(failed)}`,
  );
});
