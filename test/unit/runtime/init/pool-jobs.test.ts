import { closeSync, readSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { PoolJobs } from '../../../../src/runtime/init/pool-jobs.js';
import { loadLibc } from '../../../../src/runtime/device/libc.js';
import { inodeOf, noRanks, ParkedRanks } from '../../../../src/runtime/device/parked-ranks.js';
import { createMemory } from '../../../../src/runtime/device/shared-memory.js';

test('a rank whose function returns wakes the parked ranks that wait for it', () => {
  const { libc, reason } = loadLibc();
  if (libc === undefined) throw new Error(reason);
  const { readEnd, writeEnd } = libc.pipe();
  onTestFinished(() => {
    closeSync(readEnd);
    closeSync(writeEnd);
  });
  const memory = createMemory(64);
  const place = { launcher: 'threads', nRanks: 2, nLocalRanks: 2, commId: '', memory } as const;
  const jobs = [0, 1].map((rank) => new PoolJobs({ ...place, rank }));
  const awaited = noRanks();
  awaited[0] = 1 << 1;
  for (const job of jobs) job.begin(1);
  new ParkedRanks(memory, 0, 2).register({ fd: writeEnd, pid: process.pid, inode: inodeOf(writeEnd) }, awaited);
  jobs[1]!.returned(1);
  expect(readSync(readEnd, new Uint8Array(8))).toBe(1);
});
