import type { Communicator } from '../../runtime/communicator/communicator.js';
import { InternalError } from '../../errors.js';
import { collectives as measured, type Arguments, type MeasuredCommunicator } from '../collectives.js';
import type { DataTypeName, NumericArray } from '../../runtime/device/types.js';

/** Benchmarks of MPI's users: OSU's micro-benchmarks and Intel's MPI benchmarks (IMB), by their names. */

/** The part of a communicator that they use. */
export type PairedCommunicator = MeasuredCommunicator & Pick<Communicator, 'sendSync' | 'recvSync' | 'sendRecv' | 'sendRecvSync'>;

/** One repetition at one rank, with the arrays of one size. */
export interface Repetition {
  readonly comm: PairedCommunicator;
  readonly send: NumericArray;
  readonly recv: NumericArray;
  /** Parts of `recv`, one for each message that is received at a time. */
  readonly parts: readonly NumericArray[];
  /** Arguments of a collective with them; root 0. */
  readonly call: Arguments;
  readonly type: { readonly type: DataTypeName };
  /** A short array for an answer. */
  readonly answer: Int32Array;
}

/** Times of a repetition, microseconds. */
export interface Times {
  readonly meanUs: number;
  readonly minUs: number;
  readonly maxUs: number;
  /** Of benchmarks of overlap: the mean without computing, and the time of the computing. */
  readonly pureUs: number;
  readonly computeUs: number;
}

/** A column of the table after the size. */
interface Column {
  readonly title: string;
  /** Name in JSON lines. */
  readonly key: string;
  value(times: Times, bytes: number, nRanks: number): number;
}

export interface Benchmark {
  readonly name: string;
  readonly family: 'OSU' | 'IMB';
  readonly ranks: 'two' | 'even' | 'any';
  /** True if the data are combined by an operator; others move bytes, of any type. */
  readonly reduces: boolean;
  readonly largest: number;
  /** True if each repetition computes while the call runs, for as long as the call takes alone. */
  readonly overlaps: boolean;
  /** Messages that a rank receives at a time: their arrays lie apart. */
  readonly atATime: number;
  /** Elements of the arrays that a rank sends and receives, of a message of `count` elements. */
  counts(count: number, nRanks: number): { readonly send: number; readonly recv: number };
  readonly columns: readonly Column[];
  run(repetition: Repetition): Promise<unknown>;
  runSync(repetition: Repetition): void;
}

/** Messages in flight, as OSU's default. */
export const WINDOW = 64;

const MIB = 2 ** 20;

const latency = (divisor: number): readonly Column[] => [
  { title: 'Latency (us)', key: 'latency_us', value: ({ meanUs }) => meanUs / divisor },
];
const osuTimes: readonly Column[] = [
  { title: 'Avg Latency(us)', key: 'avg_us', value: ({ meanUs }) => meanUs },
  { title: 'Min Latency(us)', key: 'min_us', value: ({ minUs }) => minUs },
  { title: 'Max Latency(us)', key: 'max_us', value: ({ maxUs }) => maxUs },
];
const osuOverlap: readonly Column[] = [
  { title: 'Overall(us)', key: 'overall_us', value: ({ meanUs }) => meanUs },
  { title: 'Compute(us)', key: 'compute_us', value: ({ computeUs }) => computeUs },
  { title: 'Pure Comm.(us)', key: 'pure_us', value: ({ pureUs }) => pureUs },
  {
    title: 'Overlap(%)',
    key: 'overlap_percent',
    value: ({ meanUs, computeUs, pureUs }) => Math.max(0, 100 - (100 * (meanUs - computeUs)) / pureUs),
  },
];
const imbTimes: readonly Column[] = [
  { title: 't_min[usec]', key: 'min_us', value: ({ minUs }) => minUs },
  { title: 't_max[usec]', key: 'max_us', value: ({ maxUs }) => maxUs },
  { title: 't_avg[usec]', key: 'avg_us', value: ({ meanUs }) => meanUs },
];

/** MB/s (10^6) of `messages` messages of each pair in a repetition. */
const bandwidth = (title: string, messages: (nRanks: number) => number, of: (times: Times) => number = mean): Column => ({
  title,
  key: 'bandwidth_MBps',

  value: (times, bytes, nRanks) => (bytes * messages(nRanks)) / of(times),
});

function mean({ meanUs }: Times): number {
  return meanUs;
}

const pairOf = ({ comm: { rank, nRanks } }: Repetition): { readonly first: boolean; readonly peer: number } => {
  const half = nRanks / 2;
  return rank < half ? { first: true, peer: rank + half } : { first: false, peer: rank - half };
};

