import { expect, it } from 'vitest';
import { RollCall } from '../../../../src/runtime/bootstrap/roll-call.js';
import type { Arrival } from '../../../../src/runtime/bootstrap/roll-call.js';

let instances = 0;
function checkIn(rank: number, changes: Partial<Arrival> = {}): Arrival {
  return {
    rank,
    nRanks: 4,
    version: '1.0.0',
    instance: `instance ${instances++}`,
    answerAddress: '127.0.0.1:1',
    peerAddress: '127.0.0.1:2',
    hostname: 'host7',
    pid: 100 + rank,
    processHash: 'abc',
    source: '127.0.0.1',
    remainingMs: 1000,
    ...changes,
  };
}

function rollOf(...checkIns: Arrival[]): RollCall {
  const roll = new RollCall();
  for (const one of checkIns) roll.add(one);
  return roll;
}

it('is complete without conflict when each rank has checked in once', () => {
  const roll = rollOf(checkIn(2), checkIn(0), checkIn(3));
  expect(roll.isFull).toBe(false);
  roll.add(checkIn(1));
  expect(roll.isFull).toBe(true);
  expect(roll.hasConflict).toBe(false);
  expect(roll.conflict()).toBeUndefined();
});

it('counts a repeated check-in once', () => {
  const again = checkIn(1);
  const roll = rollOf(again, checkIn(0));
  expect(roll.add({ ...again })).toBe(false);
  expect(roll.hasConflict).toBe(false);
});

it('names the ranks that checked in twice, and their processes', () => {
  const roll = rollOf(checkIn(1), checkIn(0), checkIn(1, { pid: 999, hostname: 'host8', processHash: 'def' }));
  expect(roll.hasConflict).toBe(true);
  expect(roll.conflict()).toMatchObject({
    code: 'RANK_DUPLICATE',
    ranks: [1],
    message:
      'rank 1 checked in 2 times (process 101 on host7, process 999 on host8); each rank must be started once; with --nnodes, each node needs a --node-rank of its own; jobs that meet at one address need an id each (--job-id)',
  });
});

it('does not speak of nodes where one process joined twice', () => {
  const { message } = rollOf(checkIn(1), checkIn(1)).conflict() ?? {};
  expect(message).toBe('rank 1 checked in 2 times (process 101 on host7, process 101 on host7); each rank must be started once');
});

it('names the ranks with another rank count', () => {
  const roll = rollOf(checkIn(1, { nRanks: 3 }), checkIn(0), checkIn(3), checkIn(2));
  expect(roll.conflict()).toMatchObject({
    code: 'RANK_COUNT_MISMATCH',
    ranks: [1],
    message:
      'the ranks were started with different rank counts: ranks 0,2,3 with 4, rank 1 with 3; all must have the same count: compare -n and --nnodes of each tccl run, or the settings of your launcher',
  });
});

it('names the hosts of each rank count, by their addresses too where names are the same, but not all of many', () => {
  const there = { nRanks: 2, peerAddress: '10.0.0.2:7' };
  expect(rollOf(checkIn(0), checkIn(1), checkIn(1, there)).conflict()?.message).toContain(
    'ranks 0,1 with 4 on host7 (127.0.0.1), rank 1 with 2 on host7 (10.0.0.2); all must',
  );
  const many = [0, 1, 2, 3, 4].map((rank) =>
    checkIn(rank, { nRanks: 6, hostname: `n${rank}`, peerAddress: `[fd00::${rank}]:7` }),
  );
  expect(rollOf(...many, checkIn(5)).conflict()?.message).toContain(
    'ranks 0-4 with 6 on n0 (fd00::0) and n1 (fd00::1) and n2 (fd00::2) and 2 more hosts, rank 5 with 4 on host7 (127.0.0.1);',
  );
});

it('names the ranks with another version', () => {
  const roll = rollOf(checkIn(0, { version: '1.1.0' }), checkIn(1), checkIn(2));
  expect(roll.conflict()).toMatchObject({
    code: 'VERSION_MISMATCH',
    ranks: [0],
    message: 'the ranks have different versions of tccl: 1.0.0 at ranks 1,2, 1.1.0 at rank 0; install the same everywhere',
  });
});

it('names the missing ranks', () => {
  const roll = rollOf(checkIn(0, { nRanks: 9 }), checkIn(2, { nRanks: 9 }), checkIn(6, { nRanks: 9 }));
  expect(roll.missing('10.0.0.1:5 on a')).toMatchObject({ code: 'RANK_MISSING', ranks: [1, 3, 4, 5, 7, 8] });
  expect(roll.missing('10.0.0.1:5 on a').message).toContain('ranks 1,3-5,7,8 of 9 did not join in time (3 did: 0,2,6)');
});

it('asks nothing where a refusal names the cause', () => {
  const roll = rollOf(checkIn(0, { nRanks: 2 }));
  const refusals = '; it refused a rank with another TCCL_COMM_SECRET from 10.0.0.2';
  expect(roll.missing('10.0.0.1:5 on a', refusals).message).toBe(
    `rank 1 of 2 did not join in time (1 did: 0)${refusals}; the root is 10.0.0.1:5 on a`,
  );
});
