import { InvalidArgumentError, Option, type Command } from 'commander';
import { examples } from '../output.js';
import { runDefaults } from '../run/plain.js';
import type { RunOptions } from '../run/run.js';

export function register(program: Command): void {
  const subcommand = program
    .command('run')
    .summary('start ranks on this host or several')
    .description(
      'Starts ranks as processes on this host, or on the hosts of a list through ssh, and waits for them. Each learns its ' +
        'place from TCCL_RANK, TCCL_NRANKS, TCCL_LOCAL_RANK, TCCL_LOCAL_NRANKS and TCCL_COMM_ID, which init() reads. ' +
        'Rank 0 gets the standard input. ' +
        'When a rank fails, the others are ended. The exit code is that of the first rank that failed (128 + n for ' +
        'signal n), 124 after --timeout, 126 or 127 when the command cannot be run.',
    )
    .argument('<command...>', 'what each rank runs; its own options follow it as they are')
    .addOption(
      new Option(
        '-n, --ranks <count>',
        'number of ranks; with --nnodes that of this node, or of each node: 3,1 (default: one for each CPU, or as many as the hosts take)',
      ).argParser(parseRanks),
    )
    .option('-x, --export <name[=value]>', 'set a variable for the ranks, on every host; can be repeated', parseExport)
    .addOption(
      new Option('--bind-to <unit>', 'bind each rank to a core or a NUMA node of its own')
        .choices(['core', 'numa', 'none'])
        .default(runDefaults.bindTo),
    )
    .option(
      '--grace <seconds>',
      'time for the others when a rank fails, until SIGTERM, and again until SIGKILL; from a signal to tccl run to SIGKILL',
      parseSeconds,
      runDefaults.grace,
    )
    .option('--timeout <seconds>', 'end all ranks after this time', parseTimeout)
    .option('--max-restarts <count>', 'start ranks that fail again, so many times in all; on this host', parseIndex)
    .addOption(
      new Option(
        '--restart <which>',
        'with --max-restarts: all ranks of the job, or the failed rank alone (default: job)',
      ).choices(['job', 'rank']),
    )
    .option('--no-prefix', 'leave out the [rank] before each line')
    .option('--tty <rank>', 'give this rank the terminal: its input and output are those of tccl run', parseIndex)
    .option('--output-dir <directory>', 'write the output of each rank to a file rank-N.log there', parseDirectory)
    .option('--wdir <directory>', 'directory in which the ranks start, on every host', parseDirectory)
    .option('-H, --hosts <list>', 'start ranks on these hosts through ssh: a:4,b:4 (default: those of Slurm, or this one)')
    .addOption(new Option('--host <list>').hideHelp())
    .option('--hostfile <file>', 'the same from a file: lines a slots=4 (Open MPI) or a:4 (MPICH)')
    .option('--ssh <command>', 'your ssh with its options (or TCCL_SSH): "ssh -F config"')
    .option('--remote-node <file>', 'path of node on the other hosts, where it is not the same as here')
    .option('--connect-timeout <seconds>', 'time in which every host must answer', parseTimeout, runDefaults.connectTimeout)
    .option('--nnodes <count>', 'number of nodes, each with a tccl run of its own', parseNodes)
    .option('--node-rank <index>', 'which of them this is, from 0', parseIndex)
    .option('--rendezvous <host:port>', 'where ranks meet: the host of rank 0 and a free port there')
    .option('--job-id <text>', 'with --nnodes: keeps this job apart from others that meet there; the same on all nodes', parseId)
    .option('--collnet', 'start an aggregator here, which adds the all-reduces of several hosts in place of the network')
    .option('--dry-run', 'print which rank goes where, and start none')
    .option('--json', 'with --dry-run: as JSON')
    .passThroughOptions()
    .addHelpText(
      'after',
      examples(
        ['four ranks of a Node program', 'tccl run -n 4 node job.js --epochs 3'],
        ['with a variable, each rank on a core of its own', 'tccl run -n 2 -x TCCL_ALGO=ring --bind-to core node job.js'],
        ['a failed rank is started again, up to three times', 'tccl run -n 4 --max-restarts 3 --restart rank node job.js'],
        ['a log file for each rank, ended after a minute', 'tccl run -n 8 --output-dir logs --timeout 60 node job.js'],
        ['four ranks on each of two hosts, through ssh', 'tccl run --hosts node0:4,node1:4 node job.js'],
        ['on the hosts of a file, with your own ssh settings', 'tccl run --hostfile hosts --ssh "ssh -p 2222" node job.js'],
        ['on the hosts that Slurm allocates, a rank for each task', 'salloc -N 2 -n 8 tccl run node job.js'],
        [
          'the second of two nodes, each with its own tccl run',
          'tccl run --nnodes 2 --node-rank 1 --rendezvous node0:29555 -n 4 node job.js',
        ],
      ),
    )
    .action(async (command: [string, ...string[]], options: RunOptions) => {
      const { run } = await import('../run/run.js');
      process.exitCode = await run(command, options);
    });
  for (const [flags, name] of renamed) subcommand.addOption(new Option(flags).argParser(called(name)).hideHelp());
  for (const flags of ignored) subcommand.addOption(new Option(flags).hideHelp());
}

