import { constants } from '#platform/system';
import { afterWatching } from '../../progress/watch-clock.js';
import type { BindingUnit } from '../binding.js';
import { checkCommand } from '../command-check.js';
import { DEFAULT_HEARTBEAT_SECONDS, seconds, type Environment } from '../environment.js';
import { JobOutput, type RankOutput } from '../job-output.js';
import { exitCodes, Job, type JobOptions } from '../job.js';
import { LocalRanks } from '../local-ranks.js';
import { chosenMeetingPoint, freeAddress, meetingPointAt } from '../meeting-point.js';
import { rankCommands } from '../rank-commands.js';
import { launcherVariables, variables } from '../variables.js';
import { isThisHost, type HostPlacement } from './host-list.js';
import { endsOf, meetingAddress } from './meeting-host.js';
import { HostRefusal, RemoteRanks, type Readiness } from './remote-ranks.js';
import { byHand, sshCommand, type RemotePrograms } from './ssh.js';
import { defined } from '../../../defined.js';

interface HostsLaunchOptions extends JobOptions {
  readonly placements: readonly HostPlacement[];
  readonly command: readonly [string, ...string[]];
  /** This process's environment and the user's own variables for the ranks. */
  readonly env: NodeJS.ProcessEnv;
  /** The user's variables for the ranks: they reach every host. */
  readonly exported: Readonly<Record<string, string>>;
  readonly bindTo: BindingUnit | 'none';
  readonly output: RankOutput;
  readonly programs: RemotePrograms;
  /** Time in which every host must have answered, milliseconds. */
  readonly connectMs: number;
  /** `host:port` where the ranks meet, if the user chose it. */
  readonly address?: string | undefined;
  /** Called with a line about the progress of the start. */
  readonly onProgress?: (line: string) => void;
}

/** Time for further hosts to fail after the first one, so that all are reported, milliseconds. */
const MORE_FAILURES_MS = 1000;

/**
 * Starts ranks on several hosts through the user's own ssh, and waits until all have ended, as launchRanks() does on one.
 *
 * Nothing starts before every host is ready. When a host is lost, its ranks count as failed; its agent ends them there.
 *
 * @returns the exit code of the first rank that failed, or that of a host that refused
 * @throws SystemError, InvalidUsageError, InvalidArgumentError as launchRanks() and the choice of an address
 */
export async function launchOnHosts(options: HostsLaunchOptions): Promise<number> {
  const { placements, env, graceMs, timeoutMs } = options;
  const heartbeatMs = seconds(env, 'TCCL_HEARTBEAT', DEFAULT_HEARTBEAT_SECONDS) * 1000;
  const total = defined(placements[0]).ranks.total;
  const here = placements.find(({ host }) => isThisHost(host.name));
  const there = placements.filter((placement) => placement !== here);
  const { run, refusal: own } = commandsHere(here, options);
  const output = new JobOutput(options.output, 0, total);
  const remote = there.map(({ host, ranks }) => {
    const line = sshCommand(host.name, options.programs, Math.ceil(options.connectMs / 1000));
    return new RemoteRanks(host.name, ranks, line, options.programs, output);
  });
  const connecting = new Connecting(remote, options, own);
  try {
    const [first] = await connecting.all((group) => group.greeted);
    const choosesHere = placements[0] === here && options.address === undefined;
    const hereAddress = choosesHere
      ? await (first === undefined ? freeAddress('127.0.0.1') : meetingAddress(env, endsOf(first.sshConnection).client))
      : undefined;
    const ready = await connecting.last((group, index): Promise<Readiness> => {
      const { host, ranks } = there[index] as HostPlacement;
      return group.prepare({
        type: 'prepare',
        directory: options.programs.directory,
        command: options.command,
        env: {
          ...passedVariables(env),
          ...options.exported,
          ...(host.interfaceName === undefined ? {} : { TCCL_SOCKET_IFNAME: host.interfaceName }),
        },
        bindTo: options.bindTo,
        ranks,
        graceMs,
        timeoutMs,
        heartbeatMs,
        isMeetingHost: options.address === undefined && ranks.first === 0,
        nodeIsGiven: options.programs.nodeIsGiven === true,
      });
    });
    const meetingPoint =
      options.address === undefined
        ? chosenMeetingPoint(hereAddress ?? defined(ready[0]).address ?? '')
        : meetingPointAt(options.address);
    connecting.done();

    for (const group of remote) group.start(meetingPoint);
    const { directory } = options.programs;
    const ofHere = { env, directory, meetingPoint, output, input: 'inherit', graceMs, timeoutMs } as const;
    const local =
      here === undefined || run === undefined
        ? []
        : [new LocalRanks({ ...ofHere, ranks: here.ranks, command: run, host: here.host.name })];
    return await new Job(options, [...local, ...remote], output).finished();
  } catch (error) {
    if (!(error instanceof HostRefusal)) throw error;
    return error.exitCode;
  } finally {
    connecting.done();
    await Promise.all(remote.map((group) => group.close()));
    output.close();
  }
}

