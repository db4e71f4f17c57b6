import type { Communicator } from '../../src/runtime/communicator/communicator.js';
import type { TcclError } from '../../src/errors.js';
import type { Call, Kind } from './program.js';

/** Makes a call on one rank; returns what is wrong with its data. */
export async function makeCall(
  comm: Communicator,
  call: Pick<Call, 'kind' | 'count'>,
  number: number,
): Promise<string | undefined> {
  const wrong = await ways[call.kind](comm, call.count, number);
  return wrong === undefined ? undefined : `${call.kind} ${number}: ${wrong}`;
}

type Way = (comm: Communicator, count: number, number: number) => Promise<string | undefined>;

const ways: Readonly<Record<Kind, Way>> = {
  allReduce: async (comm, count, number) => {
    const data = filled(count, comm.rank, number);
    await comm.allReduce(data);
    return compare(data, 0, count, (index) => sumOf(comm.nRanks, index, number));
  },
  broadcast: async (comm, count, number) => {
    const root = number % comm.nRanks;
    const data = comm.rank === root ? filled(count, root, number) : new Int32Array(count);
    await comm.broadcast(data, undefined, root);
    return compare(data, 0, count, (index) => valueOf(root, index, number));
  },
  allGather: async (comm, count, number) => {
    const all = new Int32Array(count * comm.nRanks);
    await comm.allGather(filled(count, comm.rank, number), all);
    return eachPart(comm, all, count, (rank, index) => valueOf(rank, index, number));
  },
  reduceScatter: async (comm, count, number) => {
    const part = new Int32Array(count);
    await comm.reduceScatter(filled(count * comm.nRanks, comm.rank, number), part);
    return compare(part, 0, count, (index) => sumOf(comm.nRanks, comm.rank * count + index, number));
  },
  allToAll: async (comm, count, number) => {
    const all = new Int32Array(count * comm.nRanks);
    await comm.allToAll(filled(count * comm.nRanks, comm.rank, number), all);
    return eachPart(comm, all, count, (rank, index) => valueOf(rank, comm.rank * count + index, number));
  },
  barrier: async (comm) => {
    await comm.barrier();
    return undefined;
  },
  ring: async (comm, count, number) => {
    const { rank, nRanks } = comm;
    const previous = (rank + nRanks - 1) % nRanks;
    const theirs = new Int32Array(count);
    await Promise.all([comm.send(filled(count, rank, number), (rank + 1) % nRanks), comm.recv(theirs, previous)]);
    return compare(theirs, 0, count, (index) => valueOf(previous, index, number));
  },
  group: async (comm, count, number) => {
    const [one, two] = [filled(count, comm.rank, number), filled(5, comm.rank, number)];
    await comm.group(() => {
      void comm.allReduce(one);
      void comm.allReduce(two);
    });
    return (
      compare(one, 0, count, (index) => sumOf(comm.nRanks, index, number)) ??
      compare(two, 0, 5, (index) => sumOf(comm.nRanks, index, number))
    );
  },
  objects: async (comm, _, number) => {
    const all = await comm.allGatherObject({ rank: comm.rank, number });
    const right = all.every((one, rank) => one.rank === rank && one.number === number);
    return right ? undefined : `objects are ${JSON.stringify(all)}`;
  },
  window: async (comm, count, number) => {
    const { rank, nRanks } = comm;
    const board = comm.alloc(Int32Array, count);
    const window = await comm.window(board);
    await window.put(filled(count, rank, number), (rank + 1) % nRanks, 0, { signal: true });
    const previous = (rank + nRanks - 1) % nRanks;
    await window.waitSignal([previous]);
    const wrong = compare(board, 0, count, (index) => valueOf(previous, index, number));
    await window.close();
    comm.free(board);
    return wrong;
  },
  split: async (comm, count, number) => {
    const child = await comm.split(comm.rank % 2);
    try {
      return await ways.allReduce(child, count, number);
    } catch (error) {
      throw ofParent(error, (rank) => 2 * rank + (comm.rank % 2));
    } finally {
      await child.close();
    }
  },
};

/** An error of a child, with ranks of its parent in the place of its own. */
function ofParent(error: unknown, parentRank: (rank: number) => number): Error {
  const { code, message, rank, ranks = rank === undefined ? [] : [rank] } = error as TcclError;
  return Object.assign(new Error(message, { cause: error }), { code, ranks: ranks.map(parentRank) });
}

function valueOf(rank: number, index: number, number: number): number {
  return (rank + 1) * 31 + index * 7 + number;
}

function sumOf(nRanks: number, index: number, number: number): number {
  return nRanks * valueOf(0, index, number) + (31 * nRanks * (nRanks - 1)) / 2;
}

function filled(count: number, rank: number, number: number): Int32Array {
  const data = new Int32Array(count);
  for (let index = 0; index < count; index++) data[index] = valueOf(rank, index, number);
  return data;
}

function compare(data: Int32Array, from: number, count: number, expected: (index: number) => number): string | undefined {
  for (let index = 0; index < count; index++)
    if (data[from + index] !== expected(index))
      return `element ${from + index} is ${data[from + index] ?? 'missing'}, not ${expected(index)}`;
  return undefined;
}

function eachPart(
  { nRanks }: Communicator,
  all: Int32Array,
  count: number,
  expected: (rank: number, index: number) => number,
): string | undefined {
  for (let rank = 0; rank < nRanks; rank++) {
    const wrong = compare(all, rank * count, count, (index) => expected(rank, index));
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}
