import { availableParallelism } from 'node:os';
import { createWriteStream, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { InvalidArgumentError, Option, type Command } from 'commander';
import type { BindingUnit } from '../../runtime/launch/binding.js';
import type { HostPlacement } from '../../runtime/launch/hosts/host-list.js';
import type { RankOutput } from '../../runtime/launch/job-output.js';
import type { LaunchOptions } from '../../runtime/launch/run.js';
import { describeError, InputError, InvalidUsageError } from '../../errors.js';
import { colorsFor, complain, examples, print, printJson, progressLine, shown } from '../output.js';

interface RunOptions {
  /** One number, or one for each of `nnodes`. */
  readonly ranks?: readonly number[];
  readonly export?: Readonly<Record<string, string>>;
  readonly bindTo: BindingUnit | 'none';
  /** Seconds. */
  readonly grace: number;
  /** Seconds. */
  readonly timeout?: number;
  readonly prefix: boolean;
  readonly tty?: number;
  readonly outputDir?: string;
  readonly wdir?: string;
  readonly hosts?: string;
  readonly host?: string;
  readonly hostfile?: string;
  readonly ssh?: string;
  readonly remoteNode?: string;
  /** Seconds. */
  readonly connectTimeout: number;
  readonly nnodes?: number;
  readonly nodeRank?: number;
  readonly rendezvous?: string;
  readonly oversubscribe?: boolean;
  readonly allowRunAsRoot?: boolean;
  readonly tagOutput?: boolean;
  readonly standalone?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

export function register(program: Command): void {
  program
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
        .default('none'),
    )
    .option('--grace <seconds>', 'time for the others when a rank fails, until SIGTERM, and again until SIGKILL', parseSeconds, 1)
    .option('--timeout <seconds>', 'end all ranks after this time', parseTimeout)
    .option('--no-prefix', 'leave out the [rank] before each line')
    .option('--tty <rank>', 'give this rank the terminal: its input and output are those of tccl run', parseIndex)
    .option('--output-dir <directory>', 'write the output of each rank to a file rank-N.log there', parseDirectory)
    .option('--wdir <directory>', 'directory in which the ranks start, on every host', parseDirectory)
    .option('-H, --hosts <list>', 'start ranks on these hosts through ssh: a:4,b:4')
    .addOption(new Option('--host <list>').hideHelp())
    .option('--hostfile <file>', 'the same from a file: lines a slots=4 (Open MPI) or a:4 (MPICH)')
    .option('--ssh <command>', 'your ssh with its options (or TCCL_SSH): "ssh -F config"')
    .option('--remote-node <file>', 'path of node on the other hosts, where it is not the same as here')
    .option('--connect-timeout <seconds>', 'time in which every host must answer', parseTimeout, 30)
    .option('--nnodes <count>', 'number of nodes, each with a tccl run of its own', parseNodes)
    .option('--node-rank <index>', 'which of them this is, from 0', parseIndex)
    .option('--rendezvous <host:port>', 'where ranks meet: the host of rank 0 and a free port there')
    .option('--dry-run', 'print which rank goes where, and start none')
    .option('--json', 'with --dry-run: as JSON')
    .addOption(hint('--np <count>', '-n'))
    .addOption(hint('-p <count>', '-n'))
    .addOption(hint('-c <count>', '-n'))
    .addOption(hint('--ntasks <count>', '-n'))
    .addOption(hint('--env <name>', '-x NAME=value'))
    .addOption(hint('-g <name>', '-x NAME=value'))
    .addOption(hint('--stdin <rank>', '--tty RANK'))
    .addOption(hint('--map-by <unit>', '--bind-to'))
    .addOption(hint('--log-dir <directory>', '--output-dir'))
    .addOption(hint('--output-filename <file>', '--output-dir'))
    .addOption(hint('--mca <name>', '-x TCCL_…=value, for a setting of tccl,'))
    .addOption(new Option('--oversubscribe').hideHelp())
    .addOption(new Option('--allow-run-as-root').hideHelp())
    .addOption(new Option('--tag-output').hideHelp())
    .addOption(new Option('--standalone').hideHelp())
    .addOption(new Option('--machinefile <file>').argParser(called('--hostfile')).hideHelp())
    .addOption(new Option('--nproc-per-node <count>').argParser(called('-n')).hideHelp())
    .addOption(new Option('--nproc_per_node <count>').argParser(called('-n')).hideHelp())
    .addOption(new Option('--node_rank <count>').argParser(called('--node-rank')).hideHelp())
    .addOption(new Option('--rdzv-endpoint <address>').argParser(called('--rendezvous HOST:PORT')).hideHelp())
    .addOption(new Option('--rdzv_endpoint <address>').argParser(called('--rendezvous HOST:PORT')).hideHelp())
    .addOption(new Option('--master-addr <address>').argParser(called('--rendezvous HOST:PORT')).hideHelp())
    .addOption(new Option('--master_addr <address>').argParser(called('--rendezvous HOST:PORT')).hideHelp())
    .passThroughOptions()
    .addHelpText(
      'after',
      examples(
        ['four ranks of a Node program', 'tccl run -n 4 node job.js --epochs 3'],
        ['with a variable, each rank on a core of its own', 'tccl run -n 2 -x TCCL_ALGO=ring --bind-to core node job.js'],
        ['a log file for each rank, ended after a minute', 'tccl run -n 8 --output-dir logs --timeout 60 node job.js'],
        ['four ranks on each of two hosts, through ssh', 'tccl run --hosts node0:4,node1:4 node job.js'],
        ['on the hosts of a file, with your own ssh settings', 'tccl run --hostfile hosts --ssh "ssh -p 2222" node job.js'],
        [
          'the second of two nodes, each with its own tccl run',
          'tccl run --nnodes 2 --node-rank 1 --rendezvous node0:29555 -n 4 node job.js',
        ],
      ),
    )
    .action(async (command: [string, ...string[]], options: RunOptions) => {
      process.exitCode = await run(command, options);
    });
}

async function run(command: [string, ...string[]], options: RunOptions): Promise<number> {
  refuseContradictions(options);
  const { misspeltVariables } = await import('../../runtime/launch/variables.js');
  const env = { ...process.env, ...options.export };
  for (const text of misspeltVariables(env)) report(text);

  const isOnHosts = (options.hosts ?? options.host ?? options.hostfile) !== undefined;
  if (isOnHosts) return runOnHosts(command, options, env);

  const part = await partOf(options, env);
  const nRanks = part?.count ?? options.ranks?.[0] ?? availableParallelism();
  const { tty } = options;
  if (tty !== undefined && tty >= nRanks)
    throw new InvalidUsageError('UNSUPPORTED', `--tty ${tty}: there is no such rank; they are 0 to ${nRanks - 1}`);
  if (options.dryRun) {
    const ranks = { first: part?.first ?? 0, count: nRanks, total: part?.total ?? nRanks };
    showPlacements([{ host: { name: 'localhost', slots: undefined }, ranks }], options);
    return 0;
  }
  const { checkCommand } = await import('../../runtime/launch/command-check.js');
  const { rankCommands } = await import('../../runtime/launch/rank-commands.js');
  const { launchRanks } = await import('../../runtime/launch/run.js');
  const directory = enter(options.wdir);
  const check = checkCommand(command, env['PATH'] ?? process.env['PATH'] ?? '', directory);
  if (check.kind === 'refused') {
    report(check.message);
    return check.exitCode;
  }
  return launchRanks({
    nRanks,
    command: rankCommands(check.command, nRanks, options.bindTo, env['PATH'] ?? process.env['PATH'] ?? ''),
    env,
    directory,
    part,
    output: outputOf(nRanks, options),
    attached: options.tty,
    ...limits(options),
  });
}

async function runOnHosts(command: [string, ...string[]], options: RunOptions, env: NodeJS.ProcessEnv): Promise<number> {
  const { parseHostFile, parseHostList, placeRanks } = await import('../../runtime/launch/hosts/host-list.js');
  const list = options.hosts ?? options.host;
  const file = options.hostfile;
  const hosts = list !== undefined ? parseHostList(list) : parseHostFile(readHostFile(file ?? ''), file ?? '');
  const placements = placeRanks(hosts, options.ranks?.[0]);
  if (options.dryRun) {
    showPlacements(placements, options);
    return 0;
  }
  const { launchOnHosts } = await import('../../runtime/launch/hosts/launch.js');
  const { splitWords } = await import('../../runtime/launch/hosts/ssh.js');
  const { parseAddress } = await import('../../runtime/bootstrap/address.js');
  if (options.rendezvous !== undefined) parseAddress(options.rendezvous);
  const nRanks = placements[0]?.ranks.total ?? 0;
  const hostOf = new Map(
    placements.flatMap(({ host, ranks }) =>
      Array.from({ length: ranks.count }, (_, i): [number, string] => [ranks.first + i, host.name]),
    ),
  );
  const progress = progressLine();
  return launchOnHosts({
    placements,
    command,
    env,
    exported: options.export ?? {},
    bindTo: options.bindTo,
    output: outputOf(nRanks, options, (rank) => hostOf.get(rank) ?? ''),
    ssh: splitWords(options.ssh ?? (env['TCCL_SSH'] || 'ssh')),
    programs: {
      node: options.remoteNode ?? process.execPath,
      tccl: fileURLToPath(new URL('../main.js', import.meta.url)),
      directory: enter(options.wdir),
    },
    connectMs: options.connectTimeout * 1000,
    address: options.rendezvous,
    onProgress: (line) => (line === '' ? progress.done() : progress.update(line)),
    ...limits(options),
  });
}

/** Options of other launchers for behaviour that is the default here. */
const needless = [
  ['oversubscribe', '--oversubscribe'],
  ['allowRunAsRoot', '--allow-run-as-root'],
  ['tagOutput', '--tag-output'],
  ['standalone', '--standalone'],
] as const;

/** Refuses options that exclude each other, or that need another one. */
function refuseContradictions(options: RunOptions): void {
  const given = (name: keyof RunOptions) => options[name] !== undefined;
  const hosts = (['hosts', 'host', 'hostfile'] as const).filter(given);
  const refuse = (text: string): never => {
    throw new InvalidUsageError('UNSUPPORTED', text);
  };
  for (const [name, flag] of needless)
    if (given(name)) refuse(`${flag} is not needed here: tccl run always does so; leave it out`);
  if (given('tty') && (hosts.length > 0 || given('nnodes')))
    refuse('--tty gives a terminal to a rank that tccl run starts on this host: leave out --hosts, --hostfile and --nnodes');
  if (hosts.length > 1) refuse('--hosts and --hostfile both name the hosts: give one of them');
  if (hosts.length > 0 && given('nnodes'))
    refuse('--hosts starts the ranks of all hosts from here, --nnodes those of this node only: give one of them');
  if (hosts.length === 0 && !given('nnodes') && given('rendezvous')) refuse('--rendezvous needs --nnodes or --hosts');
  if (hosts.length === 0)
    for (const [name, flag] of [
      ['ssh', '--ssh'],
      ['remoteNode', '--remote-node'],
    ] as const)
      if (given(name)) refuse(`${flag} needs --hosts or --hostfile: without them all ranks start on this host`);
  if (given('nodeRank') && !given('nnodes')) refuse('--node-rank needs --nnodes, the number of nodes');
  if (!given('nnodes') && (options.ranks?.length ?? 1) > 1)
    refuse(`-n ${options.ranks?.join() ?? ''}: a number for each node needs --nnodes`);
  if (options.json && !options.dryRun) refuse('--json needs --dry-run: the output of a job is that of its ranks');
}

/** The place of this node's ranks in a job of several nodes, each with its own `tccl run`. */
async function partOf(
  options: RunOptions,
  env: NodeJS.ProcessEnv,
): Promise<(LaunchOptions['part'] & { count: number }) | undefined> {
  const { nnodes, nodeRank = nnodes === 1 ? 0 : undefined, rendezvous, ranks = [availableParallelism()] } = options;
  if (nnodes === undefined || (nnodes === 1 && rendezvous === undefined)) return undefined;
  const refuse = (text: string) => new InvalidUsageError('UNSUPPORTED', text);
  if (nodeRank === undefined) throw refuse(`--nnodes ${nnodes} needs --node-rank, which of them this is: 0 to ${nnodes - 1}`);
  if (nodeRank >= nnodes) throw refuse(`--node-rank ${nodeRank} is not one of ${nnodes} nodes: they are 0 to ${nnodes - 1}`);
  if (rendezvous === undefined)
    throw refuse(
      `--nnodes ${nnodes} needs --rendezvous HOST:PORT: the host of node 0 and a free port there, the same on every node`,
    );
  if (ranks.length > 1 && ranks.length !== nnodes)
    throw refuse(`-n ${ranks.join()} has ${ranks.length} numbers for ${nnodes} nodes`);
  const { parseAddress } = await import('../../runtime/bootstrap/address.js');
  parseAddress(rendezvous);
  const counts = Array.from({ length: nnodes }, (_, node) => ranks[ranks.length === 1 ? 0 : node] ?? 0);
  const sum = (numbers: readonly number[]) => numbers.reduce((total, count) => total + count, 0);
  return {
    first: sum(counts.slice(0, nodeRank)),
    count: counts[nodeRank] ?? 0,
    total: sum(counts),
    meetingPoint: { TCCL_COMM_ID: rendezvous, TCCL_COMM_SECRET: env['TCCL_COMM_SECRET'] ?? '' },
  };
}

function limits({ grace, timeout }: RunOptions): Pick<LaunchOptions, 'graceMs' | 'timeoutMs' | 'report'> {
  return { graceMs: grace * 1000, timeoutMs: timeout === undefined ? undefined : timeout * 1000, report };
}

/** The absolute path of the ranks' directory. */
function enter(directory: string | undefined): string {
  return resolve(directory ?? '.');
}

function readHostFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new InputError('FILE', `cannot be read: ${describeError(error)}`, { file, cause: error });
  }
}

