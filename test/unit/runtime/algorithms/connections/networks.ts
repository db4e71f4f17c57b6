import type { Bootstrap } from '../../../../../src/runtime/bootstrap/bootstrap.js';
import {
  ringInOrder,
  treesInOrder,
  type Channels,
  type TreeChannel,
} from '../../../../../src/runtime/algorithms/connections/channels.js';
import { networkAlgorithm } from '../../../../../src/runtime/algorithms/connections/registry.js';
import { NetworkEngine } from '../../../../../src/runtime/algorithms/connections/network-engine.js';
import { loadLibc } from '../../../../../src/runtime/device/libc.js';
import { rankStates } from '../../../../../src/runtime/device/rank-lines.js';
import { Segment } from '../../../../../src/runtime/device/segment.js';
import { createMemory } from '../../../../../src/runtime/device/shared-memory.js';
import { Team } from '../../../../../src/runtime/device/team.js';
import type { NumericArray } from '../../../../../src/runtime/device/types.js';
import { connectPeers } from '../../../../../src/runtime/transport/peers.js';
import { RingOfRanks } from '../../../../../src/runtime/transport/ring.js';
import { ShmTransport } from '../../../../../src/runtime/transport/shm.js';
import { SocketTransport } from '../../../../../src/runtime/transport/socket.js';
import type { FifoSize, Transport } from '../../../../../src/runtime/transport/transport.js';

const never = new AbortController().signal;

/** One of several ranks in one thread. */
export interface Member {
  readonly rank: number;
  readonly engine: NetworkEngine;
  readonly segment: Segment;
}

/**
 * n ranks with connections of one size, in rings of the orders given, or ascending. Others than the rings' come when needed.
 * Hosts are a matter of the algorithms: all ranks have the same transport. Sockets are read and written by node:net, or by
 * system calls.
 */
export async function openNetwork(
  name: 'shm' | 'socket' | 'system calls',
  n: number,
  size: FifoSize,
  order = Array.from({ length: n }, (_, rank) => rank),
  hosts: readonly (readonly number[])[] = [order],
  ...more: readonly (readonly number[])[]
): Promise<Member[]> {
  const orders = [order, ...more];
  const rings = orders.map((each) => ({ order: each, nics: [] }));
  const channels: Channels = {
    ...ringInOrder([order], ''),
    hosts,
    rings,
    ringOfChannel: orders.map((_, ring) => ring),
    ...(hosts.length > 1 ? { trees: chainTrees(hosts) } : {}),
  };
  const shared = createMemory(2048);
  const segments = order.map((_, rank) =>
    name === 'shm' ? Segment.ofThreads(shared, rank, n) : Segment.ofThreads(createMemory(512), 0, 1),
  );
  for (const segment of segments) segment.ranks.setState(rankStates.ready);
  const { libc } = loadLibc();
  const ofSockets = { host: '127.0.0.1', secret: new Uint8Array(32), size, libc: name === 'system calls' ? libc : undefined };
  const transports: Transport[] = segments.map((segment, rank) =>
    name === 'shm'
      ? new ShmTransport({ team: Team.ofAll(segment), localRanks: order.map((_, local) => local), size })
      : new SocketTransport({ segment, rank, ...ofSockets }),
  );
  const bootstraps = mailboxes(n);
  return Promise.all(
    segments.map(async (segment, rank) => {
      const transportFor = (): Transport => transports[rank]!;
      const ends = networkAlgorithm('ring').ends(channels, rank);
      const { sends, receives } = await connectPeers(bootstraps[rank]!, ends.sendTo, ends.receiveFrom, transportFor, never);
      const rings = orders.map((each, i) => new RingOfRanks(rank, each, { send: sends[i]!, receive: receives[i]! }));
      const engine = new NetworkEngine(Team.ofAll(segment), rank % 2 === 0 ? libc : undefined, rings, channels, (algorithm) => {
        const { sendTo, receiveFrom } = networkAlgorithm(algorithm).ends(channels, rank);
        return connectPeers(bootstraps[rank]!, sendTo, receiveFrom, transportFor, never);
      });
      return { rank, engine, segment };
    }),
  );
}

/** Trees as plans have them: chains of the ranks of a host, up to three children, more trees than two. */
function chainTrees(hosts: readonly (readonly number[])[]): TreeChannel[] {
  const ofHosts = treesInOrder(hosts.map((_, host) => host));
  return [0, 1, 2, 3].map((tree) => {
    const chains = hosts.map((ranks) => (tree % 2 === 0 ? ranks : ranks.toReversed()));
    const up: number[] = [];
    const down: number[][] = [];
    for (const chain of chains)
      for (const [place, rank] of chain.entries())
        [up[rank], down[rank]] = [chain[place - 1] ?? -1, chain.slice(place + 1, place + 2)];
    const { up: above } = ofHosts[tree < 2 ? 0 : 1];
    chains.forEach(([head = 0], host) => {
      const [first, second = first] = chains[above[host] ?? -1] ?? [];
      const parent = tree === 0 ? first : second;
      if (parent === undefined) return;
      up[head] = parent;
      down[parent]?.push(head);
    });
    return { up, down };
  });
}

/** The part of bootstrap networks that connecting needs: messages between the ranks of this thread. */
function mailboxes(n: number): Bootstrap[] {
  const messages = new Map<string, Uint8Array[]>();
  const waiters = new Map<string, ((data: Uint8Array) => void)[]>();
  return Array.from({ length: n }, (_, rank): Partial<Bootstrap> => ({
    rank,
    nRanks: n,
    onFailure: () => () => undefined,
    waitFor: () => () => undefined,
    send: (peer, tag, data) => {
      const key = `${rank} ${peer} ${tag}`;
      const waiter = waiters.get(key)?.shift();
      if (waiter === undefined) messages.set(key, [...(messages.get(key) ?? []), data]);
      else waiter(data);
      return Promise.resolve();
    },
    recv: (peer, tag) => {
      const key = `${peer} ${rank} ${tag}`;
      const message = messages.get(key)?.shift();
      if (message !== undefined) return Promise.resolve(message);
      return new Promise((resolve) => waiters.set(key, [...(waiters.get(key) ?? []), resolve]));
    },
    // Asked where connecting takes long, as on a busy machine.
    whyGone: () => new Promise<never>(() => undefined),
  })) as Bootstrap[];
}

/** A random number generator that a test can repeat. */
export function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export const bytesOf = (array: NumericArray): Buffer => Buffer.from(array.buffer, array.byteOffset, array.byteLength);