/** To a peer and back. */
const pingPong = {
  counts: same,
  async run(each: Repetition): Promise<void> {
    const { comm, send, recv, type } = each;
    const { first, peer } = pairOf(each);
    if (first) {
      await comm.send(send, peer, type);
      await comm.recv(recv, peer, type);
    } else {
      await comm.recv(recv, peer, type);
      await comm.send(send, peer, type);
    }
  },
  runSync(each: Repetition): void {
    const { comm, send, recv, type } = each;
    const { first, peer } = pairOf(each);
    if (first) {
      comm.sendSync(send, peer, type);
      comm.recvSync(recv, peer, type);
    } else {
      comm.recvSync(recv, peer, type);
      comm.sendSync(send, peer, type);
    }
  },
};

/** A window of messages to the second rank of a pair, which answers at their end. */
const oneWay = {
  atATime: WINDOW,
  counts: (count: number) => ({ send: count, recv: WINDOW * count }),
  async run(each: Repetition): Promise<void> {
    const { first, peer } = pairOf(each);
    const { comm, answer } = each;
    await comm.group(() => window(each, first, !first));
    if (first) await comm.recv(answer, peer);
    else await comm.send(answer, peer);
  },
  runSync(each: Repetition): void {
    const { first, peer } = pairOf(each);
    const { comm, answer } = each;
    comm.groupSync(() => window(each, first, !first));
    if (first) comm.recvSync(answer, peer);
    else comm.sendSync(answer, peer);
  },
};

const bothWays = {
  atATime: WINDOW,
  counts: (count: number) => ({ send: count, recv: WINDOW * count }),
  run: (each: Repetition) => each.comm.group(() => window(each, true, true)),
  runSync: (each: Repetition) => each.comm.groupSync(() => window(each, true, true)),
};

function window(each: Repetition, sends: boolean, receives: boolean): void {
  const { comm, send, parts, type } = each;
  const { peer } = pairOf(each);
  for (const part of parts) {
    if (sends) void comm.send(send, peer, type);
    if (receives) void comm.recv(part, peer, type);
  }
}

/** To one peer while from another. */
const toNext = {
  counts: same,
  run({ comm, send, recv, type }: Repetition) {
    const { rank, nRanks } = comm;
    return comm.sendRecv(send, (rank + 1) % nRanks, recv, (rank - 1 + nRanks) % nRanks, type);
  },
  runSync({ comm, send, recv, type }: Repetition) {
    const { rank, nRanks } = comm;
    comm.sendRecvSync(send, (rank + 1) % nRanks, recv, (rank - 1 + nRanks) % nRanks, type);
  },
};

/** With both neighbours at once. */
const withNeighbours = {
  atATime: 2,
  counts: (count: number) => ({ send: count, recv: 2 * count }),
  run: (each: Repetition) => each.comm.group(() => swap(each)),
  runSync: (each: Repetition) => each.comm.groupSync(() => swap(each)),
};

function swap({ comm, send, parts: [fromNext, fromPrevious], type }: Repetition): void {
  const { rank, nRanks } = comm;
  const [next, previous] = [(rank + 1) % nRanks, (rank - 1 + nRanks) % nRanks];
  if (fromNext === undefined || fromPrevious === undefined) return;
  void comm.send(send, next, type);
  void comm.send(send, previous, type);
  void comm.recv(fromNext, next, type);
  void comm.recv(fromPrevious, previous, type);
}

function same(count: number): { readonly send: number; readonly recv: number } {
  return { send: count, recv: count };
}

type Steps = Pick<Benchmark, 'reduces' | 'counts' | 'run' | 'runSync' | 'largest'>;

const gathered = (count: number, nRanks: number) => ({ send: count, recv: count * nRanks });
const scattered = (count: number, nRanks: number) => ({ send: count * nRanks, recv: count });

/** A collective of nccl-tests with other counts. */
function collective(name: string, counts: Benchmark['counts']): Steps {
  const found = measured.find((one) => one.name === name);
  if (found === undefined) throw new InternalError('INTERNAL', `there is no collective ${name}`);
  return {
    reduces: found.reduces,
    largest: MIB,
    counts,
    run: ({ comm, call }) => found.run(comm, call),
    runSync: ({ comm, call }) => found.runSync(comm, call),
  };
}

