import { counted } from '../../counted.js';
import { inFile, InputError, InvalidArgumentError, InvalidUsageError } from '../../errors.js';
import { parseSize } from '../../perf/sizes.js';
import { refuseContradictions } from '../../planner/graph/merge/contradictions.js';
import { prepareCluster } from '../../planner/plan/cluster.js';
import { formatBytes, formatRate, formatTime, formatWay } from '../../planner/plan/overview/format.js';
import { predictCall, type PredictedRow, simulatorOf } from '../../planner/plan/prediction.js';
import { collectivesOfTests, type ScheduledCollective } from '../../planner/schedule/schedule.js';
import { type AnyProgram, schedule } from '../../planner/schedule/program.js';
import { readProgram } from '../../planner/schedule/read-program.js';
import { verifyProgram } from '../../planner/schedule/verify-program.js';
import { wireBytes } from '../../planner/simulate/call-plan.js';
import type { TimeShare } from '../../planner/simulate/shares.js';
import { timeShares } from '../../planner/simulate/shares.js';
import type { Simulator } from '../../planner/simulate/simulate.js';
import { timelineOf } from '../../planner/simulate/timeline.js';
import { didYouMean } from '../../suggest.js';
import { type ClusterInput, readCluster } from '../cluster-input.js';
import type { ClusterOptions } from '../cluster-options.js';
import { readOneFile } from '../topo/input.js';
import { colorsFor, print, printNotes, writeFile } from '../output.js';
import { chakraFiles } from './chakra.js';
import { goalText } from './goal.js';
import { perfettoJson } from './perfetto.js';
import { scheduleLines } from './schedule-text.js';

export interface TraceOptions extends ClusterOptions {
  readonly collective?: string;
  readonly program?: string;
  readonly size: string;
  readonly out?: string;
  readonly goal?: string;
  readonly chakra?: string;
  readonly schedule?: boolean;
  readonly ranks?: string;
  readonly root: string;
}

/** Number of slices from which viewers become slow. */
const MOST_SLICES = 2_000_000;

/** `tccl trace`. */
export async function showTrace(names: readonly string[], options: TraceOptions): Promise<void> {
  if ((options.collective === undefined) === (options.program === undefined))
    throw new InvalidUsageError('UNSUPPORTED', 'give either --collective or --program');
  const program = options.program === undefined ? undefined : readCheckedProgram(options.program);
  const collective = program?.collective ?? collectiveOf(options.collective ?? '');
  const bytes = parseSize(options.size, '--size');
  if (bytes === 0) throw new InvalidArgumentError('ARGUMENT_RANGE', `--size '${options.size}' must be a size above 0`);
  const ranks = options.ranks === undefined ? undefined : ranksOf(options.ranks);
  const input = await readCluster(names, options);
  refuseContradictions(input.parameters);
  inFile(input.fileName, () => {
    const { cluster, parameters, given, title, simulated: environment } = input;
    const simulator = simulatorOf(prepareCluster(cluster, parameters, given), parameters);
    const root = rankOf(options.root, '--root', simulator);
    for (const rank of ranks ?? []) rankOf(String(rank), '--ranks', simulator);
    if (program !== undefined) {
      showProgram(program, simulator, bytes, input, options, ranks);
      return;
    }
    const [row] = predictCall(simulator, collective, bytes, { root, environment });
    if (row === undefined)
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        simulator.nRanks === 1
          ? `${title} has one rank, which exchanges nothing`
          : `NCCL has nothing to choose from for ${collective} with these variables`,
      );
    if (options.schedule === true) {
      const schedule = simulator.scheduleOf(collective, bytes, { root, environment });
      if (schedule !== undefined) for (const lines of scheduleLines(schedule, ranks)) print(...lines);
    } else {
      print(...summaryLines(title, collective, row, timeShares(simulator, collective, bytes, { root, environment })));
    }
    if (options.goal !== undefined || options.chakra !== undefined) {
      const schedule = simulator.scheduleOf(collective, bytes, { root, environment });
      const simulated = simulator.simulate(collective, bytes, { root, environment });
      if (schedule === undefined || simulated === undefined) return;
      const { goal, chakra } = options;
      const [onWire, launchUs] = [wireBytes(simulated.protocol), simulated.launchUs];
      if (goal !== undefined) writeFile(goal, goalText(schedule, onWire, launchUs));
      if (chakra !== undefined)
        chakraFiles(schedule, onWire, launchUs).forEach((file, rank) => {
          writeFile(`${chakra}.${rank}.et`, file);
        });
    }
    if (options.out !== undefined) {
      const timeline = timelineOf(simulator, collective, bytes, { root, environment }, ranks);
      if (timeline === undefined) return;
      const { slices, links } = timeline;
      if (slices.length > MOST_SLICES)
        throw new InvalidArgumentError(
          'ARGUMENT_RANGE',
          `the timeline has ${slices.length} slices, and viewers take some ${MOST_SLICES}: give some of the ranks (--ranks 0-7) or a smaller size`,
        );
      writeFile(options.out, perfettoJson(timeline, simulator));
      if (options.schedule !== true)
        print(`${options.out}: ${counted(slices.length, 'slice')}, ${counted(links.length, 'link')}; ui.perfetto.dev opens it`);
    }
  });
  printNotes(input.notes);
}