function showPlacements(placements: readonly HostPlacement[], { json }: RunOptions): void {
  const rows = placements.map(({ host, ranks }) => ({ host: host.name, first: ranks.first, count: ranks.count }));
  const nRanks = placements[0]?.ranks.total ?? 0;
  if (json) {
    printJson({ nRanks, hosts: rows });
    return;
  }
  const width = Math.max(...rows.map(({ host }) => host.length));
  print(
    ...rows.map(({ host, first, count }) => {
      const ranks = count === 1 ? `rank ${first}` : `ranks ${first} to ${first + count - 1}`;
      return `${host.padEnd(width)}  ${ranks} of ${nRanks}`;
    }),
  );
}

function outputOf(nRanks: number, { prefix, outputDir }: RunOptions, hostOf?: (rank: number) => string): RankOutput {
  if (outputDir !== undefined) return { kind: 'files', directory: outputDir };
  if (nRanks === 1 && !prefix) return { kind: 'inherited' };
  const name = hostOf === undefined ? () => '' : (rank: number) => ` ${hostOf(rank)}`;
  return {
    kind: 'merged',
    stdout: destination('stdout', hostOf !== undefined),
    stderr: destination('stderr', hostOf !== undefined),
    prefix: prefix ? (rank, stream) => coloredPrefix(rank, name(rank), stream) : () => '',
  };
}

/** Node writes to a terminal synchronously: after Ctrl-S no heartbeat would reach other hosts. */
function destination(stream: 'stdout' | 'stderr', hasHosts: boolean): Writable {
  return hasHosts && process[stream].isTTY
    ? createWriteStream('', { fd: process[stream].fd, autoClose: false })
    : process[stream];
}

/** `[rank] `, or `[rank host] `, on a terminal in another colour than its neighbours'. */
function coloredPrefix(rank: number, host: string, stream: 'stdout' | 'stderr'): string {
  const colors = colorsFor(process[stream]);
  const palette = [colors.cyan, colors.yellow, colors.green, colors.magenta, colors.blue, colors.red];
  return shown(`${palette[rank % palette.length]?.(`[${rank}${host}]`) ?? ''} `);
}

function report(line: string): void {
  complain('tccl run', line);
}

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

/** A hidden option of mpirun, srun or torchrun that has another name here. */
function hint(flags: string, name: string): Option {
  return new Option(flags).argParser(called(name)).hideHelp();
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
