import { execFileSync } from 'node:child_process';

/**
 * Network namespaces joined by switches, one for each rail:
 *
 *     host 0   rail0 10.213.100.1 ─┬─ switch 0 ─┬─ rail0 10.213.100.2   host 1 …
 *              rail1 10.213.101.1 ─┼─ switch 1 ─┼─ rail1 10.213.101.2
 */
export interface StarHosts {
  /** Prefixes of commands that run on a host. */
  readonly on: readonly (readonly string[])[];
  /** Bytes that an interface of a host has sent and received. */
  counters(host: number, rail?: number): { readonly sent: number; readonly received: number };
  remove(): void;
}

export function makeStarHosts(nHosts: number, nRails = 1): StarHosts {
  const names = Array.from({ length: nHosts }, (_, host) => `tccl-star-${host}-${process.pid}`);
  const hub = `tccl-star-s-${process.pid}`;
  const ip = (...args: string[]): string => execFileSync('ip', args, { stdio: 'pipe' }).toString();
  const remove = (): void => {
    for (const name of [...names, hub]) ip('netns', 'del', name);
  };
  for (const name of [...names, hub]) ip('netns', 'add', name);
  try {
    for (const name of names) ip('-n', name, 'link', 'set', 'lo', 'up');
    for (let rail = 0; rail < nRails; rail++) {
      ip('-n', hub, 'link', 'add', `switch${rail}`, 'type', 'bridge');
      ip('-n', hub, 'link', 'set', `switch${rail}`, 'up');
      for (const [host, name] of names.entries()) {
        const port = `port${rail}-${host}`;
        ip('link', 'add', `rail${rail}`, 'netns', name, 'type', 'veth', 'peer', 'name', port, 'netns', hub);
        ip('-n', hub, 'link', 'set', port, 'master', `switch${rail}`, 'up');
        ip('-n', name, 'link', 'set', `rail${rail}`, 'addrgenmode', 'none');
        ip('-n', name, 'address', 'add', `10.213.${100 + rail}.${host + 1}/24`, 'dev', `rail${rail}`);
        ip('-n', name, 'link', 'set', `rail${rail}`, 'up');
      }
    }
    for (const name of names)
      for (let rail = 0; rail < nRails; rail++) while (!/state UP/.test(ip('-n', name, 'link', 'show', `rail${rail}`)));
  } catch (error) {
    remove();
    throw error;
  }
  return {
    on: names.map((name) => ['ip', 'netns', 'exec', name]),
    counters(host, rail = 0) {
      const [link] = JSON.parse(ip('-n', names[host] ?? '', '-s', '-j', 'link', 'show', `rail${rail}`)) as [
        { readonly stats64: Record<'rx' | 'tx', { readonly bytes: number }> },
      ];
      return { sent: link.stats64.tx.bytes, received: link.stats64.rx.bytes };
    },
    remove,
  };
}