/** Collectives by IMB's names; OSU's are in lower case, with `Bcast` as `bcast` and so on. */
const collectives: Readonly<Record<string, Steps>> = {
  Allreduce: collective('all_reduce', same),
  Reduce: collective('reduce', same),
  Reduce_scatter: collective('reduce_scatter', (count, nRanks) => scattered(Math.max(1, Math.floor(count / nRanks)), nRanks)),
  Bcast: {
    reduces: false,
    largest: MIB,
    counts: same,
    run: ({ comm, send, type }) => comm.broadcast(send, send, 0, type),
    runSync: ({ comm, send, type }) => comm.broadcastSync(send, send, 0, type),
  },
  Allgather: collective('all_gather', gathered),
  Alltoall: collective('alltoall', (count, nRanks) => ({ send: count * nRanks, recv: count * nRanks })),
  Gather: collective('gather', gathered),
  Scatter: collective('scatter', scattered),
  Barrier: {
    reduces: false,
    largest: 0,
    counts: () => ({ send: 0, recv: 0 }),
    run: ({ comm }) => comm.barrier(),
    runSync: ({ comm }) => comm.barrierSync(),
  },
};

const messages = { reduces: false, overlaps: false, largest: 4 * MIB, atATime: 1 };

/** Of each size, in the order in which their projects list them. */
export const benchmarks: readonly Benchmark[] = [
  { ...messages, ...pingPong, name: 'osu_latency', family: 'OSU', ranks: 'two', columns: latency(2) },
  { ...messages, ...oneWay, name: 'osu_bw', family: 'OSU', ranks: 'two', columns: [bandwidth('Bandwidth (MB/s)', () => WINDOW)] },
  {
    ...messages,
    ...bothWays,
    name: 'osu_bibw',
    family: 'OSU',
    ranks: 'two',
    columns: [bandwidth('Bandwidth (MB/s)', () => 2 * WINDOW)],
  },
  { ...messages, ...pingPong, name: 'osu_multi_lat', family: 'OSU', ranks: 'even', columns: latency(2) },
  {
    ...messages,
    ...oneWay,
    name: 'osu_mbw_mr',
    family: 'OSU',
    ranks: 'even',
    columns: [
      bandwidth('MB/s', (nRanks) => (WINDOW * nRanks) / 2),
      {
        title: 'Messages/s',
        key: 'messages_per_s',

        value: ({ meanUs }, _, nRanks) => (1e6 * WINDOW * (nRanks / 2)) / meanUs,
      },
    ],
  },
  ...Object.entries(collectives).map(([name, steps]): Benchmark => ({
    ...steps,
    name: `osu_${name.toLowerCase()}`,
    family: 'OSU',
    ranks: 'any',
    atATime: 1,
    overlaps: false,
    columns: osuTimes,
  })),
  ...Object.entries(collectives).map(([name, steps]): Benchmark => ({
    ...steps,
    name: `osu_i${name.toLowerCase()}`,
    family: 'OSU',
    ranks: 'any',
    atATime: 1,
    overlaps: true,
    columns: osuOverlap,
  })),
  {
    ...messages,
    ...pingPong,
    name: 'PingPong',
    family: 'IMB',
    ranks: 'two',
    columns: [{ title: 't[usec]', key: 'time_us', value: ({ meanUs }) => meanUs / 2 }, bandwidth('Mbytes/sec', () => 2)],
  },
  {
    ...messages,
    ...toNext,
    name: 'PingPing',
    family: 'IMB',
    ranks: 'two',
    columns: [{ title: 't[usec]', key: 'time_us', value: ({ meanUs }) => meanUs }, bandwidth('Mbytes/sec', () => 1)],
  },
  {
    ...messages,
    ...toNext,
    name: 'Sendrecv',
    family: 'IMB',
    ranks: 'any',
    columns: [
      ...imbTimes,
      bandwidth(
        'Mbytes/sec',
        () => 2,
        ({ maxUs }) => maxUs,
      ),
    ],
  },
  {
    ...messages,
    ...withNeighbours,
    name: 'Exchange',
    family: 'IMB',
    ranks: 'any',
    columns: [
      ...imbTimes,
      bandwidth(
        'Mbytes/sec',
        () => 4,
        ({ maxUs }) => maxUs,
      ),
    ],
  },
  ...Object.entries(collectives).map(([name, steps]): Benchmark => ({
    ...steps,
    ...(steps.largest === 0 ? {} : { largest: 4 * MIB }),
    name,
    family: 'IMB',
    ranks: 'any',
    atATime: 1,
    overlaps: false,
    columns: imbTimes,
  })),
];

/** Sizes of a benchmark where none are given: powers of two, from one element on. */
export function defaultSizes({ largest }: Benchmark, elementBytes: number): readonly number[] {
  if (largest === 0) return [0];
  const sizes: number[] = [];
  for (let bytes = elementBytes; bytes <= largest; bytes *= 2) sizes.push(bytes);
  return sizes;
}
