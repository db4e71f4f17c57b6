import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { markDead, rankStates } from '../../../../src/runtime/device/rank-lines.js';
import type { FdWatch } from '../../../../src/runtime/device/fd-watches.js';
import { loadLibc } from '../../../../src/runtime/device/libc.js';
import { Segment } from '../../../../src/runtime/device/segment.js';
import { createMemory } from '../../../../src/runtime/device/shared-memory.js';
import { Team } from '../../../../src/runtime/device/team.js';
import { ShmTransport } from '../../../../src/runtime/transport/shm.js';
import type { WhyGone } from '../../../../src/runtime/failure/breakage.js';
import { socketNetwork } from '../../../../src/runtime/transport/socket.js';
import type { FifoSize, ReceiveConnection, SendConnection, Transport } from '../../../../src/runtime/transport/transport.js';

/** Both ends of a connection from rank 0 to rank 1, in one thread. */
export interface ConnectedPair {
  readonly sender: SendConnection;
  readonly receiver: ReceiveConnection;
  readonly senderSegment: Segment;
  readonly receiverSegment: Segment;
  /** Ends a rank without a goodbye, as a kill does. */
  readonly kill: (rank: 0 | 1) => void;
  readonly closeTransports: () => void;
}

export const secret = new Uint8Array(32).fill(7);
const never = new AbortController().signal;

/** Segments of a host's ranks, small ones. */
export function hostSegments(
  nRanks: number,
  pages = 1024,
): { readonly memory: WebAssembly.Memory; readonly segments: Segment[] } {
  const memory = createMemory(pages);
  const segments = Array.from({ length: nRanks }, (_, rank) => Segment.ofThreads(memory, rank, nRanks));
  for (const segment of segments) segment.ranks.setState(rankStates.ready);
  return { memory, segments };
}

/** The way in which each end of a socket moves its data. */
export type Moves = 'node:net' | 'system calls';

export const { libc } = loadLibc();

/** The wires of the sender and the receiver of a socket. */
export type Ends = readonly [Moves, Moves];

/** A pair in memory that two ranks of a host share. */
export async function openShmPair(size: FifoSize, isForShortMessages = false): Promise<ConnectedPair> {
  const { memory, segments } = hostSegments(2);
  const [a, b] = segments.map(
    (segment) =>
      new ShmTransport({
        team: Team.ofAll(segment),
        localRanks: [0, 1],
        size,
        ...(isForShortMessages ? { lowLatency: { headerBytes: 0, headerWords: 0 } } : {}),
      }),
  );
  return {
    ...(await join(a!, b!)),
    senderSegment: segments[0]!,
    receiverSegment: segments[1]!,
    kill: (rank) => markDead(memory, rank),
  };
}

interface SocketPair extends ConnectedPair {
  /** Of rank 0 and of rank 1. */
  readonly sockets: readonly [Socket, Socket];
}

/** A pair over a socket. */
export async function openSocketPair(
  size: FifoSize,
  moves: Ends = ['node:net', 'node:net'],
  {
    whyGone,
    twoWay = false,
    sockets: count = 1,
  }: { readonly whyGone?: WhyGone; readonly twoWay?: boolean; readonly sockets?: number } = {},
): Promise<SocketPair> {
  const segments = [hostSegments(1).segments[0]!, hostSegments(1).segments[0]!];
  const [a, b] = segments.map((segment, rank) =>
    socketNetwork.open({
      segment,
      rank,
      host: '127.0.0.1',
      secret,
      size,
      sockets: count,
      libc: moves[rank] === 'system calls' ? libc : undefined,
      placeOf: (other) => `rank ${other} on host${other} (10.0.0.${other})`,
      ...(whyGone === undefined ? {} : { whyGone }),
    }),
  );
  const sockets = { client: [] as Socket[], server: [] as Socket[] };
  const watch = (side: 'client' | 'server') => (message: unknown) =>
    void sockets[side].push((message as { socket: Socket }).socket);
  const [client, server] = [watch('client'), watch('server')];
  subscribe('net.client.socket', client);
  subscribe('net.server.socket', server);
  const ends = await join(a!, b!, twoWay);
  unsubscribe('net.client.socket', client);
  unsubscribe('net.server.socket', server);
  return {
    ...ends,
    senderSegment: segments[0]!,
    receiverSegment: segments[1]!,
    kill(rank) {
      for (const socket of sockets[rank === 0 ? 'server' : 'client']) socket.destroy();
    },
    sockets: [sockets.server[0]!, sockets.client[0]!],
  };
}

/** Connects rank 0 of one transport with rank 1 of another. */
export async function join(
  from: Transport,
  to: Transport,
  twoWay = false,
): Promise<Pick<ConnectedPair, 'sender' | 'receiver' | 'closeTransports'>> {
  const [send, receive] = await Promise.all(
    twoWay ? [from.setUpBoth!(1), to.setUpBoth!(0)] : [from.setUpSend(1), to.setUpReceive(0)],
  );
  const [sender, receiver] = await Promise.all([send.connect(receive.info, never), receive.connect(send.info, never)]);
  const closeTransports = (): void => {
    from.close();
    to.close();
  };
  return { sender, receiver, closeTransports };
}

/** Sleeps in the event loop until a connection of sockets has news, as a rank does. */
export async function news(end: SendConnection | ReceiveConnection): Promise<void> {
  if (end.fd < 0) {
    await new Promise<void>((resolve) => end.onNews(resolve));
    end.onNews(undefined);
    return;
  }
  await new Promise<void>((resolve) => {
    const watches: FdWatch[] = [];
    const addFd = (fd: number, readable: boolean, writable: boolean): void => {
      const stop = (): void => {
        for (const watch of watches.splice(0)) watch.close();
        resolve();
      };
      watches.push(libc!.watchFd(fd, { readable, writable }, stop));
    };
    end.wakeOn({ addFd }, 'message');
  });
}

/** Lets the event loop turn until the condition holds, or the test's own limit ends it. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}

/** The error of a call; undefined without one. */
export function thrown(call: () => unknown): unknown {
  try {
    call();
    return undefined;
  } catch (error) {
    return error;
  }
}
