import type { LogEvent, NetDevice } from '../lines/events.js';
import type { KnownProcesses, LogPlace } from '../lines/line.js';
import type { LoggedProcess } from './model.js';
import { ownText } from '../lines/own-text.js';

type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] };

interface GrowingProcess extends Mutable<LoggedProcess> {
  readonly environment: Map<string, { readonly value: string; readonly place: LogPlace }>;
  readonly devices: Map<string, { readonly devices: readonly NetDevice[]; readonly place: LogPlace }>;
}

/** Limits of processes, and of settings of one. */
const PROCESS_LIMIT = 200_000;
const SETTING_LIMIT = 500;
/** Limit of names that may turn out to be hosts. */
const DOUBT_LIMIT = 10_000;

/** The processes of a log, from their own lines. */
export class ProcessTracker implements KnownProcesses {
  readonly #processes = new Map<string, GrowingProcess>();
  readonly #hosts = new Set<string>();
  /** Hosts by process number, for torn lines. */
  readonly #hostsOfPid = new Map<number, string[]>();
  readonly #doubtful = new Set<string>();
  refused = 0;

  get all(): LoggedProcess[] {
    return [...this.#processes.values()];
  }

  hasHost(host: string): boolean {
    return this.#hosts.has(host);
  }

  hasHosts(): boolean {
    return this.#hosts.size > 0;
  }

  hostLike(text: string, pid: number): string | undefined {
    if (text === '') return undefined;
    return this.#hostsOfPid.get(pid)?.find((host) => text.endsWith(host) || host.endsWith(text));
  }

  isSeenAgain(host: string): boolean {
    if (this.#doubtful.has(host)) return true;
    if (this.#doubtful.size < DOUBT_LIMIT) this.#doubtful.add(host);
    return false;
  }

  /** True if a text that is no line of NCCL is the beginning of one. */
  isHeadOf(text: string): boolean {
    const host = text.slice(0, Math.max(0, text.indexOf(':')));
    return host !== '' && this.#hosts.has(host.slice(host.lastIndexOf(' ') + 1));
  }

  /** Undefined beyond the limit. */
  find(name: string, pid: number, place: LogPlace): LoggedProcess | undefined {
    const key = `${name}:${pid}`;
    let process = this.#processes.get(key);
    if (process === undefined) {
      if (this.#processes.size >= PROCESS_LIMIT) {
        this.refused++;
        return undefined;
      }
      const host = ownText(name);
      process = {
        host,
        pid,
        first: place,
        last: place,
        began: undefined,
        ended: undefined,
        version: undefined,
        environment: new Map(),
        devices: new Map(),
        bootstrap: undefined,
        network: undefined,
        mergedNics: false,
        pluginSought: undefined,
        plugin: undefined,
        pluginRelease: undefined,
        pluginPath: undefined,
        noP2p: undefined,
      };
      this.#processes.set(key, process);
      if (host !== '') this.#hosts.add(host);
      const same = this.#hostsOfPid.get(pid);
      if (same === undefined) this.#hostsOfPid.set(pid, [host]);
      else if (!same.includes(host)) same.push(host);
    }
    process.last = place;
    return process;
  }

  /** @returns true if the event is about the process rather than about a communicator */
  read(process: LoggedProcess, event: LogEvent, place: LogPlace): boolean {
    const growing: GrowingProcess = process as GrowingProcess;
    switch (event.kind) {
      case 'version':
        growing.version ??= { text: event.version, place };
        return true;
      case 'environment':
        if (growing.environment.size < SETTING_LIMIT && !growing.environment.has(event.name))
          growing.environment.set(event.name, { value: event.value, place });
        return true;
      case 'devices':
        if (growing.devices.size < 16) growing.devices.set(event.network, { devices: event.devices, place });
        return true;
      case 'bootstrap':
        growing.bootstrap ??= { name: event.name, address: event.address, place };
        return false;
      case 'network':
        growing.network ??= { name: event.name, place };
        return true;
      case 'merged-nic':
        growing.mergedNics = true;
        return true;
      case 'plugin-sought':
        growing.pluginSought = Math.max(event.version, growing.pluginSought ?? 0);
        return true;
      case 'plugin-loaded':
        growing.plugin ??= { name: event.name, version: event.version, place };
        return true;
      case 'plugin-release':
        growing.pluginRelease ??= { text: event.text, place };
        return true;
      case 'plugin-path':
        growing.pluginPath ??= { path: ownText(event.path), place };
        return true;
      case 'init-start':
      case 'init-complete':
        growing.began ??= place;
        growing.ended = undefined;
        return false;
      case 'ended':
        growing.began ??= place;
        if (!event.aborted) growing.ended = place;
        return false;
      case 'no-p2p':
        growing.noP2p ??= { text: event.text, place };
        return true;
      case 'connection':
      case 'ring':
      case 'trees':
        growing.began ??= place;
        return false;
      default:
        return false;
    }
  }
}
