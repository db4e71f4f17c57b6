import { cpus, hostname } from 'node:os';
import { allowedCoreList } from '../runtime/detect/cores.js';
import { bandwidths, type MeasuredCommunicator, type Shape } from './collectives.js';
import { average, Buffers, type Case, checkCase, gather, timeCase, timeIterations, warmUpUntilSteady } from './measure.js';
import { checkRoot, defaultWarmup, leastIterations, type PerfOptions } from './options.js';
import { type PerfOperator, scalarOf } from './types.js';
import type { Reporter, Summary } from './report.js';
import type { Measurement, RowHead } from './table.js';
import type { ElementType } from './types.js';

/** One row to measure. */
interface Plan {
  readonly bytes: number;
  readonly type: ElementType;
  readonly operator: PerfOperator | undefined;
  readonly root: number;
}

/**
 * Makes the measurements of the options. All ranks call it with the same options; all get the same summary, and the
 * reporter of each is reported (give {@link silent} to all but one).
 *
 * @throws InvalidArgumentError `ROOT_RANGE` if the root is not a rank
 */
export async function runPerf(comm: MeasuredCommunicator, options: PerfOptions, reporter: Reporter): Promise<Summary> {
  checkRoot(options, comm.nRanks);
  const plans = planRows(options, comm.nRanks);
  const buffers = new Buffers(comm, options.memory, Math.max(...plans.map((plan) => rowBytes(plan, options, comm.nRanks))));
  reporter.start(comm.nRanks, await gatherText(comm, deviceLine(comm)));
  for (const [index, plan] of plans.entries()) {
    reporter.progress(0, plans.length, rowHead(plan, options, comm.nRanks));
    for (const inPlace of options.collective.inPlace ? [false, true] : [false]) {
      const one = makeCase(plan, options, comm, buffers, inPlace);
      const leastMs = index === 0 && !inPlace ? FIRST_WARM_UP_MS : 0;
      if (options.warmup !== undefined) await timeIterations(comm, one, options.warmup, options);
      else await warmUpUntilSteady(comm, one, { iterations: defaultWarmup(plan.bytes), leastMs }, options);
    }
  }

  let errors = 0;
  let halfCount = 0;
  let busbwSum = 0;
  for (const [index, plan] of plans.entries()) {
    const head = rowHead(plan, options, comm.nRanks);
    reporter.progress(index, plans.length, head);
    const measure = async (inPlace: boolean): Promise<Measurement> => {
      const half = await measureHalf(comm, makeCase(plan, options, comm, buffers, inPlace), head.bytes, options, index);
      if ((half.wrong ?? 0) > 0) errors++;
      halfCount++;
      busbwSum += half.busbwGBps;
      return half;
    };
    const outOfPlace = await measure(false);
    const inPlace = options.collective.inPlace ? await measure(true) : undefined;
    reporter.row({ ...head, outOfPlace, inPlace });
  }
  buffers.free();
  const summary = { errors, averageBusbwGBps: busbwSum / halfCount };
  reporter.end(summary);
  return summary;
}

/** Least time for the first case, whose calls compile what all cases share, milliseconds. */
const FIRST_WARM_UP_MS = 400;

/** Least warm-up of a case just before its clock starts: other cases ran since, milliseconds. */
const CASE_WARM_UP_MS = 20;

/** Least time of a case's timed calls: one wait of 4 ms for a core that the kernel gave away is then 4 %, milliseconds. */
const TIMED_MS = 100;

/** Types, then operators, then roots, each with all sizes: nccl-tests' order. */
function planRows({ collective, types, operators, root, sizes }: PerfOptions, nRanks: number): Plan[] {
  const roots = !collective.rooted ? [-1] : root >= 0 ? [root] : Array.from({ length: nRanks }, (_, rank) => rank);
  return types.flatMap((type) =>
    operators.flatMap((operator) => roots.flatMap((one) => sizes.map((bytes) => ({ bytes, type, operator, root: one })))),
  );
}

