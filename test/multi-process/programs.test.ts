import { expect, test } from 'vitest';
import { getUniqueId, init, type Communicator } from '../../dist/index.js';
import {
  applyOverrides,
  collectiveSchedule,
  machine,
  type Move,
  plan,
  readProgram,
  type Schedule,
  type ScheduledCollective,
} from '../../dist/planner/index.js';
import { patRoundsSchedule } from '../../dist/planner/schedule/pat-rounds.js';
import { packets, putAndSignal, readReduceSend, switchPipeline } from '../unit/planner/schedule/execution-plans.js';

const open = async (nRanks: number) => {
  const commId = await getUniqueId();
  return Promise.all(Array.from({ length: nRanks }, (_, rank) => init({ rank, nRanks, commId })));
};

const inputOf = (rank: number, length: number) => Float64Array.from({ length }, (_, index) => index + 1000 * rank);

/** Final data of all ranks; data are whole numbers, so sums are exact. */
const expected: Partial<Record<ScheduledCollective, (nRanks: number, length: number, rank: number) => Float64Array>> = {
  AllReduce: (nRanks, length) => Float64Array.from({ length }, (_, index) => nRanks * index + (1000 * nRanks * (nRanks - 1)) / 2),
  AllGather: (nRanks, length) =>
    Float64Array.from({ length }, (_, index) => (index % (length / nRanks)) + 1000 * Math.floor(index / (length / nRanks))),
  ReduceScatter: (nRanks, length, rank) =>
    Float64Array.from(
      { length: length / nRanks },
      (_, index) => nRanks * (index + (rank * length) / nRanks) + (1000 * nRanks * (nRanks - 1)) / 2,
    ),
};

/** Runs a program three times, in and outside of shared memory. */
async function check(comms: readonly Communicator[], program: Parameters<Communicator['program']>[0], length: number) {
  const { collective } = program;
  const runners = await Promise.all(comms.map((comm) => comm.program(program)));
  const n = comms.length;
  for (const [size, isShared] of [
    [length, false],
    [length / 2, true],
    [length, true],
  ] as const) {
    const results = await Promise.all(
      comms.map(async (comm, rank) => {
        const make = (count: number) => (isShared ? comm.alloc(Float64Array, count) : new Float64Array(count));
        const send = make(collective === 'AllGather' ? size / n : size);
        send.set(inputOf(rank, send.length));
        const recv = make(collective === 'ReduceScatter' ? size / n : size);
        await runners[rank]?.run(send, recv);
        const input = inputOf(rank, send.length);
        expect(send.every((value, i) => value === input[i])).toBe(true);
        return recv;
      }),
    );
    results.forEach((recv, rank) => {
      const wanted = expected[collective]?.(n, size, rank);
      // Comparing one by one costs a hundredth of what `toEqual` does, which then shows what differs.
      if (wanted?.length !== recv.length || !recv.every((value, i) => value === wanted[i])) expect(recv).toEqual(wanted);
    });
  }
  await Promise.all(runners.map((runner) => runner.close()));
}

test('ranks run schedules whose messages have several ranges of the data', async () => {
  const nRanks = 5;
  const comms = await open(nRanks);
  for (const collective of ['AllGather', 'ReduceScatter'] as const) {
    const schedule = (bytes: number, pieceBytes: number) =>
      patRoundsSchedule({ collective, bytes, root: 0 }, nRanks, Math.max(16, Math.floor(pieceBytes / 48) * 16));
    await check(comms, { name: 'PAT', collective, nRanks, chunks: nRanks, schedule }, 40_000 * nRanks);
  }
  await Promise.all(comms.map((comm) => comm.close()));
});

