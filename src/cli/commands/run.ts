import { availableParallelism } from 'node:os';
import { InvalidArgumentError, Option, type Command } from 'commander';
import type { BindingUnit } from '../../runtime/launch/binding.js';
import type { LaunchOptions, RankOutput } from '../../runtime/launch/run.js';
import { InvalidUsageError } from '../../errors.js';
import { colorsFor, complain, examples, shown } from '../output.js';

interface RunOptions {
  readonly ranks: number;
  readonly export?: NodeJS.ProcessEnv;
  readonly bindTo: BindingUnit | 'none';
  /** Seconds. */
  readonly grace: number;
  /** Seconds. */
  readonly timeout?: number;
  readonly prefix: boolean;
  readonly outputDir?: string;
}

export function register(program: Command): void {
  program
    .command('run')
    .summary('start ranks on this host')
    .description(
      'Starts ranks as processes on this host and waits for them. Each learns its place from TCCL_RANK, TCCL_NRANKS, ' +
        'TCCL_LOCAL_RANK, TCCL_LOCAL_NRANKS and TCCL_COMM_ID, which init() reads. Rank 0 gets the standard input. ' +
        'When a rank fails, the others are ended. The exit code is that of the first rank that failed (128 + n for ' +
        'signal n), 124 after --timeout, 126 or 127 when the command cannot be run.',
    )
    .argument('<command...>', 'what each rank runs; its own options follow it as they are')
    .addOption(
      new Option('-n, --ranks <count>', 'number of ranks')
        .argParser(parseRanks)
        .default(availableParallelism(), 'one for each CPU'),
    )
    .option('-x, --export <name[=value]>', 'set a variable for the ranks; can be repeated', parseExport)
    .addOption(
      new Option('--bind-to <unit>', 'bind each rank to a core or a NUMA node of its own')
        .choices(['core', 'numa', 'none'])
        .default('none'),
    )
    .option('--grace <seconds>', 'time for the others when a rank fails, until SIGTERM, and again until SIGKILL', parseSeconds, 1)
    .option('--timeout <seconds>', 'end all ranks after this time', parseTimeout)
    .option('--no-prefix', 'leave out the [rank] before each line')
    .option('--output-dir <directory>', 'write the output of each rank to a file rank-N.log there', parseDirectory)
    .addOption(new Option('-H, --host <list>').argParser(onlyHere).hideHelp())
    .addOption(new Option('--hostfile <file>').argParser(onlyHere).hideHelp())
    .passThroughOptions()
    .addHelpText(
      'after',
      examples(
        ['four ranks of a Node program', 'tccl run -n 4 node job.js --epochs 3'],
        ['with a variable, each rank on a core of its own', 'tccl run -n 2 -x TCCL_ALGO=ring --bind-to core node job.js'],
        ['a log file for each rank, ended after a minute', 'tccl run -n 8 --output-dir logs --timeout 60 node job.js'],
      ),
    )
    .action(async (command: [string, ...string[]], options: RunOptions) => {
      process.exitCode = await run(command, options);
    });
}

async function run(command: [string, ...string[]], options: RunOptions): Promise<number> {
  const { exitCodes, launchRanks } = await import('../../runtime/launch/run.js');
  const { findExecutable } = await import('../../runtime/launch/find-executable.js');
  const { misspeltVariables } = await import('../../runtime/launch/variables.js');
  const env = { ...process.env, ...options.export };
  for (const text of misspeltVariables(env)) report(text);

  const [name] = command;
  const executable = findExecutable(name, env['PATH'] ?? '');
  if (executable.kind === 'missing') {
    report(`${name}: command not found`);
    return exitCodes.notFound;
  }
  if (executable.kind === 'not-executable') {
    const hint = /\.[cm]?[jt]s$/.test(name) ? `; start it with node: tccl run -n ${options.ranks} node ${command.join(' ')}` : '';
    report(`${name}: not executable${hint}`);
    return exitCodes.cannotRun;
  }

  return launchRanks({
    nRanks: options.ranks,
    command: await boundCommands([executable.file, ...command.slice(1)], options, env),
    env,
    output: outputOf(options),
    graceMs: options.grace * 1000,
    timeoutMs: options.timeout === undefined ? undefined : options.timeout * 1000,
    report,
  });
}

async function boundCommands(
  command: [string, ...string[]],
  options: RunOptions,
  env: NodeJS.ProcessEnv,
): Promise<LaunchOptions['command']> {
  if (options.bindTo === 'none') return () => command;
  const { bindRanks } = await import('../../runtime/launch/binding.js');
  const { findExecutable } = await import('../../runtime/launch/find-executable.js');
  const taskset = findExecutable('taskset', env['PATH'] ?? '');
  if (taskset.kind !== 'found') {
    throw new InvalidUsageError(
      'UNSUPPORTED',
      '--bind-to needs the program taskset (Debian package util-linux), which is not there',
    );
  }
  const cpus = bindRanks(options.bindTo, options.ranks);
  return (rank) => [taskset.file, '-c', cpus[rank] ?? '', ...command];
}

function outputOf({ ranks, prefix, outputDir }: RunOptions): RankOutput {
  if (outputDir !== undefined) return { kind: 'files', directory: outputDir };
  if (ranks === 1 && !prefix) return { kind: 'inherited' };
  return { kind: 'merged', stdout: process.stdout, stderr: process.stderr, prefix: prefix ? coloredPrefix : () => '' };
}

/** `[rank] `, on a terminal in a colour that neighbours don't share. */
function coloredPrefix(rank: number, stream: 'stdout' | 'stderr'): string {
  const colors = colorsFor(process[stream]);
  const palette = [colors.cyan, colors.yellow, colors.green, colors.magenta, colors.blue, colors.red];
  return shown(`${palette[rank % palette.length]?.(`[${rank}]`) ?? ''} `);
}

function report(line: string): void {
  complain('tccl run', line);
}

function parseRanks(text: string): number {
  if (text === 'p') throw new InvalidArgumentError('It is -n here: tccl run -n 4 …');
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1 to 9999.');
  return Number(text);
}

function parseSeconds(text: string): number {
  const seconds = Number(text);
  // A timer holds at most 2^31 - 1 ms.
  if (!/^\d+(\.\d+)?$/.test(text) || seconds > 2_000_000)
    throw new InvalidArgumentError('It must be a number of seconds, such as 1 or 0.5.');
  return seconds;
}

/** Options of mpirun for other hosts. */
function onlyHere(): never {
  throw new InvalidArgumentError(
    "Ranks are started on this host only: for several use mpirun or srun, or start each host's ranks with TCCL_RANK, TCCL_NRANKS and TCCL_COMM_ID.",
  );
}

function parseTimeout(text: string): number {
  const seconds = parseSeconds(text);
  if (seconds === 0) throw new InvalidArgumentError('It must be more than 0; leave it out to wait without a limit.');
  return seconds;
}

/** As a variable gives it that is not set. */
function parseDirectory(text: string): string {
  if (text === '') throw new InvalidArgumentError('It names no directory.');
  return text;
}

/** `NAME=value`, or `NAME` for one that is set here: ranks get all of these anyway, so a missing one is a mistake. */
function parseExport(text: string, previous: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const [, name, value] = /^([A-Za-z_]\w*)(?:=(.*))?$/s.exec(text) ?? [];
  if (name === undefined) throw new InvalidArgumentError('It must be NAME or NAME=value.');
  if (value === undefined && process.env[name] === undefined)
    throw new InvalidArgumentError(`${name} is not set here: give it a value, ${name}=…`);
  return { ...previous, [name]: value ?? process.env[name] };
}