/** @throws InputError for a file that is no program, and for a wrong program, with its fault */
function readCheckedProgram(name: string): AnyProgram {
  const file = readOneFile(name, "a program: MSCCL's XML or MSCCL++'s JSON");
  return inFile(file.fileName, () => {
    const program = readProgram(file.text);
    const fault = verifyProgram(program);
    if (fault !== undefined) throw new InputError('CONTENT', `${program.name} is wrong: ${fault}`);
    return program;
  });
}

function showProgram(
  program: AnyProgram,
  simulator: Simulator,
  bytes: number,
  { title, simulated: environment }: ClusterInput,
  { schedule: asTable, out, goal, chakra }: TraceOptions,
  ranks: ReadonlySet<number> | undefined,
): void {
  const [ofCalls] = Object.entries({ out, goal, chakra }).find(([, file]) => file !== undefined) ?? [];
  if (ofCalls !== undefined)
    throw new InvalidUsageError('UNSUPPORTED', `--${ofCalls} needs --collective: it is of calls of NCCL`);
  if (program.nRanks !== simulator.nRanks)
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${program.name} is for ${program.nRanks} ranks; ${title} has ${simulator.nRanks}`,
    );
  const made = schedule(program, bytes);
  if (asTable === true) {
    for (const lines of scheduleLines(made, ranks)) print(...lines);
    return;
  }
  const paint = colorsFor(process.stdout);
  const timeUs = simulator.simulateSchedule(made, program.protocol, { environment });
  const [row] = predictCall(simulator, program.collective, made.call.bytes, { environment });
  const nccl =
    row === undefined
      ? 'nothing to choose from'
      : `${formatTime(row.timeUs)} by ${row.choice === undefined ? 'messages between pairs' : formatWay(row.choice)}: ${(row.timeUs / timeUs).toFixed(2)} x the time`;
  print(
    `${paint.bold(title)}  ${program.collective} of ${formatBytes(made.call.bytes)} by ${program.name}, ${program.protocol}, ${counted(program.chunks, 'chunk')}`,
    'valid  every input counts once in every output, no deadlock',
    `time   ${formatTime(timeUs)} by the simulation`,
    `NCCL   ${nccl}`,
  );
}

function collectiveOf(name: string): ScheduledCollective {
  const found = Object.hasOwn(collectivesOfTests, name) ? collectivesOfTests[name] : undefined;
  if (found !== undefined) return found;
  const names = Object.keys(collectivesOfTests);
  throw new InvalidArgumentError(
    'UNKNOWN_NAME',
    `--collective ${name} is none that is simulated${didYouMean(name, names) || `; these are: ${names.join(', ')}`}`,
  );
}

/** `0-7,12`. */
function ranksOf(text: string): ReadonlySet<number> {
  const ranks = text.split(',').flatMap((part) => {
    const [, first, last = first] = /^\s*(\d{1,7})(?:-(\d{1,7}))?\s*$/.exec(part) ?? [];
    const [from, to] = [Number(first), Number(last)];
    if (first === undefined || to < from || to - from > 100_000)
      throw new InvalidArgumentError('ARGUMENT_RANGE', `--ranks '${text}' is no list of ranks: write 0-7,12`);
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  });
  return new Set(ranks);
}

function rankOf(text: string, flag: string, { nRanks }: Simulator): number {
  const rank = Number(text);
  if (/^\d+$/.test(text) && rank < nRanks) return rank;
  throw new InvalidArgumentError('ARGUMENT_RANGE', `${flag} ${text} is no rank: there are ${nRanks}, from 0 on`);
}

function summaryLines(title: string, collective: ScheduledCollective, row: PredictedRow, shares: readonly TimeShare[]): string[] {
  const paint = colorsFor(process.stdout);
  const { choice, timeUs, leastUs, mostUs, busGBps, bytes } = row;
  const belief = choice === undefined ? '' : `; NCCL believes ${formatTime(choice.timeUs)}`;
  const way = choice === undefined ? 'messages between pairs' : `${formatWay(choice)} on ${counted(choice.nChannels, 'channel')}`;
  return [
    `${paint.bold(title)}  ${collective} of ${formatBytes(bytes)} by ${way}`,
    `time   ${formatTime(timeUs)}, in eight of ten cases ${formatTime(leastUs)} to ${formatTime(mostUs)}; ${formatRate(busGBps)} GB/s of bus bandwidth${belief}`,
    `spent  ${sharesText(shares)}`,
  ];
}

/** `62 % throughput of thread blocks, 30 % bandwidth of NVLinks, 8 % launch`. */
function sharesText(shares: readonly TimeShare[]): string {
  return shares.map(({ what, part }) => `${(100 * part).toFixed(0)} % ${what}`).join(', ');
}
