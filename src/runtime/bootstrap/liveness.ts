import type { Socket } from 'node:net';
import { SystemError } from '../../errors.js';
import { socketStates } from './socket-table.js';

/** A silent host is looked for so many times in that time. */
const LOOKS = 10;
/** The part of it after which a quiet connection is probed. */
const PROBE_AFTER = 0.5;
/** The part of it for which probes, or data sent again, may stay unanswered. A probe comes only after the time above. */
const UNANSWERED_PROBES = 0.4;
const UNANSWERED_DATA = 0.8;

/** A connection with another host. */
interface Watched {
  readonly socket: Socket;
  /** Since which look the other host has answered nothing of what it was sent again. */
  silentSinceMs: number | undefined;
}

/**
 * Finds hosts that have vanished: their power is off, a cable is cut, or the network drops their large packets. The heartbeat is
 * that of the two kernels: TCP confirms data, and probes of a quiet connection, whatever the processes do. So a rank
 * that computes, is stopped, or has no room for more is alive. Keep-alive alone notices no such host while data are
 * unconfirmed, and TCP_USER_TIMEOUT kills a connection whose receiver computes behind a full window. So this thread
 * looks at what the kernel says of its connections: one whose host answers nothing for too long is destroyed.
 */
const watched = new Set<Watched>();
let heartbeatMs = 0;
let timer: NodeJS.Timeout | undefined;
let lookedMs = 0;

/** Sets how long a host may be silent, for connections that this thread watches from now on. 0 turns it off. */
export function setHeartbeat(ms: number): void {
  heartbeatMs = ms;
}

/** Why a connection ended whose other host is silent. */
class HostSilent extends SystemError {
  constructor(message: string) {
    super('NETWORK', message);
  }
}

/** What to say of a rank whose connection broke for that, if it did: `cannot be reached: its host …`. */
export function unreachable(cause: unknown): string | undefined {
  return cause instanceof HostSilent ? `cannot be reached: ${cause.message}: it, or the way to it, is down` : undefined;
}

/** Watches a connected socket, unless both ends are on this host, whose kernel tells of every end. */
export function watchHost(socket: Socket): void {
  if (heartbeatMs === 0 || socket.destroyed || socket.localAddress === undefined || socket.localAddress === socket.remoteAddress)
    return;
  socket.setKeepAlive(true, Math.max(1000, heartbeatMs * PROBE_AFTER));
  const one: Watched = { socket, silentSinceMs: undefined };
  watched.add(one);
  timer ??= setInterval(look, heartbeatMs / LOOKS).unref();
  socket.once('close', () => {
    watched.delete(one);
    if (watched.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  });
}

/** For calls that block: looks where the event loop would have done so by now. */
export function lookAtHosts(): void {
  if (watched.size > 0 && performance.now() - lookedMs >= heartbeatMs / LOOKS) look();
}

/** Where this thread did something else, silence counts from the look after it: the answers may lie here. */
function look(): void {
  const states = socketStates();
  const now = performance.now();
  lookedMs = now;
  for (const one of watched) {
    const { socket } = one;
    const state = states.get(`${socket.localPort} ${socket.remotePort}`);
    if (state === undefined || (state.retransmits === 0 && state.unansweredProbes === 0)) {
      one.silentSinceMs = undefined;
      continue;
    }
    one.silentSinceMs ??= now;
    const limitMs = heartbeatMs * (state.retransmits > 0 ? UNANSWERED_DATA : UNANSWERED_PROBES);
    if (now - one.silentSinceMs < limitMs) continue;
    const what = state.retransmits > 0 ? `data sent ${state.retransmits + 1} times` : `${state.unansweredProbes} probes`;
    socket.destroy(
      new HostSilent(
        `its host ${socket.remoteAddress ?? ''} has not answered ${what} within ${heartbeatMs / 1000} s (TCCL_HEARTBEAT)`,
      ),
    );
  }
}
