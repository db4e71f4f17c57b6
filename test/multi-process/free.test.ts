import { expect, test } from 'vitest';
import { getUniqueId, init, type Communicator } from '../../dist/index.js';

interface Use {
  /** The communicator that is called. */
  readonly on?: (comm: Communicator) => Promise<Communicator>;
  readonly call: (comm: Communicator, x: Float32Array) => Promise<void>;
}

const uses: Record<string, Use> = {
  'a collective on all of it': { call: (comm, x) => comm.allReduce(x) },
  'a collective of a child, on a part of it,': {
    on: (comm) => comm.split(0),
    call: (child, x) => child.broadcast(x.subarray(100, 200)),
  },
  'a message': { call: (comm, x) => (comm.rank === 0 ? comm.recv(x, 1) : comm.send(x, 0)) },
  'a group': {
    call: (comm, x) =>
      comm.group(() => {
        void comm.allReduce(x.subarray(0, 8));
        void comm.allReduce(x.subarray(8, 16));
      }),
  },
};

test.each(Object.entries(uses))('an array is not freed while %s is in flight', async (_, { on, call }) => {
  const commId = await getUniqueId();
  const comms = await Promise.all([0, 1].map((rank) => init({ rank, nRanks: 2, commId })));
  const called = on === undefined ? comms : await Promise.all(comms.map(on));
  const [x, y] = comms.map((comm) => comm.alloc(Float32Array, 100_000)) as unknown as [Float32Array, Float32Array];
  const [first, second] = comms as [Communicator, Communicator];
  const late = call(called[1] as Communicator, y);
  expect(() => second.free(y)).toThrow(
    expect.objectContaining({
      code: 'ARGUMENT_TYPE',
      rank: 1,
      message: 'free: a call that uses the array is under way; await it first',
    }) as Error,
  );
  await Promise.all([late, call(called[0] as Communicator, x)]);
  first.free(x);
  second.free(y);
  await Promise.all([...new Set([...called, ...comms])].map((comm) => comm.close()));
});

test('an array is not freed in the body of the group that uses it, nor at the end of its block', async () => {
  const comm = await init({ rank: 0, nRanks: 1, commId: await getUniqueId() });
  const x = comm.alloc(Float32Array, 8).fill(1);
  const y = comm.alloc(Float32Array, 8);
  const apart = comm.alloc(Float32Array, 8);
  const refusal = expect.objectContaining({
    message: expect.stringContaining('free: a call that uses the array') as string,
  }) as Error;
  const isKept = (): void => {
    expect(() => comm.free(x)).toThrow(refusal);
    expect(() => x[Symbol.dispose]()).toThrow(refusal);
  };
  await comm.group(() => {
    void comm.send(x.subarray(2, 4), 0);
    isKept();
    void comm.recv(y.subarray(0, 2), 0);
  });
  await comm.group(() => {
    void comm.allReduce(x);
    isKept();
    comm.free(apart);
  });
  comm.free(x);
  await comm.close();
});

test('a freed array is refused, also when the last call used it, and by children', async () => {
  const comm = await init({ rank: 0, nRanks: 1, commId: await getUniqueId() });
  const child = await comm.split(0);
  const x = comm.alloc(Float32Array, 100);
  comm.allReduceSync(x);
  child.allReduceSync(x);
  comm.free(x);
  const refusal = expect.objectContaining({
    name: 'InvalidArgumentError',
    code: 'BUFFER_DETACHED',
    rank: 0,
    message: expect.stringContaining('was freed') as string,
  }) as Error;
  expect(() => comm.allReduceSync(x)).toThrow(refusal);
  expect(() => child.allReduceSync(x)).toThrow(refusal);
  await expect(comm.broadcast(new Float32Array(100), x)).rejects.toEqual(refusal);
  await expect(comm.send(x, 0)).rejects.toEqual(refusal);
  comm.allReduceSync(comm.alloc(Float32Array, 100));
  await child.close();
  await comm.close();
});