interface HostFailure {
  readonly host: string;
  readonly refusal: HostRefusal;
}

/** Commands of the ranks of this host, or its own refusal, in the form of another host's; neither if it has no ranks. */
function commandsHere(
  here: HostPlacement | undefined,
  { command, env, bindTo, programs }: HostsLaunchOptions,
): { readonly run?: ReturnType<typeof rankCommands>; readonly refusal?: HostFailure } {
  if (here === undefined) return {};
  const path = env['PATH'] ?? '';
  const check = checkCommand(command, path, programs.directory);
  if (check.kind === 'runnable') return { run: rankCommands(check.command, here.ranks.count, bindTo, path) };
  const { name: host } = here.host;
  const { message, exitCode } = check;
  return { refusal: { host, refusal: new HostRefusal(`host ${host}: ${message}`, exitCode, message) } };
}

/** The time until all hosts are ready: progress, the deadline, failures, and signals to the launcher. */
class Connecting {
  readonly #remote: readonly RemoteRanks[];
  readonly #options: HostsLaunchOptions;
  /** The failure of this host, which is reported with the others. */
  readonly #own: HostFailure | undefined;
  readonly #stopWaiting: () => void;
  readonly #handlers = new Map<NodeJS.Signals, () => void>();
  readonly #interrupted: Promise<never>;
  readonly #late: Promise<never>;