test('ranks run schedules whose moves send a sum and keep the received data', async () => {
  const comms = await open(2);
  // From rank 0 to rank 1; then the other way: a sum, which rank 0 throws away, and data.
  const connections = ([[0, 1], [1, 0], [1, 0]] as const).map(([from, to]) => ({ from, to, channel: 0, via: 'direct' as const, phase: 0 })); // prettier-ignore
  const schedule = (bytes: number): Schedule => {
    const half = bytes / 2;
    const move = (rest: Partial<Move>): Move => ({ receive: [], input: -1, send: [], output: -1, bytes: half, ...rest });
    const moves = [
      [move({ input: 0, send: [0], output: 0 }), move({ receive: [1] }), move({ receive: [2], output: half })],
      [move({ receive: [0], input: 0, send: [1], output: 0, exclusive: true }), move({ input: 0, send: [2], output: half })],
    ];
    return {
      call: { collective: 'AllGather', bytes, root: 0 },
      nRanks: 2,
      connections,
      workers: moves.map((own, rank) => ({ rank, channel: 0, moves: () => own })),
    };
  };
  await check(comms, { name: 'exclusive', collective: 'AllGather', nRanks: 2, chunks: 2, schedule }, 1000);
  await Promise.all(comms.map((comm) => comm.close()));
});

test.each([
  ['reads, adds and writes', readReduceSend(3)],
  ['shares chunks between blocks', readReduceSend(2, 3)],
  ['sends packets', packets(3)],
  ['puts and signals behind a barrier', putAndSignal(3)],
  ['goes through the switch', switchPipeline(2, 4)],
])('ranks run an execution plan that %s', async (_, text) => {
  const program = readProgram(text);
  const comms = await open(program.nRanks);
  await check(comms, program, 2 * 16 * 64 * program.chunks);
  await Promise.all(comms.map((comm) => comm.close()));
});

test('ranks run the schedules of NCCL: rings, trees and PAT of a plan', async () => {
  const made = plan({ hosts: [{ machine: applyOverrides(machine('dgx-h100'), { gpus: 1 }), count: 4 }] });
  const comms = await open(4);
  for (const [collective, algorithm] of [
    ['AllReduce', 'Ring'],
    ['AllReduce', 'Tree'],
    ['AllGather', 'Ring'],
    ['AllGather', 'PAT'],
    ['ReduceScatter', 'Ring'],
  ] as const) {
    const schedule = (bytes: number, chunkBytes: number) =>
      collectiveSchedule(made, { collective, bytes, root: 0 }, { algorithm, nChannels: 2, chunkBytes });
    await check(comms, { name: `NCCL's ${algorithm}`, collective, nRanks: 4, chunks: 4, schedule }, 2 ** 15);
  }
  await Promise.all(comms.map((comm) => comm.close()));
});

test('a wrong program, one for another number of ranks, and arrays of wrong length are refused; the communicator stays usable', async () => {
  const comms = await open(2);
  const [first] = comms as [Communicator, Communicator];
  const racy = readProgram(readReduceSend(2).replaceAll('"wait"', '"nop"'));
  await expect(first.program(racy)).rejects.toThrow(/program: own allreduce is wrong: .*waits for that before it ends/);
  await expect(first.program(readProgram(readReduceSend(3)))).rejects.toThrow(/is for 3 ranks, the communicator has 2/);
  const [runner, other] = await Promise.all(comms.map((comm) => comm.program(readProgram(readReduceSend(2)))));
  await expect(runner?.run(new Float32Array(7))).rejects.toThrow(/7 elements cannot be cut into the 2 chunks/);
  const x = [new Float32Array(8).fill(1), new Float32Array(8).fill(2)] as const;
  await Promise.all([runner?.run(x[0]), other?.run(x[1])]);
  expect([...x[0], ...x[1]]).toEqual(new Array(16).fill(3));
  await Promise.all(comms.map((comm) => comm.close()));
  await expect(runner?.run(x[0])).rejects.toMatchObject({ code: 'CLOSED' });
});

test('a rank that runs another size ends the call on both ranks', async () => {
  const comms = await open(2);
  const runners = await Promise.all(comms.map((comm) => comm.program(readProgram(readReduceSend(2)))));
  const calls = await Promise.allSettled([runners[0]?.run(new Float32Array(8)), runners[1]?.run(new Float32Array(16))]);
  expect(calls.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(String((calls[0] as PromiseRejectedResult).reason)).toMatch(/allReduce of (8|16) float32 \(sum, program\)/);
  await Promise.allSettled(comms.map((comm) => comm.close()));
});
