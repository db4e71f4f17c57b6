import { execFileSync } from 'node:child_process';
import { nft } from './firewall.js';

/**
 * Two network namespaces with a router between them, a third one:
 *
 *     host a  10.213.90.1  ◄───►  .254  router  10.213.91.254  ◄───►  10.213.91.1  host b
 *
 * It sends no messages of ICMP.
 */
export interface RoutedHosts {
  /** Prefixes of commands that run on a host. */
  readonly on: readonly [a: readonly string[], b: readonly string[]];
  readonly root: string;
  remove(): void;
}

/**
 * @param translates true if host a sees the router's address in place of host b's, and has no way to host b
 * @param mtu of the cable between the router and host b, on the router's side
 */
export function makeRoutedHosts({ translates = false, mtu = 1500 } = {}): RoutedHosts {
  const [a, router, b] = ['a', 'r', 'b'].map((letter) => `tccl-routed-${letter}-${process.pid}`) as [string, string, string];
  const ip = (...args: string[]): string => execFileSync('ip', args, { stdio: 'pipe' }).toString();
  const remove = (): void => {
    for (const name of [a, router, b]) ip('netns', 'del', name);
  };
  for (const name of [a, router, b]) ip('netns', 'add', name);
  const on = (name: string): string[] => ['ip', 'netns', 'exec', name];
  try {
    for (const [name, device, subnet] of [
      [a, 'left', '90'],
      [b, 'right', '91'],
    ] as const) {
      ip('link', 'add', 'net0', 'netns', name, 'type', 'veth', 'peer', 'name', device, 'netns', router);
      ip('-n', name, 'address', 'add', `10.213.${subnet}.1/24`, 'dev', 'net0');
      ip('-n', router, 'address', 'add', `10.213.${subnet}.254/24`, 'dev', device);
      for (const [where, what] of [
        [name, 'lo'],
        [name, 'net0'],
        [router, device],
      ] as const)
        ip('-n', where, 'link', 'set', what, 'up');
      // A packet that the sender leaves to its card to segment would pass.
      ip('-n', name, 'link', 'set', 'net0', 'gso_max_segs', '1');
      while (!/state UP/.test(ip('-n', name, 'link', 'show', 'net0')));
    }
    ip('-n', b, 'route', 'add', 'default', 'via', '10.213.91.254');
    if (!translates) ip('-n', a, 'route', 'add', 'default', 'via', '10.213.90.254');
    ip('-n', router, 'link', 'set', 'right', 'mtu', String(mtu));
    execFileSync('ip', ['netns', 'exec', router, 'sysctl', '-qw', 'net.ipv4.ip_forward=1'], { stdio: 'pipe' });
    nft(on(router), 'add table inet router');
    nft(on(router), 'add chain inet router own { type filter hook output priority 0; }');
    nft(on(router), 'add rule inet router own meta l4proto icmp drop');
    if (translates) {
      nft(on(router), 'add chain inet router behind { type nat hook postrouting priority 100; }');
      nft(on(router), 'add rule inet router behind oifname left masquerade');
    }
  } catch (error) {
    remove();
    throw error;
  }
  return { on: [on(a), on(b)], root: '10.213.90.1', remove };
}
