import { loadLibc, type TcpState } from '../device/libc.js';
import type { Socket } from '../platform/platform.js';
import { textOf } from '../proc.js';

/** Returns the kernel's state of a connection; undefined if it is closed, or the system does not show it. */
export type StateReader = (socket: Socket) => TcpState | undefined;

/**
 * Returns a reader of states as of now: by a system call for each connection, or without the C library from the kernel's table of
 * all, which takes milliseconds and is read once.
 */
export function readStates(): StateReader {
  const { libc } = loadLibc();
  let table: ReadonlyMap<string, TcpState> | undefined;
  return (socket) => {
    const { fd } = (socket as { readonly _handle?: { readonly fd?: unknown } | null })._handle ?? {};
    if (libc !== undefined && typeof fd === 'number') return fd < 0 ? undefined : libc.tcpState(fd);
    table ??= tableOfStates();
    return table.get(`${socket.localPort} ${socket.remotePort}`);
  };
}

/**
 * Fields of a line of the kernel's table: both ports, unconfirmed bytes, and failed transmissions. All but the last are
 * hexadecimal.
 */
const tableLine =
  /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]{2} ([0-9A-F]{8}):[0-9A-F]{8} [0-9A-F]{2}:[0-9A-F]{8} ([0-9A-F]{8}) +\d+ +(\d+)/;

/** The TCP connections of this network namespace by `localPort remotePort`; empty where the system has no such table. */
export function tableOfStates(): ReadonlyMap<string, TcpState> {
  const states = new Map<string, TcpState>();
  for (const line of ['tcp', 'tcp6'].flatMap((table) => textOf(`/proc/self/net/${table}`).split('\n'))) {
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
