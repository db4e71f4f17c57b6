import { isLoopback, parseAddress } from './address.js';

/** Notices of a set-up that takes long: what it waits for, and from where. */
export interface Notices {
  /** Time after which a step is long, milliseconds in which this process watches; 0 for no notice. */
  readonly afterMs: number;
  readonly report: (text: string) => void;
}

/** `, and waits 60 s in all (TCCL_INIT_TIMEOUT)`: the limit in a notice. */
export function untilWhen(timeoutMs: number): string {
  return `, and waits ${Math.round(timeoutMs / 1000)} s in all (TCCL_INIT_TIMEOUT)`;
}

/**
 * Hint for the case that a rank cannot be reached at the address that it announced: its check-in came from another one. Undefined
 * if it is the same, or one of them is a loopback address.
 */
export function otherSource(announced: string, source: string): string | undefined {
  const host = parseAddress(announced).host.replace(/%.*$/, '');
  const from = source.replace(/%.*$/, '');
  if (host === from || from === '' || isLoopback(host) || isLoopback(from)) return undefined;
  return `its check-in came from ${from}, not from ${host}: are addresses translated between the hosts (NAT), or should TCCL_SOCKET_IFNAME name another interface there?`;
}
