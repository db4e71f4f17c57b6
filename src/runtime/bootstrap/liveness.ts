import { SystemError } from '../../errors.js';
import { systemInterfaces, whyUnused } from './interfaces.js';
import { readStates, type StateReader } from './socket-state.js';
import { ofSilence, type Silence } from '../failure/silence.js';
import {
  clearInterval,
  clearTimeout,
  clockMs,
  connect,
  setImmediate,
  setInterval,
  setTimeout,
  type Socket,
  type Timer,
} from '../platform/platform.js';

/** Number of checks within the heartbeat time. */
const LOOKS = 10;
/** Share of that time after which an idle connection is probed. */
const PROBE_AFTER = 0.5;
/** Share of it for which probes, or data sent again, may stay unanswered. Probes are sent only after the time above. */
const UNANSWERED_PROBES = 0.4;
const UNANSWERED_DATA = 0.8;
/** Share of that time after which a host that does not answer data is tried by a new connection. */
const KNOCK_AFTER = 0.5;

/** A connection with another host. */
interface Watched {
  readonly socket: Socket;
  /** Interface that had its own address when it was connected; undefined if the system did not show it. */
  readonly interfaceName: string | undefined;
  /** Time of the check since which the other host has not answered data that were sent again. */
  silentSinceMs: number | undefined;
  /** Result of an attempt to reach the silent host by small packets alone: true if it answers. */
  answersKnock: boolean | undefined;
}

/**
 * Detects hosts that have vanished by the acknowledgements of TCP, which the kernels send whatever the processes do. This thread
 * reads the kernel's state of its connections, and destroys one whose host answers nothing for too long (docs/notes/failures.md).
 */
const watched = new Set<Watched>();
/** Pairs of addresses, this host's and the other's, whose last connection in this thread ended because the other was silent. */
const silentPairs = new Set<string>();
let heartbeatMs = 0;
let timer: Timer | undefined;
let lookedMs = 0;

/** Sets the heartbeat time of connections that this thread watches from now on. 0 turns it off. */
export function setHeartbeat(ms: number): void {
  heartbeatMs = ms;
}

/** Also where all data are small: their acknowledgement may travel in a large packet. */
const DROPS = 'the network seems to drop large packets, packets of this connection, or all in one direction';

/** True if the last connection of this thread between two addresses ended because the other host was silent. */
export function wasSilent(local: string, remote: string): boolean {
  return silentPairs.has(`${local} ${remote}`);
}

/** The interface of this host that another host finds silent, and why it does not run; undefined if it does. */
export function ownFaultOf({ host }: Silence): string | undefined {
  const one = [...watched].find(({ socket }) => plain(socket.localAddress) === plain(host));
  const fault = one && ownFault(one);
  return fault && `${OWN_INTERFACE}${fault}`;
}

const OWN_INTERFACE = 'its own interface ';