  constructor(remote: readonly RemoteRanks[], options: HostsLaunchOptions, own: HostFailure | undefined) {
    this.#remote = remote;
    this.#options = options;
    this.#own = own;
    let fail: (refusal: HostRefusal) => void = () => undefined;
    let interrupt: (refusal: HostRefusal) => void = () => undefined;
    this.#late = new Promise((_, reject) => (fail = reject));
    this.#interrupted = new Promise((_, reject) => (interrupt = reject));
    for (const promise of [this.#late, this.#interrupted]) promise.catch(() => undefined);
    this.#stopWaiting = afterWatching(options.connectMs, () => fail(new HostRefusal('', exitCodes.failed)));
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      const handler = () => interrupt(new HostRefusal('', 128 + constants.signals[signal]));
      this.#handlers.set(signal, handler);
      process.on(signal, handler);
    }
  }

  /** {@link all} for the last step, after which this host's own failure is reported in any case. */
  async last<T>(step: (group: RemoteRanks, index: number) => Promise<T>): Promise<T[]> {
    const results = await this.all(step);
    if (this.#own === undefined) return results;
    this.#report([this.#own]);
    throw this.#own.refusal;
  }

  /**
   * Waits until `step` is done on all hosts, and reports every host where it fails: those that fail soon after the first one
   * together, later ones as they come.
   *
   * @throws HostRefusal when it was reported
   */
  async all<T>(step: (group: RemoteRanks, index: number) => Promise<T>): Promise<T[]> {
    const { placements, onProgress } = this.#options;
    const pending = new Set(this.#remote);
    const failures: HostFailure[] = [];
    let reported = 0;
    let isOver = false;
    let firstFailed: () => void = () => undefined;
    const oneFailed = new Promise<void>((resolve) => (firstFailed = resolve));
    const show = () => {
      const waiting = pending.size === 1 ? 'host' : 'hosts';
      if (pending.size === 0) return;
      if (reported > 0) onProgress?.(`waiting for ${pending.size} more ${waiting} to answer`);
      else onProgress?.(`${placements.length - pending.size} of ${placements.length} hosts ready`);
    };
    const reportNew = () => {
      if (isOver) return;
      const fresh = failures.slice(reported);
      if (reported === 0 && this.#own !== undefined) fresh.unshift(this.#own);
      reported = failures.length;
      this.#report(fresh);
      show();
    };
    show();
    const results: T[] = [];
    const ended = Promise.all(
      this.#remote.map(async (group, index) => {
        try {
          results[index] = await step(group, index);
          pending.delete(group);
          show();
        } catch (error) {
          pending.delete(group);
          if (!(error instanceof HostRefusal)) throw error;
          failures.push({ host: group.host, refusal: error });
          firstFailed();
          if (reported > 0) reportNew();
        }
      }),
    );
    ended.catch(() => undefined);
    const grouped = oneFailed.then(
      () => new Promise<void>((resolve) => afterWatching(MORE_FAILURES_MS, resolve, { ref: false })),
    );
    try {
      await Promise.race([ended, grouped, this.#late, this.#interrupted]);
      if (failures.length > 0) reportNew();
      await Promise.race([ended, this.#late, this.#interrupted]);
    } catch (error) {
      onProgress?.('');
      if (!(error instanceof HostRefusal) || error.exitCode !== exitCodes.failed) throw error;
      for (const { host } of pending) failures.push({ host, refusal: this.#lateness(host) });
      reportNew();
    } finally {
      isOver = true;
    }
    const [first] = failures;
    if (first === undefined) return results;
    onProgress?.('');
    throw (this.#own ?? first).refusal;
  }

  #lateness(host: string): HostRefusal {
    const { connectMs, programs } = this.#options;
    return new HostRefusal(
      `host ${host} has not answered within ${connectMs / 1000} s: check that ${byHand(programs, host, 'true')} works by hand, or give it longer with --connect-timeout`,
      exitCodes.failed,
    );
  }

  /** Prints a line for each host, or one for several with the same, in the order of the user's list. */
  #report(failures: readonly HostFailure[]): void {
    const { placements, report, onProgress } = this.#options;
    if (failures.length > 0) onProgress?.('');
    const inOrder = placements.flatMap(({ host }) => failures.filter((failure) => failure.host === host.name));
    const lines = inOrder.map(({ refusal }) => {
      const same = inOrder.filter((other) => refusal.reason !== undefined && other.refusal.reason === refusal.reason);
      return same.length > 1 ? `hosts ${same.map(({ host }) => host).join(', ')}: ${refusal.reason ?? ''}` : refusal.message;
    });
    for (const line of new Set(lines)) report(line);
  }

  /** Ends the handling of signals, which then go to the ranks. */
  done(): void {
    this.#stopWaiting();
    this.#options.onProgress?.('');
    for (const [signal, handler] of this.#handlers) process.off(signal, handler);
  }
}

/** Variables of this process for ranks on other hosts: those of tccl and NCCL, but not those of another job. */
function passedVariables(env: Environment): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, text]) =>
      text !== undefined && !launcherVariables.includes(name) && (variables.includes(name) || /^(TCCL|NCCL)_/.test(name))
        ? [[name, text]]
        : [],
    ),
  );
}
