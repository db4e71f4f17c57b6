import { basename } from '#platform/paths';
import { printable } from '../../../printable.js';
import { InvalidUsageError } from '../../../errors.js';

/** Command that reaches other hosts, and paths of node and the tccl command there. */
export interface RemotePrograms {
  /** Words of the user's own command for ssh; its options override ours. */
  readonly ssh: readonly string[];
  readonly node: string;
  /** True if the user named node: no other one may take its place. */
  readonly nodeIsGiven?: boolean;
  readonly tccl: string;
  readonly directory: string;
}

/** The oldest version of Node that package.json allows. */
const OLDEST_NODE = 20;

/**
 * Starts the agent: node and tccl at the same paths as here, else tccl in the directory of the job, else the one in PATH.
 * The names are arguments ($1, $2, $3; $4 is the command to look for as node), so the shell interprets no character in them. The
 * version of Node is checked before tccl, which an older one cannot run; Bun and Deno write theirs without a `v`.
 */
const SCRIPT = [
  'n=$1; [ -x "$n" ] || n=$(command -v "$4") || { echo "tccl-host-lacks node"; exit 127; }',
  `v=$("$n" --version </dev/null); m=\${v#v}; case $v in v[0-9]*) [ "\${m%%.*}" -ge ${OLDEST_NODE} ] || { echo "tccl-host-lacks version $v $n"; exit 127; } ;; esac`,
  't=$2; [ -f "$t" ] || t=$3/node_modules/tccl/dist/cli/main.js; [ -f "$t" ] && exec "$n" "$t" run-host',
  'PATH=${n%/*}:$PATH; command -v tccl >/dev/null || { echo "tccl-host-lacks tccl"; exit 127; }; exec tccl run-host',
].join('; ');

/**
 * Splits the text of `--ssh` or `TCCL_SSH` into words as a shell does, with quotes and backslashes.
 *
 * @throws InvalidUsageError `ENVIRONMENT` when a quote does not end or there is no word
 */
