import { counted } from '../../../counted.js';
import { aftermath, type LogFindingCode } from '../rules/codes.js';
import type { Death } from '../deaths/tracker.js';
import { signalName } from '../deaths/signals.js';
import { type LogFinding, namedRanks } from './finding.js';
import type { LogModel } from '../job/model.js';
import { hasEnded, isCaught, isOutlived } from '../job/outcome.js';

/** Ends of processes: the first one that is no answer to another failure is a cause, and all others follow from it. */
export function checkDeaths(model: LogModel): LogFinding[] {
  if (model.deaths.length === 0) return [];
  if (isCaught(model)) return caught(model.deaths);
  const outlived = isOutlived(model);
  // A process that made a communicator after an exception had caught it.
  const deaths = model.deaths.filter(({ place }) => !outlived(place));
  const [first] = inOrder(deaths.filter(isOwn));
  const findings = first === undefined ? [] : [finding(first, deaths)];
  const ends = deaths.filter((death) => !isOwn(death) && !death.isAftermath);
  return [...findings, ...outcomes(ends, first !== undefined)].map((each) => (hasEnded(model) ? remark(each) : each));
}

function caught(deaths: readonly Death[]): LogFinding[] {
  const first = deaths.find(isOwn);
  if (first === undefined) return [];
  const ranks = [...new Set(deaths.flatMap((death) => death.ranks))].sort((a, b) => a - b);
  const { code, problem } = meaning(first, subject(first, ranks));
  return [
    {
      code,
      severity: 'info',
      kind: 'note',
      ...(ranks.length === 0 ? {} : { ranks }),
      problem: problem.replace('ended by an exception of its own', 'had an exception and went on'),
      cause: 'the program caught it: lines of its progress follow',
      remedy: 'look at the traceback if the job failed later',
      quote: first.text,
      places: deaths.slice(0, 8).map(({ place }) => place),
    },
  ];
}

/** Codes of rules that explain the first death: their findings are the cause. */
export function ruleOfFirstDeath(model: LogModel): LogFindingCode | undefined {
  const [first] = inOrder(model.deaths.filter(isOwn));
  return first?.rule?.code;
}

const SIGTERM = 15;
const SIGABRT = 6;
const SIGINT = 2;
const SIGHUP = 1;

/** True for an end that needs no other one to explain it. */
function isOwn({ how, isAftermath, isLauncher }: Death): boolean {
  if (isAftermath) return false;
  if (how.kind === 'exception') return how.type !== 'KeyboardInterrupt';
  if (how.kind === 'exit') return how.code === 126 || how.code === 127;
  if (isLauncher) return how.signal === SIGHUP;
  // Launchers end the others by SIGTERM; PyTorch's watchdog and uncaught C++ exceptions abort.
  return how.signal !== SIGTERM && how.signal !== SIGABRT && how.signal !== SIGINT && how.signal !== SIGHUP;
}

/** The first one first: the rank that a launcher names as such, then by time, then as they stand. */
function inOrder(deaths: readonly Death[]): readonly Death[] {
  const named = deaths.filter(({ isFirst }) => isFirst).flatMap(({ ranks }) => ranks);
  const isNamed = ({ ranks, isFirst }: Death) => isFirst || ranks.some((rank) => named.includes(rank));
  return [...deaths].sort((a, b) => {
    if (isNamed(a) !== isNamed(b)) return isNamed(a) ? -1 : 1;
    // Of one rank, its own words say more than its exit code.
    if ((a.how.kind === 'exception') !== (b.how.kind === 'exception') && (isNamed(a) || sameRank(a, b)))
      return a.how.kind === 'exception' ? -1 : 1;
    if (a.place.file === b.place.file) return a.place.line - b.place.line;
    return a.timeMs === undefined || b.timeMs === undefined ? a.place.file - b.place.file : a.timeMs - b.timeMs;
  });
}

function sameRank(a: Death, b: Death): boolean {
  return a.ranks.some((rank) => b.ranks.includes(rank));
}

