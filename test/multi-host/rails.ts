import { execFileSync } from 'node:child_process';

/**
 * Two network namespaces, joined by a cable for each rail:
 *
 *     host a                              host b
 *     rail0  10.213.80.1  ◄────────────►  rail0  10.213.80.2
 *     rail1  10.213.81.1  ◄────────────►  rail1  10.213.81.2
 */
export interface Rails {
  /** Prefixes of commands that run on a host. */
  readonly on: readonly [a: readonly string[], b: readonly string[]];
  /** Address of host a on the first rail. */
  readonly root: string;
  /** From now on host a drops what host b sends on a rail, without an answer. */
  silence(rail: number): void;
  /** Cuts the cable of a rail. */
  cut(rail: number): void;
  remove(): void;
}

/**
 * @param swapped true if the interfaces of host b have each other's names: rail0 is in the subnet of rail1 of host a
 * @param cutFrom from this rail on, host b's address is in a subnet that host a has no way to
 * @param apartFrom from this rail on, the interfaces of the hosts are in one subnet, but each is on a cable of its own
 */
export function makeRails(nRails: number, { swapped = false, cutFrom = nRails, apartFrom = nRails } = {}): Rails {
  const names = ['a', 'b'].map((letter) => `tccl-rail-${letter}-${process.pid}`) as [string, string];
  const ip = (...args: string[]): string => execFileSync('ip', args, { stdio: 'pipe' }).toString();
  const remove = (): void => {
    for (const name of names) ip('netns', 'del', name);
  };
  for (const name of names) ip('netns', 'add', name);
  try {
    for (const name of names) ip('-n', name, 'link', 'set', 'lo', 'up');
    for (let rail = 0; rail < nRails; rail++) {
      const ends = [`rail${rail}`, `rail${swapped ? nRails - 1 - rail : rail}`] as const;
      if (rail < apartFrom)
        ip('link', 'add', ends[0], 'netns', names[0], 'type', 'veth', 'peer', 'name', ends[1], 'netns', names[1]);
      else
        for (const [host, name] of names.entries()) {
          ip('-n', name, 'link', 'add', ends[host] ?? '', 'type', 'veth', 'peer', 'name', `end${rail}`);
          ip('-n', name, 'link', 'set', `end${rail}`, 'addrgenmode', 'none');
          ip('-n', name, 'link', 'set', `end${rail}`, 'up');
        }
      for (const [host, name] of names.entries()) {
        const end = ends[host] ?? '';
        ip('-n', name, 'link', 'set', end, 'addrgenmode', 'none');
        ip(
          '-n',
          name,
          'address',
          'add',
          `10.213.${(rail >= cutFrom && host === 1 ? 180 : 80) + rail}.${host + 1}/24`,
          'dev',
          end,
        );
        ip('-n', name, 'link', 'set', end, 'up');
      }
    }
    // It takes a while until the kernel knows that both ends of a cable are up.
    for (const name of names)
      for (let rail = 0; rail < nRails; rail++) while (!/state UP/.test(ip('-n', name, 'link', 'show', `rail${rail}`)));
  } catch (error) {
    remove();
    throw error;
  }
  return {
    on: [
      ['ip', 'netns', 'exec', names[0]],
      ['ip', 'netns', 'exec', names[1]],
    ],
    root: '10.213.80.1',
    silence: (rail) => void ip('-n', names[0], 'route', 'add', 'blackhole', `10.213.${80 + rail}.2/32`),
    cut: (rail) => void ip('-n', names[1], 'link', 'set', `rail${rail}`, 'down'),
    remove,
  };
}
