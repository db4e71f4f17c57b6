import { isIP } from 'node:net';
import { hostname, networkInterfaces, constants } from 'node:os';
import { afterWatching } from '../../progress/watch-clock.js';
import type { BindingUnit } from '../binding.js';
import { checkCommand } from '../command-check.js';
import { malformed, value, type Environment } from '../environment.js';
import { JobOutput, type RankOutput } from '../job-output.js';
import { exitCodes, Job, type JobOptions } from '../job.js';
import { LocalRanks } from '../local-ranks.js';
import { chosenMeetingPoint, freeAddress, meetingPointAt } from '../meeting-point.js';
import { rankCommands } from '../rank-commands.js';
import { launcherVariables, variables } from '../variables.js';
import type { HostPlacement } from './host-list.js';
import { endsOf, meetingAddress } from './meeting-host.js';
import { HostRefusal, RemoteRanks, type Readiness } from './remote-ranks.js';
import { byHand, sshCommand, type RemotePrograms } from './ssh.js';

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
  const { placements, command, env, graceMs, report } = options;
  const heartbeatMs = heartbeat(env);
  const total = placements[0]?.ranks.total ?? 0;
  const here = placements.find(({ host }) => isThisHost(host.name));
  const there = placements.filter((placement) => placement !== here);
  const exported = { ...passedVariables(env), ...options.exported };

  const check = here === undefined ? undefined : checkCommand(command, env['PATH'] ?? '', options.programs.directory);
  if (check?.kind === 'refused') {
    report(`host ${here?.host.name ?? ''}: ${check.message}`);
    return check.exitCode;
  }
  const run =
    check === undefined ? undefined : rankCommands(check.command, here?.ranks.count ?? 0, options.bindTo, env['PATH'] ?? '');

  const output = new JobOutput(options.output, 0, total);
  const remote = there.map(({ host, ranks }) => {
    const line = sshCommand(host.name, options.programs, Math.ceil(options.connectMs / 1000));
    return new RemoteRanks(host.name, ranks, line, options.programs, output);
  });
  const connecting = new Connecting(remote, options);
  try {
    const greetings = await connecting.all((group) => group.greeted);
    const seenAs = endsOf(greetings[0]?.sshConnection ?? '').client;
    const isOnlyHere = remote.length === 0;
    const hereAddress =
      placements[0] === here && options.address === undefined
        ? await (isOnlyHere ? freeAddress('127.0.0.1') : meetingAddress(env, seenAs))
        : undefined;
    const ready = await connecting.all((group, index): Promise<Readiness> => {
      const { host, ranks } = there[index] as HostPlacement;
      return group.prepare({
        type: 'prepare',
        directory: options.programs.directory,
        command,
        env: { ...exported, ...(host.interfaceName === undefined ? {} : { TCCL_SOCKET_IFNAME: host.interfaceName }) },
        bindTo: options.bindTo,
        ranks,
        graceMs,
        heartbeatMs,
        isMeetingHost: options.address === undefined && ranks.first === 0,
      });
    });
    const meetingPoint =
      options.address === undefined
        ? chosenMeetingPoint(hereAddress ?? ready[0]?.address ?? '')
        : meetingPointAt(options.address);
    connecting.done();

    for (const group of remote) group.start(meetingPoint);
    const local =
      here === undefined || run === undefined
        ? []
        : [
            new LocalRanks({
              ranks: here.ranks,
              command: run,
              env,
              directory: options.programs.directory,
              meetingPoint,
              output,
              input: 'inherit',
              graceMs,
              host: here.host.name,
            }),
          ];
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

/** The time until all hosts are ready: progress, the deadline, failures, and signals to the launcher. */
class Connecting {
  readonly #remote: readonly RemoteRanks[];
  readonly #options: HostsLaunchOptions;
  readonly #stopWaiting: () => void;
  readonly #handlers = new Map<NodeJS.Signals, () => void>();
  readonly #interrupted: Promise<never>;
  readonly #late: Promise<never>;

  constructor(remote: readonly RemoteRanks[], options: HostsLaunchOptions) {
    this.#remote = remote;
    this.#options = options;
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

  /**
   * Waits until `step` is done on all hosts. After the first failure others may fail for a while, and all are reported.
   * @throws HostRefusal when it was reported
   */
  async all<T>(step: (group: RemoteRanks, index: number) => Promise<T>): Promise<T[]> {
    const { placements, report, onProgress, connectMs } = this.#options;
    const pending = new Set(this.#remote);
    const failures: { readonly host: string; readonly refusal: HostRefusal }[] = [];
    let firstFailed: () => void = () => undefined;
    const oneFailed = new Promise<void>((resolve) => (firstFailed = resolve));
    const show = () => onProgress?.(`${placements.length - pending.size} of ${placements.length} hosts ready`);
    show();
    const results = Promise.all(
      this.#remote.map(async (group, index) => {
        try {
          const result = await step(group, index);
          pending.delete(group);
          show();
          return result;
        } catch (error) {
          pending.delete(group);
          if (!(error instanceof HostRefusal)) throw error;
          failures.push({ host: group.host, refusal: error });
          firstFailed();
          return undefined;
        }
      }),
    );
    results.catch(() => undefined);
    const failed = oneFailed.then(
      () =>
        new Promise<void>((resolve) => {
          const stop = afterWatching(MORE_FAILURES_MS, resolve);
          const settle = () => {
            stop();
            resolve();
          };
          results.then(settle, settle);
        }),
    );
    try {
      await Promise.race([results, failed, this.#late, this.#interrupted]);
    } catch (error) {
      onProgress?.('');
      if (!(error instanceof HostRefusal) || error.exitCode !== exitCodes.failed) throw error;
      for (const { host } of pending) {
        const text = `host ${host} has not answered within ${connectMs / 1000} s: check that ${byHand(this.#options.programs, host, 'true')} works by hand, or give it longer with --connect-timeout`;
        failures.push({ host, refusal: new HostRefusal(text, exitCodes.failed) });
      }
    }
    const [first] = failures;
    if (first === undefined) return (await results) as T[];
    onProgress?.('');
    const inOrder = this.#remote.flatMap(({ host }) => failures.filter((failure) => failure.host === host));
    const lines = inOrder.map(({ refusal }) => {
      const same = inOrder.filter((other) => refusal.said !== undefined && other.refusal.said === refusal.said);
      return same.length > 1 ? `hosts ${same.map(({ host }) => host).join(', ')}: ${refusal.said ?? ''}` : refusal.message;
    });
    for (const line of new Set(lines)) report(line);
    throw first.refusal;
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

/** True for the names and addresses that mean this host for certain. With another user, ssh is the way. */
function isThisHost(name: string): boolean {
  const own = hostname();
  if (name === 'localhost' || name === own || name === own.replace(/\..*$/, '')) return true;
  if (isIP(name) === 0) return false;
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return /^127\.|^::1$/.test(name) || addresses.some(({ address }) => address === name);
}

/** TCCL_HEARTBEAT in milliseconds. */
function heartbeat(env: Environment): number {
  const text = value(env, 'TCCL_HEARTBEAT');
  const seconds = Number(text ?? DEFAULT_HEARTBEAT_SECONDS);
  if (!Number.isFinite(seconds) || seconds < 0)
    throw malformed(env, 'TCCL_HEARTBEAT', 'a number of seconds from 0 (which means no limit)');
  return seconds * 1000;
}

/** As in communicator/options.ts. */
const DEFAULT_HEARTBEAT_SECONDS = 10;