function rowHead(plan: Plan, options: PerfOptions, nRanks: number): RowHead {
  const { count } = shapeOf(plan, options, nRanks);
  return {
    bytes: rowBytes(plan, options, nRanks),
    count,
    type: plan.type.name,
    operator: plan.operator ?? 'none',
    root: plan.root,
  };
}

/** The larger of a rank's two buffers. */
function rowBytes(plan: Plan, options: PerfOptions, nRanks: number): number {
  const { sendCount, recvCount } = shapeOf(plan, options, nRanks);
  return Math.max(sendCount, recvCount) * plan.type.bytes;
}

function makeCase(plan: Plan, options: PerfOptions, comm: MeasuredCommunicator, buffers: Buffers, inPlace: boolean): Case {
  const shape = shapeOf(plan, options, comm.nRanks);
  const { send, recv } = buffers.views(plan.type, shape, inPlace);
  const operator = plan.operator === 'mulsum' ? { premulSum: scalarOf(comm.rank) } : (plan.operator ?? 'sum');
  const call = { send, recv, operator, root: plan.root, options: { type: plan.type.type } };
  return { ...plan, collective: options.collective, shape, send, recv, call };
}

function shapeOf({ bytes, type }: Plan, { collective }: PerfOptions, nRanks: number): Shape {
  return collective.shape(Math.floor(bytes / type.bytes), nRanks, type.bytes);
}

async function measureHalf(
  comm: MeasuredCommunicator,
  one: Case,
  bytes: number,
  options: PerfOptions,
  row: number,
): Promise<Measurement> {
  const iterations = options.iterations ?? (await iterationsFor(comm, one, bytes, options));
  const { meanUs, minUs } = await timeCase(comm, one, iterations, options);
  const timeUs = average(await gather(comm, meanUs), options.average);
  const shortestUs = average(await gather(comm, minUs), options.average);
  let wrong = options.checks > 0 ? 0 : undefined;
  for (let check = 0; check < options.checks && wrong === 0; check++) {
    wrong = await checkCase(comm, one, options.api, 1 + row * options.checks + check);
  }
  return { iterations, timeUs, shortestUs, ...bandwidths(options.collective, bytes, timeUs, comm.nRanks), wrong };
}

/** Iterations that take {@link TIMED_MS}, by their time in a warm-up; at least {@link leastIterations}. */
async function iterationsFor(comm: MeasuredCommunicator, one: Case, bytes: number, options: PerfOptions): Promise<number> {
  const iterations = options.warmup ?? defaultWarmup(bytes);
  if (iterations === 0) return leastIterations(bytes);
  const leastMs = options.warmup === undefined ? CASE_WARM_UP_MS : 0;
  const iterationMs = await warmUpUntilSteady(comm, one, { iterations, leastMs }, options);
  return Math.max(leastIterations(bytes), Math.ceil(TIMED_MS / iterationMs));
}

/** This rank's line in the head of the table, in the form of nccl-tests. */
function deviceLine(comm: MeasuredCommunicator): string {
  const cores = allowedCoreList() ?? '?';
  return (
    `Rank ${String(comm.rank).padStart(2)} Group  0 Pid ${String(process.pid).padStart(6)} on ${hostname().padStart(10)}` +
    ` device ${String(comm.localRank).padStart(2)} [cores ${cores}] ${cpus()[0]?.model.trim() ?? ''}`
  );
}

/** A short line of each rank, by rank, gathered by a sum to which each adds its own bytes. */
async function gatherText(comm: MeasuredCommunicator, text: string): Promise<string[]> {
  const slot = 256;
  const bytes = new Int32Array(comm.nRanks * slot);
  bytes.set(new TextEncoder().encode(text).subarray(0, slot), comm.rank * slot);
  await comm.allReduce(bytes);
  return Array.from({ length: comm.nRanks }, (_, rank) => {
    const line = Uint8Array.from(bytes.subarray(rank * slot, (rank + 1) * slot));
    const end = line.indexOf(0);
    return new TextDecoder().decode(end < 0 ? line : line.subarray(0, end));
  });
}