/** Watches a connected socket, unless both ends are on this host, whose kernel reports every end. */
export function watchHost(socket: Socket): void {
  if (heartbeatMs === 0 || socket.destroyed || socket.localAddress === undefined || socket.localAddress === socket.remoteAddress)
    return;
  socket.setKeepAlive(true, probeAfterMs());
  const interfaceName = systemInterfaces().find(({ address }) => address === plain(socket.localAddress))?.name;
  const one: Watched = { socket, interfaceName, silentSinceMs: undefined, answersKnock: undefined };
  watched.add(one);
  silentPairs.delete(pairOf(socket));
  timer ??= setInterval(look, heartbeatMs / LOOKS).unref();
  socket.once('close', () => {
    watched.delete(one);
    if (watched.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  });
}

/** Error of a connection that another host does not accept. */
export class Unanswered extends SystemError {}

/**
 * Ends the making of a connection that the other host has not answered within the heartbeat time. The kernel accepts
 * connections whatever the process there does, so something drops the packets; TCP would try for minutes.
 */
export function limitDial(socket: Socket): void {
  if (heartbeatMs === 0) return;
  const giveUp = (): void => {
    if (!socket.connecting) return;
    socket.destroy(new Unanswered('NETWORK', `no answer within ${heartbeatMs / 1000} s (TCCL_HEARTBEAT)`));
  };
  // An answer may wait in the kernel if this thread did not run its event loop, which reads it before the immediate.
  const timer = setTimeout(() => setImmediate(giveUp), heartbeatMs);
  const stop = (): void => clearTimeout(timer);
  socket.once('connect', stop).once('close', stop);
}

/** For blocking calls: does the check that is due in the event loop. */
export function lookAtHosts(): void {
  if (watched.size > 0 && clockMs() - lookedMs >= heartbeatMs / LOOKS) look();
}

/** After other work of this thread, silence counts from the next check on, because the answers may be unread. */
function look(): void {
  const stateOf = readStates();
  const now = clockMs();
  lookedMs = now;
  const silent: Socket[] = [];
  for (const one of watched) {
    const { socket } = one;
    const state = stateOf(socket);
    if (state === undefined || (state.retransmits === 0 && state.unansweredProbes === 0)) {
      one.silentSinceMs = undefined;
      one.answersKnock = undefined;
      continue;
    }
    one.silentSinceMs ??= now;
    // Data that this host's own device drops stay unsent; the kernel tries them again as probes.
    const isData = state.retransmits > 0 || state.unconfirmedBytes > 0;
    const limitMs = heartbeatMs * (isData ? UNANSWERED_DATA : UNANSWERED_PROBES);
    if (isData && now - one.silentSinceMs >= limitMs * KNOCK_AFTER) knock(one);
    if (now - one.silentSinceMs < limitMs) continue;
    const { localAddress = '', remoteAddress = '' } = socket;
    const what = isData
      ? `data sent ${state.retransmits + state.unansweredProbes + 1} times`
      : `${state.unansweredProbes} probes`;
    const lives =
      isData &&
      (answersElsewhere(socket, stateOf)
        ? 'other connections with it live'
        : one.answersKnock === true && 'it accepts connections');
    const advice =
      lives === false
        ? 'it, or the way to it, is down'
        : `${lives}, so ${DROPS}: compare the MTU of both interfaces and of the way between, and look for firewalls`;
    const silence = `its host ${remoteAddress} has not answered ${what} (TCCL_HEARTBEAT is ${heartbeatMs / 1000} s)`;
    const own = ownFault(one);
    const why = own === undefined ? `${silence}: ${advice}` : `${OWN_INTERFACE}${own}; ${silence}`;
    // A reset follows, so the socket's owner gives notice at once.
    const error = ofSilence(new SystemError('NETWORK', `from ${localAddress}: ${why}`), {
      host: remoteAddress,
      isOfOwnInterface: own !== undefined,
    });
    silentPairs.add(pairOf(socket));
    socket.emit('error', error);
    silent.push(socket);
  }
  // The other side would wait for data that cannot arrive; a reset can. Notices of the reason go out before.
  for (const socket of silent) socket.resetAndDestroy();
}

/** The interface of a connection, and why it does not run; undefined if it does. */
function ownFault({ socket, interfaceName }: Watched): string | undefined {
  const own = plain(socket.localAddress);
  if (interfaceName === undefined || systemInterfaces().some(({ address }) => address === own)) return undefined;
  try {
    const why = whyUnused(interfaceName);
    const link = 'has no link, so its cable or switch port is off, or the host at the other end of the cable';
    return `${interfaceName} ${why === 'no link' ? link : why === 'down' ? 'is down' : 'has lost this address'}`;
  } catch {
    return `${interfaceName} has gone`;
  }
}

function pairOf({ localAddress, remoteAddress }: Socket): string {
  return `${plain(localAddress)} ${plain(remoteAddress)}`;
}

/** An address without the prefix of IPv4 in IPv6. */
function plain(address = ''): string {
  return address.replace(/^::ffff:(?=\d+\.)/, '');
}

/** Begins a new connection to the other end of a silent one, whose packets are small. Any answer shows that the host lives. */
function knock(one: Watched): void {
  const { remoteAddress, remotePort } = one.socket;
  if (one.answersKnock !== undefined || remoteAddress === undefined || remotePort === undefined) return;
  one.answersKnock = false;
  const visitor = connect({ host: remoteAddress, port: remotePort, timeout: heartbeatMs }).unref();
  visitor.once('connect', () => {
    one.answersKnock = true;
    visitor.destroy();
  });
  visitor.once('timeout', () => visitor.destroy());
  visitor.once('error', (error: NodeJS.ErrnoException) => {
    one.answersKnock = error.code === 'ECONNREFUSED';
  });
}

/**
 * True if another connection with the same host is alive. Whatever it carries, something has come from the other host on it
 * since the silence began: a quiet connection has been probed by now.
 */
function answersElsewhere(silent: Socket, stateOf: StateReader): boolean {
  if (probeAfterMs() >= heartbeatMs * UNANSWERED_DATA) return false;
  return [...watched].some(({ socket }) => {
    if (socket === silent || socket.destroyed || socket.remoteAddress !== silent.remoteAddress) return false;
    const state = stateOf(socket);
    return state !== undefined && state.retransmits === 0 && state.unansweredProbes === 0;
  });
}

/** Time after which the kernel probes a quiet connection. */
function probeAfterMs(): number {
  return Math.max(1000, heartbeatMs * PROBE_AFTER);
}
