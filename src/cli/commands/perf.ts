import { Argument, InvalidArgumentError, Option, type Command } from 'commander';
import { describeError, inFile, InputError, InvalidUsageError, SystemError, TcclError } from '../../errors.js';
import type { AnyProgram } from '../../planner/schedule/program.js';
import type { Communicator } from '../../runtime/communicator/communicator.js';
import type { Placement } from '../../runtime/launch/placement.js';
import type { ProgramOperator, ProgramRunner } from '../../runtime/programs/program.js';
import { collectives } from '../../perf/collectives.js';
import type { PerfOptions, RawOptions } from '../../perf/options.js';
import { benchmarks } from '../../perf/mpi/benchmarks.js';
import { benchmarkOf, checkRankCount, mpiOptions, type MpiOptions } from '../../perf/mpi/options.js';
import { elementTypes, perfOperators } from '../../perf/types.js';
import { complain, examples, printData, progressLine } from '../output.js';

interface CommandOptions extends RawOptions {
  readonly ranks?: string;
  readonly output_file?: string;
  readonly json?: true;
  readonly program?: string;
}

export function register(program: Command): void {
  program
    .command('perf')
    .summary('measure as nccl-tests, OSU and IMB do')
    .description(
      "Measures a collective between ranks with nccl-tests' flags and prints its table: time, algorithm and bus bandwidth, " +
        'and the number of wrong elements, out of place and in place. Sizes are written as 8, 64K, 1.5M or 1G. ' +
        'The exit code is 1 if any element was wrong. ' +
        "Names of OSU's micro-benchmarks (osu_latency, osu_bw, osu_allreduce …) and of IMB (PingPong, Allreduce …) give their tables.",
    )
    .addArgument(
      offering(
        new Argument('<collective>', 'what is measured: a collective, or a benchmark of OSU or IMB by its name'),
        [...collectives, ...benchmarks].map(({ name }) => name),
      ),
    )
    .option('--ranks <count>', 'number of ranks to start on this host (default: those of the launcher around it, or 1)')
    .option('-b, --minbytes <size>', 'smallest size', '32M')
    .option('-e, --maxbytes <size>', 'largest size', '32M')
    .option('-f, --stepfactor <factor>', 'factor between one size and the next; 1: steps of -i', '1')
    .option('-i, --stepbytes <size>', 'difference between one size and the next', '1M')
    .option('-n, --iters <count>', 'timed calls in a row (default: by size, 20 to 1000)')
    .option('-w, --warmup_iters <count>', 'calls at each size before (default: by size, 2 to 1000)')
    .option('-m, --agg_iters <count>', 'calls an iteration; promises are awaited together', '1')
    .option('-c, --check <count>', 'verified calls a row', '1')
    .addOption(
      offering(new Option('-d, --datatype <name>', 'type of the elements').default('float'), [
        ...elementTypes.map((type) => type.name),
        'all',
      ]),
    )
    .addOption(
      offering(new Option('-o, --op <name>', 'operator that combines elements').default('sum'), [...perfOperators, 'all']),
    )
    .option('-r, --root <rank>', 'root of a collective that has one, -1: each in turn', '0')
    .option('-a, --average <which>', 'whose time: 0 rank 0, 1 mean, 2 shortest, 3 longest', '1')
    .option(
      '-z, --blocking <mode>',
      'wait for each call: 1: and a barrier after it, in the time; 2: no barrier; 3: a barrier after each iteration, not in the time',
      '0',
    )
    .addOption(new Option('-g, --ngpus <count>').argParser(one).hideHelp())
    .addOption(new Option('-t, --nthreads <count>').argParser(one).hideHelp())
    .option('-J, --output_file <file>', 'also write JSON lines to a file')
    .option('--json', 'print JSON lines instead of the table')
    .addOption(offering(new Option('--api <name>', 'blocking calls or promises').default('sync'), ['sync', 'promise']))
    .addOption(
      offering(new Option('--memory <name>', 'arrays of comm.alloc, or ordinary ones').default('shared'), ['shared', 'plain']),
    )
    .addOption(new Option('-H, --hosts <list>').argParser(ofLaunch).hideHelp())
    .addOption(new Option('--hostfile <file>').argParser(ofLaunch).hideHelp())
    .option('--program <file>', "run the collective by an algorithm of one's own, in MSCCL's XML or MSCCL++'s JSON")
    .addHelpText(
      'after',
      examples(
        ['two ranks, from 8 bytes to 16 MiB', 'tccl perf all_reduce --ranks 2 -b 8 -e 16M -f 8'],
        ['every type and operator, each checked ten times', 'tccl perf all_reduce --ranks 4 -b 1M -e 1M -d all -o all -c 10'],
        ['messages between two ranks', 'tccl perf osu_latency --ranks 2'],
        ["an algorithm of one's own", 'tccl perf all_reduce --ranks 2 --program pair.xml -b 8K -e 8M -f 4'],
        ['ranks on two hosts', 'tccl run --hosts node0:2,node1:2 tccl perf all_reduce -b 8 -e 16M -f 8'],
        ['ranks that MPI starts', 'mpirun -n 2 tccl perf broadcast -b 1K -e 64M -f 4 --memory plain -J broadcast.jsonl'],
      ),
    )
    .action(async (collective: string, options: CommandOptions, command: Command) => {
      const { findPlacement } = await import('../../runtime/launch/placement.js');
      const { misspeltVariables } = await import('../../runtime/launch/variables.js');
      const { checkRoot, perfOptions, wholeNumber } = await import('../../perf/options.js');
      // Errors are reported before a rank starts.
      const benchmark = benchmarkOf(collective);
      if (benchmark !== undefined) {
        const given = mpiOptions(benchmark, options, (option) => command.getOptionValueSource(option) === 'cli');
        const nRanks = options.ranks === undefined ? undefined : wholeNumber('--ranks', options.ranks, 1, 9999);
        const place = findPlacement(process.env);
        checkRankCount(benchmark, nRanks ?? place?.nRanks ?? 1);
        if (nRanks !== undefined && place === undefined) process.exitCode = await startRanks(nRanks);
        else {
          checkRanks(nRanks, place);
          process.exitCode = await measureMpi(given, options, place?.rank ?? 0);
        }
        return;
      }
      const program = options.program === undefined ? undefined : await programOf(options.program, collective);
      const measured = perfOptions(collective, program === undefined ? options : { ...options, api: 'promise' });
      const nRanks = options.ranks === undefined ? program?.nRanks : wholeNumber('--ranks', options.ranks, 1, 9999);
      if (nRanks !== undefined) checkRoot(measured, nRanks);
      const place = findPlacement(process.env);
      // `tccl run` has already reported it.
      if (place === undefined || (place.rank === 0 && place.launcher !== 'tccl')) misspeltVariables(process.env).forEach(report);
      if (nRanks !== undefined && place === undefined) process.exitCode = await startRanks(nRanks);
      else {
        checkRanks(nRanks, place, options.ranks === undefined ? program : undefined);
        process.exitCode = await measure(measured, options, place?.rank ?? 0, program);
      }
    });
}

