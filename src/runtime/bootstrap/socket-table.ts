import { readFileSync } from 'node:fs';

/** The kernel's state of a TCP connection. */
export interface SocketState {
  /** Bytes that the other side's kernel has not confirmed. */
  readonly unconfirmedBytes: number;
  /** Number of times that the oldest unconfirmed data have been sent again. */
  readonly retransmits: number;
  /** Number of probes, of an idle connection or a full window, that the other side's kernel has not answered. */
  readonly unansweredProbes: number;
}

/**
 * Fields of a line of the kernel's table: both ports, unconfirmed bytes, and failed transmissions. All but the last are
 * hexadecimal.
 */
const tableLine =
  /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]{2} ([0-9A-F]{8}):[0-9A-F]{8} [0-9A-F]{2}:[0-9A-F]{8} ([0-9A-F]{8}) +\d+ +(\d+)/;

/** The TCP connections of this network namespace by `localPort remotePort`; empty where the system has no such table. */
export function socketStates(): Map<string, SocketState> {
  const states = new Map<string, SocketState>();
  for (const line of ['/proc/self/net/tcp', '/proc/self/net/tcp6'].flatMap(linesOf)) {
    const [, local, remote, unconfirmed, retransmits, probes] = tableLine.exec(line) ?? [];
    if (
      local === undefined ||
      remote === undefined ||
      unconfirmed === undefined ||
      retransmits === undefined ||
      probes === undefined
    )
      continue;
    states.set(`${Number.parseInt(local, 16)} ${Number.parseInt(remote, 16)}`, {
      unconfirmedBytes: Number.parseInt(unconfirmed, 16),
      retransmits: Number.parseInt(retransmits, 16),
      unansweredProbes: Number(probes),
    });
  }
  return states;
}

/** Empty where there is no IPv6, or the system has no such tables. */
function linesOf(table: string): string[] {
  try {
    return readFileSync(table, 'latin1').split('\n');
  } catch {
    return [];
  }
}
