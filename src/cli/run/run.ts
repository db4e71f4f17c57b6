import { availableParallelism } from 'node:os';
import { createWriteStream, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Writable } from 'node:stream';
import type { BindingUnit } from '../../runtime/launch/binding.js';
import { formatRanks } from '../../runtime/bootstrap/rank-list.js';
import { checkCommand } from '../../runtime/launch/command-check.js';
import { DEFAULT_WARN_AFTER_SECONDS, seconds, value } from '../../runtime/launch/environment.js';
import type { Host, HostPlacement } from '../../runtime/launch/hosts/host-list.js';
import { jobOfNodes } from '../../runtime/launch/job-id.js';
import type { RankOutput } from '../../runtime/launch/job-output.js';
import { launchRanks, type LaunchOptions } from '../../runtime/launch/run.js';
import { misspeltVariables } from '../../runtime/launch/variables.js';
import { InputError, InvalidUsageError } from '../../errors.js';
import { ownPath } from '../../own-module.js';
import { colorsFor, complain, fileProblem, print, printJson, progressLine, shown } from '../output.js';

/** Options of `tccl run`. */
export interface RunOptions {
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
  readonly jobId?: string;
  readonly maxRestarts?: number;
  readonly restart?: 'rank' | 'job';
  readonly oversubscribe?: boolean;
  readonly allowRunAsRoot?: boolean;
  readonly tagOutput?: boolean;
  readonly standalone?: boolean;
  readonly collnet?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

/** Starts the ranks and waits for them. Returns the exit code of `tccl run`. */
export async function run(command: [string, ...string[]], options: RunOptions): Promise<number> {
  refuseContradictions(options);
  const env = { ...process.env, ...options.export };
  for (const text of misspeltVariables(env)) report(text);
  if (options.collnet !== true || options.dryRun === true) return runRanks(command, options, env);
  const { startAggregator } = await import('./aggregator.js');
  const { id, stop } = await startAggregator(env);
  try {
    return await runRanks(command, options, { ...env, TCCL_AGGREGATOR: id });
  } finally {
    stop();
  }
}

async function runRanks(command: [string, ...string[]], options: RunOptions, env: NodeJS.ProcessEnv): Promise<number> {
  const { list, allocated } = await hostsOf(options, env);
  if (list !== undefined && options.maxRestarts !== undefined)
    throw new InvalidUsageError('UNSUPPORTED', '--max-restarts starts ranks of this host only: leave out the list of hosts');
  if (list !== undefined) return runOnHosts(command, list, options, env);

  const part = await partOf(options, env);
  const nRanks = part?.count ?? options.ranks?.[0] ?? allocated ?? availableParallelism();
  const { tty } = options;
  if (tty !== undefined && tty >= nRanks)
    throw new InvalidUsageError('UNSUPPORTED', `--tty ${tty}: there is no such rank; they are 0 to ${nRanks - 1}`);
  if (options.dryRun) {
    const ranks = { first: part?.first ?? 0, count: nRanks, total: part?.total ?? nRanks };
    showPlacements([{ host: { name: 'localhost', slots: undefined }, ranks }], options);
    return 0;
  }
  const directory = enter(options.wdir);
  const check = checkCommand(command, env['PATH'] ?? process.env['PATH'] ?? '', directory);
  if (check.kind === 'refused') {
    report(check.message);
    return check.exitCode;
  }
  return launchRanks({
    nRanks,
    command: await commandsOf(check.command, nRanks, options.bindTo, env['PATH'] ?? process.env['PATH'] ?? ''),
    env,
    directory,
    part,
    output: outputOf(nRanks, options),
    attached: options.tty,
    restart: options.maxRestarts === undefined ? undefined : { scope: options.restart ?? 'job', most: options.maxRestarts },
    ...limits(options, env),
  });
}

async function commandsOf(
  command: readonly [string, ...string[]],
  nRanks: number,
  bindTo: RunOptions['bindTo'],
  path: string,
): Promise<LaunchOptions['command']> {
  if (bindTo === 'none') return () => command;
  const { rankCommands } = await import('../../runtime/launch/rank-commands.js');
  return rankCommands(command, nRanks, bindTo, path);
}

interface HostsOfJob {
  readonly hosts: readonly Host[];
  /** Command that reaches them: words of a shell. */
  readonly reach: string;
  /** Advice for the case that the ranks do not fit. */
  readonly remedy?: string;
}

/**
 * The hosts of the job: those of the user's list, or of Slurm's allocation. Without either, or if Slurm allocated this host
 * alone, ranks start on this host; then perhaps with the number that Slurm allocated.
 */
async function hostsOf(
  options: RunOptions,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly list?: HostsOfJob; readonly allocated?: number | undefined }> {
  const { hosts: text = options.host, hostfile: file, tty } = options;
  if (text !== undefined || file !== undefined) {
    const { parseHostFile, parseHostList } = await import('../../runtime/launch/hosts/host-list.js');
    const hosts = text !== undefined ? parseHostList(text) : parseHostFile(readHostFile(file ?? ''), file ?? '');
    return { list: { hosts, reach: options.ssh ?? (env['TCCL_SSH'] || 'ssh') } };
  }
  if (options.nnodes !== undefined || env['SLURM_JOB_NODELIST'] === undefined) return {};
  const { slurmAllocation } = await import('../../runtime/launch/slurm.js');
  const hosts = slurmAllocation(env);
  if (hosts === undefined) return {};
  const { isThisHost } = await import('../../runtime/launch/hosts/host-list.js');
  if (hosts.every(({ name }) => isThisHost(name))) return { allocated: hosts[0]?.slots };
  if (tty !== undefined)
    throw new InvalidUsageError(
      'UNSUPPORTED',
      `--tty ${tty}: Slurm allocated ${hosts.length === 1 ? 'another host' : 'other hosts'}, and only a rank of this host can have its terminal: start tccl run by srun --pty on an allocated host`,
    );
  return { list: { hosts, reach: 'srun', remedy: 'ask Slurm for more tasks (salloc -n), or choose other numbers with --hosts' } };
}

async function runOnHosts(
  command: [string, ...string[]],
  { hosts, reach, remedy }: HostsOfJob,
  options: RunOptions,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const { placeRanks } = await import('../../runtime/launch/hosts/host-list.js');
  const placements = placeRanks(hosts, options.ranks?.[0], remedy);
  const [first] = placements;
  if (options.rendezvous !== undefined && (await isOfEachHost(options.rendezvous)) && placements.length > 1)
    throw new InvalidUsageError(
      'UNSUPPORTED',
      `--rendezvous ${options.rendezvous} cannot join ${placements.length} hosts: each of them reaches itself there; give a name or address of ${first?.host.name ?? ''}, which has rank 0, or leave --rendezvous out`,
    );
  if (options.dryRun) {
    showPlacements(placements, options);
    return 0;
  }
  const { launchOnHosts } = await import('../../runtime/launch/hosts/launch.js');
  const { splitWords } = await import('../../runtime/launch/hosts/ssh.js');
  const nRanks = first?.ranks.total ?? 0;
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
    programs: {
      ssh: splitWords(reach),
      node: options.remoteNode ?? process.execPath,
      nodeIsGiven: options.remoteNode !== undefined,
      tccl: ownPath('cli/main.js'),
      directory: enter(options.wdir),
    },
    connectMs: options.connectTimeout * 1000,
    address: options.rendezvous,
    onProgress: (line) => (line === '' ? progress.done() : progress.update(line)),
    ...limits(options, env),
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
  if (given('jobId') && !given('nnodes'))
    refuse('--job-id keeps jobs of several tccl run apart (--nnodes); any other job has a secret of its own: leave it out');
  if (given('collnet') && given('nnodes'))
    refuse(
      '--collnet starts an aggregator for the ranks of one tccl run: start tccl aggregator, and set TCCL_AGGREGATOR on every node',
    );
  if (given('restart') && !given('maxRestarts'))
    refuse('--restart needs --max-restarts, the number of times that ranks may be started again');
  if (given('maxRestarts') && given('nnodes'))
    refuse('--max-restarts starts ranks of one host only: each of the tccl run of --nnodes would know only of its own');
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
  const isTrial = env['TCCL_HOSTID'] !== undefined;
  if ((await isOfEachHost(rendezvous)) && nnodes > 1 && !isTrial)
    report(
      `--rendezvous ${rendezvous} joins only nodes of one host, because each host reaches itself there; for nodes on several hosts give a name or address of the host of node 0`,
    );
  const counts = Array.from({ length: nnodes }, (_, node) => ranks[ranks.length === 1 ? 0 : node] ?? 0);
  const sum = (numbers: readonly number[]) => numbers.reduce((total, count) => total + count, 0);
  return {
    first: sum(counts.slice(0, nodeRank)),
    count: counts[nodeRank] ?? 0,
    total: sum(counts),
    meetingPoint: {
      TCCL_COMM_ID: rendezvous,
      TCCL_COMM_SECRET: env['TCCL_COMM_SECRET'] ?? '',
      TCCL_JOB_ID: options.jobId ?? value(env, 'TCCL_JOB_ID') ?? jobOfNodes(env) ?? '',
    },
  };
}

/**
 * True for an address at which each host reaches itself.
 * @throws InvalidArgumentError `UNIQUE_ID` for what is no address
 */
async function isOfEachHost(rendezvous: string): Promise<boolean> {
  const { isLoopback, parseAddress } = await import('../../runtime/bootstrap/address.js');
  const { host } = parseAddress(rendezvous);
  return isLoopback(host) || /^(?:.+\.)?localhost\.?$/i.test(host);
}

function limits(
  { grace, timeout }: RunOptions,
  env: NodeJS.ProcessEnv,
): Pick<LaunchOptions, 'graceMs' | 'timeoutMs' | 'warnAfterMs' | 'holdOf' | 'report'> {
  return {
    graceMs: grace * 1000,
    timeoutMs: timeout === undefined ? undefined : timeout * 1000,
    holdOf: async () => (await import('../inspect/held-up.js')).holdOf(process.pid),
    warnAfterMs: 1000 * seconds(env, 'TCCL_WARN_AFTER', DEFAULT_WARN_AFTER_SECONDS),
    report,
  };
}

/** The absolute path of the ranks' directory. */
function enter(directory: string | undefined): string {
  return resolve(directory ?? '.');
}

function readHostFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new InputError('FILE', fileProblem(error, 'read'), { file, cause: error });
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
  return {
    kind: 'merged',
    stdout: destination('stdout', hostOf !== undefined),
    stderr: destination('stderr', hostOf !== undefined),
    prefix: prefix ? (ranks, stream) => coloredPrefix(ranks, hostOf, stream) : () => '',
  };
}

/** Node writes to a terminal synchronously: after Ctrl-S no heartbeat would reach other hosts. */
function destination(stream: 'stdout' | 'stderr', hasHosts: boolean): Writable {
  return hasHosts && process[stream].isTTY
    ? createWriteStream('', { fd: process[stream].fd, autoClose: false })
    : process[stream];
}

/** `[rank] `, or `[rank host] `, on a terminal in another colour than its neighbours'; of several ranks `[0,2-4] `. */
function coloredPrefix(
  ranks: readonly number[],
  hostOf: ((rank: number) => string) | undefined,
  stream: 'stdout' | 'stderr',
): string {
  const colors = colorsFor(process[stream]);
  const palette = [colors.cyan, colors.yellow, colors.green, colors.magenta, colors.blue, colors.red];
  const hosts = [...new Set(ranks.map((rank) => hostOf?.(rank)))];
  const text = hosts
    .map((host) => `${formatRanks(ranks.filter((rank) => hostOf?.(rank) === host))}${host === undefined ? '' : ` ${host}`}`)
    .join('; ');
  return shown(`${palette[Math.min(...ranks) % palette.length]?.(`[${text}]`) ?? ''} `);
}

function report(line: string): void {
  complain('tccl run', line);
}