/** Names for help and completion. perfOptions() checks them, with a suggestion for misspelt ones. */
function offering<Taker extends Argument | Option>(taker: Taker, names: readonly string[]): Taker {
  taker.argChoices = [...names];
  return taker;
}

/** Options of `tccl run`, which starts ranks on other hosts. */
function ofLaunch(): never {
  throw new InvalidArgumentError('Ranks on several hosts are started by tccl run: tccl run --hosts a:2,b:2 tccl perf …');
}

/** nccl-tests' numbers of threads and of GPUs in each: a process is one rank here. */
function one(text: string): void {
  if (text === '1') return;
  const count = /^\d+$/.test(text) ? text : 'N';
  throw new InvalidArgumentError(`A process is one rank here: --ranks ${count} starts ${count} ranks, as launchers do.`);
}

/** The command line of a rank is this one: there, `--ranks` agrees with the launch. */
function checkRanks(nRanks: number | undefined, place: Placement | undefined, program?: { readonly name: string }): void {
  if (nRanks === undefined || place === undefined || nRanks === place.nRanks) return;
  if (program !== undefined)
    throw new InvalidUsageError(
      'RANK_COUNT_MISMATCH',
      `the program ${program.name} is for ${nRanks} ranks, and ${place.launcher} started ${place.nRanks}`,
      { rank: place.rank },
    );
  throw new InvalidUsageError(
    'RANK_COUNT_MISMATCH',
    `--ranks ${nRanks} would start ranks inside rank ${place.rank} of ${place.nRanks} that ${place.launcher} started: leave it out`,
    { rank: place.rank },
  );
}

async function startRanks(nRanks: number): Promise<number> {
  const { launchRanks } = await import('../../runtime/launch/run.js');
  return launchRanks({
    nRanks,
    command: () => [process.execPath, ...process.execArgv, ...process.argv.slice(1)],
    env: process.env,
    // Only rank 0 prints: its table goes out as it is.
    output: { kind: 'inherited' },
    graceMs: 1000,
    report,
  });
}

function report(line: string): void {
  complain('tccl perf', line);
}