function finding(first: Death, all: readonly Death[]): LogFinding {
  const alike = all.filter((other) => isAlike(other, first));
  const ranks = [...new Set(alike.flatMap((death) => death.ranks))].sort((a, b) => a - b);
  const { code, problem, cause, remedy } = meaning(first, subject(first, ranks));
  return {
    code,
    severity: 'error',
    kind: first.how.kind === 'signal' && first.how.signal === 9 && first.helper === undefined ? 'failure' : 'fault',
    ...(ranks.length === 0 ? {} : { ranks }),
    explains: aftermath,
    problem,
    cause,
    remedy,
    quote: first.text,
    places: alike.slice(0, 8).map(({ place }) => place),
  };
}

function isAlike(a: Death, b: Death): boolean {
  if (a.how.kind === 'exception')
    return b.how.kind === 'exception' && a.how.type === b.how.type && a.how.message === b.how.message;
  if (a.how.kind === 'signal') return b.how.kind === 'signal' && a.how.signal === b.how.signal;
  return b.how.kind === 'exit' && a.how.code === b.how.code;
}

function subject({ helper, host }: Death, ranks: readonly number[]): string {
  const whose = ranks.length === 0 ? 'a process' : ranks.length > 12 ? counted(ranks.length, 'rank') : namedRanks(ranks);
  const on = host === undefined ? '' : ` on ${host}`;
  return helper === undefined ? `${whose}${on}` : `a ${helper} of ${ranks.length === 0 ? 'a rank' : whose}${on}`;
}

type Meaning = Pick<LogFinding, 'code' | 'problem' | 'cause' | 'remedy'>;

function meaning({ how, helper, frame, rule }: Death, who: string): Meaning {
  if (how.kind === 'exception') {
    const at = frame === undefined ? '' : `, at ${frame}`;
    return {
      code: rule?.code ?? 'rank-exception',
      problem: `${who} ended by an exception of its own: ${how.type}${how.message === '' ? '' : `: ${how.message}`}${at}`,
      cause: 'an error of the program or its data; NCCL and the other ranks only noticed that this one left',
      remedy: 'mend what the exception says; look at the traceback above that line',
    };
  }
  if (how.kind === 'exit')
    return {
      code: 'command-missing',
      problem: `the program did not start: exit code ${how.code} (${how.code === 127 ? 'the command or a library of it was not found' : 'not executable'})`,
      cause: 'its path or interpreter does not exist in this image or on this host, or it may not be executed',
      remedy: 'run the command by hand in the same container or on the same host; compare PATH and the mounts of all hosts',
    };
  const name = signalName(how.signal);
  switch (how.signal) {
    case 7:
      return {
        code: 'shm-full',
        problem: `${who} died of a bus error (SIGBUS): /dev/shm is full or too small`,
        cause: "pages of /dev/shm that do not exist: the container's /dev/shm (64 MiB by default) is used up",
        remedy:
          '`df -h /dev/shm` in the container; docker run --shm-size=8g or --ipc=host; Kubernetes: an emptyDir with medium: Memory on /dev/shm',
      };
    case 9:
      return helper === undefined
        ? {
            code: 'exit-killed',
            problem: `${who} was killed (${name}), and no other failure is seen before it`,
            cause: "most likely the kernel's or the container's out-of-memory killer; else a scheduler, a platform or a person",
            remedy:
              '`dmesg -T` on that host (oom-kill); `kubectl describe pod` (OOMKilled); `free -g` while it runs; fewer workers, smaller batches, or more memory',
          }
        : {
            code: 'oom-killed',
            problem: `${who} was killed (${name}): the host or container ran out of memory`,
            cause:
              "the kernel's out-of-memory killer takes the largest process; launchers do not kill this one, and a full /dev/shm gives a bus error instead",
            remedy:
              '`dmesg -T` on that host (oom-kill); `free -g` while it runs; fewer workers (num_workers), less prefetching, or more memory; files in /dev/shm count as memory of a container',
          };
    case SIGHUP:
      return {
        code: 'terminal-closed',
        problem: 'the launcher got SIGHUP: the terminal or ssh connection that the job was started from was closed',
        cause: 'the job was started in a session that ended',
        remedy: 'start it with nohup or setsid, in tmux or screen, or by a scheduler',
      };
    default:
      return {
        code: 'exit-crash',
        problem: `${who} crashed (${name})`,
        cause: how.signal === 4 ? 'a library was built for another processor' : 'a bug, or libraries that do not fit together',
        remedy:
          (helper === undefined ? '' : 'num_workers=0 runs its code in the rank itself, with a traceback; ') +
          'look at the stack above the line or in the core (ulimit -c unlimited; gdb); python -X faulthandler; LD_DEBUG=libs for the libraries',
      };
  }
}

