import { InternalError } from '../../errors.js';
import type { Network } from './network.js';
import { socketNetwork } from './socket.js';
import { ucxNetwork } from './ucx/network.js';

/** Transports for ranks that share no memory, best first. The last one works everywhere. */
export const networks: readonly Network[] = [ucxNetwork, socketNetwork];

/** Name of that one. */
export const SOCKET_NET = socketNetwork.name;

/** The network between ranks that share no memory. */
export interface ChosenNetwork {
  readonly name: string;
  /** Number of sockets of a connection, where the network has sockets. */
  readonly sockets: number;
}

/** The network of a name. */
export function networkNamed(name: string): Network {
  const found = networks.find((network) => network.name === name);
  if (found === undefined) throw new InternalError('INTERNAL', `there is no network ${name}`);
  return found;
}

/** A network as the log names it, with the reason for the choice: `UCX 1.13.1 (TCCL_NET=ucx)`. */
export function networkText(name: string, wanted: string | undefined): string {
  const found = networkNamed(name);
  const better = networks.slice(
    0,
    networks.findIndex((network) => network.name === name),
  );
  const doubts = better.flatMap((network) => {
    const doubt = network.doubt();
    return doubt === undefined ? [] : [`${network.name}: ${doubt}`];
  });
  const why = wanted === undefined ? doubts.join(', ') : `TCCL_NET=${wanted}`;
  return [shortName(found.logName), found.version() ?? [], why === '' ? [] : `(${why})`].flat().join(' ');
}

/** Way of data between ranks, for a sentence: `sockets`, `UCX`. */
export function wayOf(name: string): string {
  return name === SOCKET_NET ? 'sockets' : shortName(networkNamed(name).logName);
}

function shortName(logName: string): string {
  return logName.replace('NET/', '');
}

/** Name of a transport in the log, in NCCL's terms. */
export function logNameOf(transport: string): string {
  return networks.find(({ name }) => name === transport)?.logName ?? transport.toUpperCase();
}