/** The verified program of a file. @throws InputError for a wrong one, or one of another collective */
async function programOf(file: string, collective: string): Promise<AnyProgram> {
  const { readFile } = await import('node:fs/promises');
  const { readProgram } = await import('../../planner/schedule/read-program.js');
  const { verifyProgram } = await import('../../planner/schedule/verify-program.js');
  const { collectivesOfTests } = await import('../../planner/schedule/schedule.js');
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new SystemError('FILE', `--program ${file} cannot be read: ${describeError(cause)}`, { cause });
  });
  return inFile(file, () => {
    const program = readProgram(text);
    if (collectivesOfTests[collective] !== program.collective)
      throw new InputError('CONTENT', `${program.name} is of ${program.collective}, and ${collective} is to be measured`);
    const fault = verifyProgram(program);
    if (fault !== undefined) throw new InputError('CONTENT', `${program.name} is wrong: ${fault}`);
    return program;
  });
}

async function measure(
  given: PerfOptions,
  options: CommandOptions,
  rank: number,
  program: AnyProgram | undefined,
): Promise<number> {
  const { runPerf } = await import('../../perf/run.js');
  const report = await import('../../perf/report.js');
  const { version } = await import('../../version.js');
  return between(given, rank, options, async (comm, print, file) => {
    const reporter = report.all([
      report.progressOn(progressLine(), report.describeHead),
      options.json === undefined ? report.tableReporter(given, version, print) : report.jsonReporter(given, print),
      ...(file === undefined ? [] : [report.jsonReporter(given, file)]),
    ]);
    const runner = program === undefined ? undefined : await comm.program(program);
    const { errors } = await runPerf(
      comm,
      runner === undefined ? given : by(runner, given),
      rank === 0 ? reporter : report.silent,
    );
    await runner?.close();
    return errors > 0 ? 1 : 0;
  });
}

/** Measures a benchmark of OSU or IMB. */
async function measureMpi(given: MpiOptions, options: CommandOptions, rank: number): Promise<number> {
  const { runMpi } = await import('../../perf/mpi/run.js');
  const { all, progressOn, silent } = await import('../../perf/report.js');
  const { formatSize } = await import('../../perf/sizes.js');
  const report = await import('../../perf/mpi/report.js');
  const { version } = await import('../../version.js');
  return between(given, rank, options, async (comm, print, file) => {
    const reporter = all([
      progressOn(progressLine(), formatSize),
      options.json === undefined ? report.mpiTable(given, version, print) : report.mpiJson(given, print),
      ...(file === undefined ? [] : [report.mpiJson(given, file)]),
    ]);
    await runMpi(comm, given, rank === 0 ? reporter : silent);
    return 0;
  });
}

/** Lets a rank measure, with what prints and writes results. */
async function between(
  { api }: Pick<PerfOptions, 'api'>,
  rank: number,
  { output_file: path }: CommandOptions,
  work: (comm: Communicator, print: (text: string) => void, file: ((text: string) => void) | undefined) => Promise<number>,
): Promise<number> {
  const { init } = await import('../../runtime/init/init.js');
  const { fileWriter } = await import('../../perf/report.js');
  const print = rank === 0 ? resultsPrinter() : () => undefined;
  const file = rank === 0 && path !== undefined ? fileWriter(path) : undefined;
  // Over sockets, blocking calls need connections in advance; where ranks share memory that changes nothing.
  const comm = await init(api === 'sync' ? { blocking: true } : {});
  try {
    return await work(comm, print, file);
  } catch (error) {
    // Only rank 0 prints, so it reports the end of the output.
    if (rank !== 0 && error instanceof TcclError && error.code === 'ABORTED' && error.message.endsWith(OUTPUT_ENDED)) return 0;
    const isEnd = error instanceof OutputEnded;
    if (isEnd || (error instanceof SystemError && error.code === 'FILE')) comm.abort(OUTPUT_ENDED);
    if (isEnd) return 0;
    if (api === 'sync' && error instanceof TcclError && error.code === 'UNSUPPORTED') {
      throw new InvalidUsageError('UNSUPPORTED', `${error.message} (--api promise)`, { rank, cause: error });
    }
    throw error;
  } finally {
    await comm.close();
  }
}

/** The same measurement with calls of a program. */
function by(runner: ProgramRunner, options: PerfOptions): PerfOptions {
  const { collective } = options;
  return {
    ...options,
    collective: {
      ...collective,
      run: (_, { send, recv, operator, options: how }) => runner.run(send, recv, operator as ProgramOperator, how),
    },
  };
}

/** Reason that rank 0 gives the other ranks when it aborts. */
const OUTPUT_ENDED = 'the results cannot be written any more';

/** The output cannot be written: its reader is gone, or the disk is full. main.ts reports the latter. */
class OutputEnded extends Error {}

/** Prints until that fails; the measurement is then useless. */
function resultsPrinter(): (text: string) => void {
  let hasEnded = false;
  process.stdout.on('error', () => {
    hasEnded = true;
  });
  return (text) => {
    if (hasEnded) throw new OutputEnded();
    printData(text);
  };
}
