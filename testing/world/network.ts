import type { NetConnectOpts } from 'node:net';
import { End, failure } from './connection-end.js';
import { VirtualServer, VirtualSocket } from './sockets.js';
import type { World } from './world.js';

/** Number of someone who is no rank. */
const STRANGER = 200;

/** The network between ranks, each of which has an address of its own. */
export class VirtualNetwork {
  readonly servers = new Map<string, VirtualServer>();
  readonly ends = new Set<End>();
  readonly #closedWays = new Map<string, number>();
  #nextPort = 30000;

  constructor(
    readonly world: World,
    readonly inRank: (rank: number, run: () => void) => void,
  ) {}

  addressOf(rank: number): string {
    return `10.0.0.${rank + 1}`;
  }

  freePort(): number {
    return this.#nextPort++;
  }

  /** Usually a fraction of a millisecond, rarely some. */
  delayMs(): number {
    const { random } = this.world;
    return random.chance(0.02) ? 5 * random.next() : 0.02 + 0.2 * random.next();
  }

  /** Lets nothing pass from one rank to another until a time, or longer if it is closed for longer already. */
  closeWay(from: number, to: number, untilMs: number): void {
    const way = `${from} ${to}`;
    this.#closedWays.set(way, Math.max(untilMs, this.#closedWays.get(way) ?? 0));
  }

  /** Time at which packets pass again; undefined if they pass now. */
  opensMs(from: number, to: number): number | undefined {
    const untilMs = this.#closedWays.get(`${from} ${to}`);
    return untilMs === undefined || untilMs <= this.world.nowMs ? undefined : untilMs;
  }

  createServer(rank: number, onConnection?: (socket: VirtualSocket) => void): VirtualServer {
    return new VirtualServer(this, rank, onConnection);
  }

  connect(
    rank: number,
    options: NetConnectOpts & { onread?: unknown; host?: string; port?: number; timeout?: number },
  ): VirtualSocket {
    const { host = '', port = 0 } = options;
    const socket = new VirtualSocket(options.onread);
    socket.connecting = true;
    const localAddress = host.startsWith('127.') ? '127.0.0.1' : this.addressOf(rank);
    const [mine, theirs] = [this.freePort(), port];
    const target = host.startsWith('127.') ? rank : Number(host.slice(host.lastIndexOf('.') + 1)) - 1;
    const { world } = this;
    if (options.timeout !== undefined) world.after(options.timeout, rank, () => socket.connecting && socket.emit('timeout'));
    const attempt = (): void => {
      if (socket.destroyed) return;
      const blockedMs = this.opensMs(rank, target) ?? this.opensMs(target, rank);
      if (blockedMs !== undefined) return void world.after(1000, undefined, attempt);
      const server = this.servers.get(`${host}:${theirs}`);
      if (server?.accepts !== true) {
        world.after(this.delayMs(), rank, () => socket.destroy(failure('ECONNREFUSED', 'connect', ` ${host}:${theirs}`)));
        return;
      }
      const here = new End(this, rank, localAddress, mine, host, theirs);
      const there = new End(this, server.rank, host, theirs, localAddress, mine);
      here.other = there;
      there.other = here;
      this.ends.add(here).add(there);
      world.after(0.005, server.rank, () => {
        const accepted = new VirtualSocket();
        accepted.attach(there);
        server.emit('connection', accepted);
      });
      world.after(this.delayMs(), rank, () => {
        if (socket.destroyed) {
          here.close(false);
          return;
        }
        socket.attach(here);
        socket.emit('connect');
        socket.emit('ready');
      });
    };
    world.after(this.delayMs(), undefined, attempt);
    return socket;
  }

  /** Closes everything of a rank whose process has gone. */
  crash(rank: number): void {
    for (const [name, server] of this.servers) if (server.rank === rank) this.servers.delete(name);
    for (const end of [...this.ends]) if (end.rank === rank) end.close(false);
  }

  /** Someone who is no rank connects to every server, sends bytes, and stays or leaves. */
  strangerKnocks(bytes: number, stays: boolean): void {
    const { random } = this.world;
    for (const name of this.servers.keys()) {
      const [host = '', port] = name.split(':');
      const socket = this.connect(STRANGER, { host, port: Number(port) });
      socket.on('error', () => undefined);
      socket.once('connect', () => {
        if (bytes > 0) socket.write(Buffer.from(Array.from({ length: bytes }, () => random.integer(0, 256))));
        if (!stays) socket.destroy();
      });
    }
  }

  /** Resets a random connection of two ranks. */
  resetOne(): string | undefined {
    const ends = [...this.ends].filter(({ other, isClosed }) => !isClosed && other !== undefined);
    if (ends.length === 0) return undefined;
    const end = ends[this.world.random.integer(0, ends.length)];
    if (end === undefined) return undefined;
    const { name, other } = end;
    end.breakOff();
    other?.breakOff();
    return name;
  }

  /** Lines of the kernel's table of a rank's connections. */
  tableOf(rank: number): string {
    return ['header', ...[...this.ends].filter((end) => end.rank === rank).map((end) => end.line())].join('\n');
  }
}