/** Options of mpirun, srun and torchrun that have another name here. */
const renamed = [
  ['--np <count>', '-n'],
  ['-p <count>', '-n'],
  ['-c <count>', '-n'],
  ['--ntasks <count>', '-n'],
  ['--nproc-per-node <count>', '-n'],
  ['--nproc_per_node <count>', '-n'],
  ['--env <name>', '-x NAME=value'],
  ['-g <name>', '-x NAME=value'],
  ['--mca <name>', '-x TCCL_…=value, for a setting of tccl,'],
  ['--stdin <rank>', '--tty RANK'],
  ['--map-by <unit>', '--bind-to'],
  ['--log-dir <directory>', '--output-dir'],
  ['--output-filename <file>', '--output-dir'],
  ['--machinefile <file>', '--hostfile'],
  ['--node_rank <count>', '--node-rank'],
  ['--rdzv-id <id>', '--job-id'],
  ['--rdzv_id <id>', '--job-id'],
  ['--rdzv-endpoint <address>', '--rendezvous HOST:PORT'],
  ['--rdzv_endpoint <address>', '--rendezvous HOST:PORT'],
  ['--master-addr <address>', '--rendezvous HOST:PORT'],
  ['--master_addr <address>', '--rendezvous HOST:PORT'],
] as const;

/** Options of theirs that change nothing here. */
const ignored = ['--oversubscribe', '--allow-run-as-root', '--tag-output', '--standalone'] as const;

function parseRanks(text: string): number[] {
  if (text === 'p') throw new InvalidArgumentError('It is -n here: tccl run -n 4 …');
  if (!/^[1-9]\d{0,3}(,[1-9]\d{0,3})*$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1 to 9999.');
  return text.split(',').map(Number);
}

function parseNodes(text: string): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1 to 9999.');
  return Number(text);
}

function parseIndex(text: string): number {
  if (!/^\d{1,4}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 0.');
  return Number(text);
}

/** An option of mpirun or torchrun that has another name here. */
function called(name: string): () => never {
  return () => {
    throw new InvalidArgumentError(`It is ${name} here.`);
  };
}

function parseSeconds(text: string): number {
  const seconds = Number(text);
  // A timer holds at most 2^31 - 1 ms.
  if (!/^\d+(\.\d+)?$/.test(text) || seconds > 2_000_000)
    throw new InvalidArgumentError('It must be a number of seconds, such as 1 or 0.5.');
  return seconds;
}

function parseTimeout(text: string): number {
  const seconds = parseSeconds(text);
  if (seconds === 0) throw new InvalidArgumentError('It must be more than 0; leave it out to wait without a limit.');
  return seconds;
}

/** Text that is empty where its variable is not set. */
function parseId(text: string): string {
  if (text === '') throw new InvalidArgumentError('It is empty.');
  return text;
}

/** Text of an unset variable. */
function parseDirectory(text: string): string {
  if (text === '') throw new InvalidArgumentError('It names no directory.');
  return text;
}

/** `NAME=value`, or `NAME` for one that is set here: a missing one is a mistake. */
function parseExport(text: string, previous: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const [, name, value] = /^([A-Za-z_]\w*)(?:=(.*))?$/s.exec(text) ?? [];
  if (name === undefined) throw new InvalidArgumentError('It must be NAME or NAME=value.');
  const own = process.env[name];
  if (value === undefined && own === undefined)
    throw new InvalidArgumentError(`${name} is not set here: give it a value, ${name}=…`);
  return { ...previous, [name]: value ?? own ?? '' };
}