export function splitWords(text: string): string[] {
  const word = /(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+/gs;
  const words = text.match(word) ?? [];
  if (words.length === 0 || text.replace(word, '').trim() !== '')
    throw new InvalidUsageError('ENVIRONMENT', `--ssh ${printable(text)} is no command: write for example --ssh 'ssh -F config'`);
  return words.map((word) =>
    word.replace(
      /'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)/gs,
      (_, single?: string, double?: string, escaped?: string) => single ?? double?.replace(/\\(["\\$`])/g, '$1') ?? escaped ?? '',
    ),
  );
}

/** Options of srun for the agent of a host: it takes the whole host, beside whatever else runs in the job's allocation. */
const SRUN = ['--nodes=1', '--ntasks=1', '--overlap', '--cpu-bind=none', '--mpi=none', '--unbuffered'];

/** The command that starts the agent of a host. Nothing in it is secret: every user may read the arguments of processes. */
export function sshCommand(host: string, programs: RemotePrograms, connectSeconds: number): readonly [string, ...string[]] {
  const [program = 'ssh', ...options] = programs.ssh;
  const ours =
    basename(program) === 'ssh'
      ? ['-T', '-o', 'BatchMode=yes', '-o', `ConnectTimeout=${connectSeconds}`, '-o', 'ServerAliveInterval=5', '--']
      : [];
  const words = ['/bin/sh', '-c', SCRIPT, 'tccl-host', programs.node, programs.tccl, programs.directory];
  words.push(programs.nodeIsGiven === true ? programs.node : 'node');
  if (isSrun(programs)) return [program, ...options, ...SRUN, `--nodelist=${host}`, ...words];
  return [program, ...options, ...ours, host, ['exec', ...words].map(shellWord).join(' ')];
}

/** Name of the way to other hosts in messages. */
export function wayName(programs: RemotePrograms): string {
  return isSrun(programs) ? 'srun' : 'ssh';
}

/** True for Slurm's srun, which takes options and words where ssh takes a host and a line for its shell. */
function isSrun({ ssh }: RemotePrograms): boolean {
  return basename(ssh[0] ?? '') === 'srun';
}

/** A line for the user to try. Of a program other than ssh, the options stay hidden: there may be a password among them. */
export function byHand(programs: RemotePrograms, host: string, ...words: readonly string[]): string {
  const { ssh } = programs;
  const [program = 'ssh', ...options] = ssh;
  const destination = isSrun(programs) ? `--nodelist=${host}` : host;
  const known =
    ['ssh', 'srun'].includes(basename(program)) || options.length === 0 ? ssh.map(shellWord) : [shellWord(program), '…'];
  return `\`${printable([...known, ...[destination, ...words].map(shellWord)].join(' '))}\``;
}

function shellWord(text: string): string {
  return /^[\w/.=:@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** End of an ssh before its agent could greet. */
interface FailedStart {
  readonly host: string;
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** One line about a host where the agent could not be started, with the remedy. */
export function explainFailedStart({ host, exitCode, signal, stdout, stderr }: FailedStart, programs: RemotePrograms): string {
  const lines = stderr
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const lineOf = (pattern: RegExp) => lines.find((line) => pattern.test(line));
  const line = (text: string) => printable(text.replace(/\.$/, ''));
  const bare = host.replace(/^.*@/, '');

  const [, lacks, version, node] = /^tccl-host-lacks (\w+)(?: (\S+) (.*))?$/m.exec(stdout) ?? [];
  if (lacks === 'version')
    return `host ${host} has Node ${version ?? ''} at ${printable(node ?? '')}, and tccl needs ${OLDEST_NODE} or newer: install that, or give its path with --remote-node`;
  if (lacks === 'node' && programs.nodeIsGiven === true)
    return `host ${host} has no ${programs.node}, which --remote-node names: give the path of node there, or leave it out`;
  if (lacks === 'node')
    return `host ${host} has no node, neither ${programs.node} nor in the PATH that ssh gets there: install Node ${OLDEST_NODE} or newer, or give its path with --remote-node`;
  if (lacks === 'tccl')
    return `host ${host} has no tccl, neither ${programs.tccl} nor in ${programs.directory} or the PATH that ssh gets there: install the same version there`;

  const changed = lineOf(/REMOTE HOST IDENTIFICATION HAS CHANGED/);
  if (changed !== undefined)
    return `host ${host} has another host key than the one known here: if that is right, remove the old one (ssh-keygen -R ${bare}) and log in once by hand`;
  if (lineOf(/Host key verification failed|authenticity of host|No .* host key is known/) !== undefined)
    return `the key of host ${host} is not known here: log in once by hand (${byHand(programs, host)}) and check the key, or add it to known_hosts`;
  const denied = lineOf(/Permission denied|Too many authentication failures/);
  if (denied !== undefined)
    return `ssh may not log in to host ${host} without a password (${line(denied)}): set up a key (ssh-copy-id ${host}), or add yours to the ssh agent (ssh-add)`;
  const unresolved = lineOf(/Could not resolve hostname/);
  if (unresolved !== undefined)
    return `the name of host ${host} does not resolve (${line(unresolved)}): check its spelling, or add it to DNS, /etc/hosts or ~/.ssh/config`;
  const refused = lineOf(/Connection refused/);
  if (refused !== undefined)
    return `host ${host} refuses ssh (${line(refused)}): start sshd there, or give its port in ~/.ssh/config or with --ssh 'ssh -p PORT'`;
  const unreachable = lineOf(/timed out|No route to host|Network is unreachable|Host is down/i);
  if (unreachable !== undefined)
    return `host ${host} cannot be reached (${line(unreachable)}): check that it is up, its name, and the firewall between`;

  const end = signal === null ? `exit code ${exitCode ?? 0}` : signal;
  const last = lines.findLast((text) => /error/i.test(text)) ?? lines.at(-1) ?? stdout.trim().split('\n').at(-1) ?? '';
  if (/unknown command 'run-host'/.test(stderr))
    return `host ${host} has an older tccl, which cannot take part: install the same version there`;
  return `tccl could not be started on host ${host}: ${wayName(programs)} ended with ${end}${last === '' ? '' : ` (${line(last)})`}; check that ${byHand(programs, host, programs.node, '--version')} works by hand`;
}