/** Ends that follow from something else, or that nothing explains. */
function outcomes(ends: readonly Death[], hasFirst: boolean): LogFinding[] {
  const findings: LogFinding[] = [];
  const add = (
    code: LogFindingCode,
    wanted: (death: Death) => boolean,
    text: (death: Death, who: string) => Omit<Meaning, 'code'>,
    kind: LogFinding['kind'],
  ) => {
    const those = inOrder(ends.filter(wanted));
    const [first] = those;
    if (first === undefined) return;
    const ranks = [...new Set(those.flatMap((death) => death.ranks))].sort((a, b) => a - b);
    findings.push({
      code,
      severity: 'error',
      ...(kind === undefined ? {} : { kind: hasFirst ? 'outcome' : kind }),
      ...(ranks.length === 0 ? {} : { ranks }),
      ...text(first, subject(first, first.ranks)),
      quote: first.text,
      places: those.slice(0, 8).map(({ place }) => place),
    });
  };
  const isSignal = ({ how }: Death, ...numbers: number[]) => how.kind === 'signal' && numbers.includes(how.signal);
  add(
    'interrupted',
    (death) => (death.how.kind === 'exception' && death.how.type === 'KeyboardInterrupt') || isSignal(death, SIGINT),
    ({ frame }) => ({
      problem: `the job was interrupted by hand (Ctrl-C)${frame === undefined ? '' : `, in ${frame}`}`,
      cause: 'somebody gave up waiting: what it was in at that time is where it stood still',
      remedy: 'take the stacks before you interrupt a job that hangs: `py-spy dump` of every rank',
    }),
    'outcome',
  );
  add(
    'ended-outside',
    (death) => death.isLauncher && isSignal(death, SIGTERM),
    ({ how }) => ({
      problem: `the launcher was ended from outside (${how.kind === 'signal' ? signalName(how.signal) : ''})`,
      cause:
        'a scheduler (time limit, preemption), a platform that stops the container, or a launcher on another host after a failure there',
      remedy:
        "look at the scheduler's words about the job (`sacct -j`, `kubectl describe pod`), and at the logs of the other hosts",
    }),
    'outcome',
  );
  add(
    'exit-signal',
    (death) => !death.isLauncher && isSignal(death, SIGTERM, SIGABRT),
    ({ how }, who) => ({
      problem: `${who} was ended by ${how.kind === 'signal' ? signalName(how.signal) : ''}`,
      cause:
        'it follows from something else: a watchdog that gave up, an uncaught C++ exception, or a launcher that ends the others after a failure',
      remedy: 'find what failed first: the first error of any rank, on any host',
    }),
    'outcome',
  );
  add(
    'exit-child',
    ({ how, helper }) => how.kind === 'exit' && helper !== undefined,
    (_, who) => ({
      problem: `${who} ended, and the line names no signal`,
      cause: "the out-of-memory killer, a full /dev/shm, or an error in the data set's own code",
      remedy:
        '`dmesg -T` (oom-kill) and `df -h /dev/shm` of that host decide: more memory or fewer workers (num_workers), or --ipc=host or a larger --shm-size; num_workers=0 shows an error of the code itself',
    }),
    'outcome',
  );
  add(
    'exit-child',
    ({ how, helper }) => how.kind === 'exit' && helper === undefined,
    ({ how, isFirst, host }, who) => ({
      problem: `${isFirst ? `the launcher saw ${who} fail first` : `${who} failed`}${how.kind === 'exit' ? ` (exit code ${how.code})` : ''}, and ${who.startsWith('ranks') ? 'their' : 'its'} own words are not here`,
      cause: `${who.startsWith('ranks') ? "those ranks'" : "that rank's"} own output says why`,
      remedy: `give the log of ${who === 'a process' ? 'the rank that failed first' : who}${host === undefined ? '' : ` (host ${host})`}; torchrun --log-dir or --tee 3 keeps it`,
    }),
    'outcome',
  );
  return findings;
}

function remark(finding: LogFinding): LogFinding {
  return { ...finding, severity: 'info', kind: 'note' };
}
