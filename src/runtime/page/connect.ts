import type { Bootstrap } from '../bootstrap/bootstrap.js';
import { ConnectionEndedError } from '../bootstrap/rank-connection.js';
import { RankGroup } from '../bootstrap/group.js';
import { decodeJson, encodeJson } from '../bootstrap/json.js';
import { Mesh } from '../bootstrap/mesh.js';
import { Network, spaces } from '../bootstrap/network.js';
import { peersOf, type Introduction } from '../bootstrap/peer-info.js';
import { setTimeout } from '../platform/platform.js';
import { version } from '../../version.js';
import type { PagePlace, ToRank } from './place.js';
import { makeChannel, PortConnection, type Port } from './port-connection.js';
import { onAbort } from '../abort-signals.js';

/** Time for what a rank sent before its end: the news of that end comes from the page. */
const LAST_MESSAGES_MS = 50;
/** Every rank of a page is at one address, which nothing connects to. */
const ADDRESS = { host: 'page', port: 1 };

/**
 * The bootstrap network of a page's ranks: the mesh of Node's ranks, on ports in place of sockets.
 *
 *     rank r                           rank r + 1
 *       │ a port of a new channel ─────────►│     by the line that the page laid between the two
 *       │◄───────────────────── "welcome"   │     when it joins
 *       │ all-gather around the ring: what each rank is
 *
 * @param signal aborts the set-up
 */
export async function connectInPage(place: PagePlace, device: string | undefined, signal: AbortSignal): Promise<Bootstrap> {
  const { rank, nRanks, lines, control } = place;
  /** Open connections, by rank. */
  const connections = lines.map(() => new Set<PortConnection>());
  const open = (port: Port, to: number, events: ConstructorParameters<typeof PortConnection>[1]): PortConnection => {
    const connection: PortConnection = new PortConnection(port, {
      ...events,
      end: (cause) => {
        connections[to]?.delete(connection);
        events.end(cause);
      },
    });
    connections[to]?.add(connection);
    return connection;
  };
  const mesh = new Mesh(rank, nRanks, async ({ to, events }) => {
    const { port1, port2 } = makeChannel();
    const connection = open(port1, to, events);
    lines[to]?.postMessage(0, [port2]);
    await connection.welcomed;
    return connection;
  });
  lines.forEach((line, from) => {
    if (line === undefined) return;
    line.onmessage = ({ ports: [port] }) => {
      if (port !== undefined) mesh.accept(from, (events) => open(port, from, events).welcome());
    };
  });
  control.onmessage = ({ data }) => {
    const { rank: dead, why } = data as ToRank;
    setTimeout(() => {
      for (const connection of connections[dead] ?? []) connection.end(new ConnectionEndedError(why));
    }, LAST_MESSAGES_MS);
  };
  const stopListening = onAbort(signal, () =>
    mesh.abort(signal.reason as Error, { kind: 'aborted', rank, reason: 'it gave up in init' }),
  );
  try {
    const ranks = Array.from({ length: nRanks }, (_, other) => other);
    const all = new RankGroup(mesh, ranks, spaces.all, 'all');
    await mesh.joinRing(new Uint8Array(), undefined, ADDRESS);
    const { host, port } = ADDRESS;
    const introduction: Introduction = {
      rank,
      hostHash: 'page',
      processHash: 'page',
      hostname: 'page',
      pid: 0,
      device,
      version,
      address: `${host}:${port}`,
    };
    const introductions = (await all.allGather(encodeJson(introduction))).map((data) => decodeJson(data) as Introduction);
    const peers = peersOf(introductions);
    mesh.introduce({ addresses: ranks.map(() => ADDRESS), names: ranks.map((one) => `rank ${one}`) });
    return new Network(mesh, 0, ranks, peers, all);
  } finally {
    stopListening();
  }
}
