import { execFileSync } from 'node:child_process';
import { networkInterfaces } from 'node:os';

/**
 * Two network namespaces joined by a cable, each like a host of its own:
 *
 *     host a                                   host b
 *     tccl0  10.213.77.1, fd77::1  ◄────────►  tccl0  10.213.77.2, fd77::2
 *     ib0    10.213.78.1  (dead end)           ib0    10.213.78.2  (dead end)
 *
 * The dead ends have a name that is preferred to tccl0 unless TCCL_SOCKET_IFNAME says otherwise.
 */
export interface TwoHosts {
  /** Prefixes of commands that run on a host. */
  readonly on: readonly [a: readonly string[], b: readonly string[]];
  /** Link-local addresses of tccl0, without zone. */
  readonly linkLocal: readonly [a: string, b: string];
  /** Cuts the way between the hosts behind their links: packets are lost both ways, without an error. */
  cut(): void;
  /** Takes down the interface of host b, which ends the link of host a. */
  unplug(): void;
  /** From now on packets of more than 576 bytes from host a to host b are lost. */
  dropLargePackets(): void;
  /** Processes on a host. */
  processes(host: 0 | 1): number[];
  /** Kills the processes on both hosts, also those whose parent is gone, and removes the hosts. */
  remove(): void;
}

/** Reason why namespaces can't be made here; undefined where they can. */
export function whyNoHosts(): string | undefined {
  if (process.platform !== 'linux') return 'network namespaces are a feature of Linux';
  if (process.getuid?.() !== 0) return 'making network namespaces needs root';
  try {
    execFileSync('ip', ['netns', 'list'], { stdio: 'pipe' });
  } catch {
    return 'the command ip (package iproute2) is missing';
  }
  const probe = `tccl-probe-${process.pid}`;
  try {
    ip('netns', 'add', probe);
    ip('netns', 'del', probe);
    return undefined;
  } catch (error) {
    return `network namespaces can't be made: ${String((error as { stderr?: unknown }).stderr ?? error).trim()}`;
  }
}

export function makeTwoHosts(): TwoHosts {
  const names = ['a', 'b'].map((letter) => `tccl-${letter}-${process.pid}`) as [string, string];
  const processes = (host: 0 | 1) => ip('netns', 'pids', names[host]).split('\n').filter(Boolean).map(Number);
  const remove = () => {
    for (const host of [0, 1] as const) {
      // A process that is about to end may still start another one.
      for (let pids = processes(host); pids.length > 0; pids = processes(host)) pids.forEach(kill);
      ip('netns', 'del', names[host]);
    }
  };
  for (const name of names) ip('netns', 'add', name);
  try {
    ip('link', 'add', 'tccl0', 'netns', names[0], 'type', 'veth', 'peer', 'name', 'tccl0', 'netns', names[1]);
    for (const [index, name] of names.entries()) {
      const inside = (...args: string[]) => ip('-n', name, ...args);
      inside('link', 'add', 'ib0', 'type', 'veth', 'peer', 'name', 'ib0-end');
      inside('link', 'set', 'tccl0', 'addrgenmode', 'none'); // no address that is still being checked for doubles
      inside('address', 'add', `10.213.77.${index + 1}/24`, 'dev', 'tccl0');
      inside('address', 'add', `fd77::${index + 1}/64`, 'dev', 'tccl0', 'nodad');
      inside('address', 'add', `fe80::77:${index + 1}/64`, 'dev', 'tccl0', 'nodad');
      inside('address', 'add', `10.213.78.${index + 1}/32`, 'dev', 'ib0');
      for (const link of ['lo', 'ib0-end', 'ib0', 'tccl0']) inside('link', 'set', link, 'up');
    }
    // The kernel notices only after a while that both ends of the cable are up; until then it counts as unplugged.
    for (const name of names) while (!/state UP/.test(ip('-n', name, 'link', 'show', 'tccl0')));
  } catch (error) {
    remove();
    throw error;
  }
  return {
    on: [
      ['ip', 'netns', 'exec', names[0]],
      ['ip', 'netns', 'exec', names[1]],
    ],
    linkLocal: ['fe80::77:1', 'fe80::77:2'],
    processes,
    remove,
    cut() {
      for (const [index, name] of names.entries()) {
        ip('-n', name, 'route', 'add', 'blackhole', `10.213.77.${2 - index}/32`);
        ip('-n', name, '-6', 'route', 'add', 'blackhole', `fd77::${2 - index}/128`);
      }
    },
    unplug: () => void ip('-n', names[1], 'link', 'set', 'tccl0', 'down'),
    dropLargePackets() {
      // A packet that the sender leaves to its card to segment would pass.
      ip('-n', names[0], 'link', 'set', 'tccl0', 'gso_max_segs', '1');
      ip('-n', names[1], 'link', 'set', 'tccl0', 'mtu', '576');
    },
  };
}

/** True if this kernel has IPv6. */
export const hasIPv6 = Object.values(networkInterfaces())
  .flat()
  .some((address) => address?.family === 'IPv6');

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has exited meanwhile.
  }
}

function ip(...args: string[]): string {
  return execFileSync('ip', args, { stdio: 'pipe' }).toString();
}
