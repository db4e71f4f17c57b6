import { EventEmitter } from 'node:events';
import type { NetConnectOpts } from 'node:net';
import { Duplex } from 'node:stream';
import type { World } from './world.js';

/** Bytes that a kernel holds for a reader that does not read. */
const WINDOW_BYTES = 256 * 1024;
/** Times of TCP, milliseconds: the first repetition of unanswered data, and between two probes. */
const REPEAT_MS = 200;
const PROBE_MS = 1000;

type OnRead = {
  readonly buffer: Uint8Array | (() => Uint8Array);
  readonly callback: (bytes: number, buffer: Uint8Array) => boolean;
};

/** One end of a TCP connection, as the kernel has it. */
class End {
  /** The other end; undefined until the connection is made. */
  other: End | undefined;
  socket: VirtualSocket | undefined;
  /** Bytes that have arrived and are unread. */
  readonly unread: Buffer[] = [];
  unreadBytes = 0;
  /** Bytes on their way to the other end. */
  travelling = 0;
  /** Time since which data on their way are unanswered. */
  travellingSinceMs = 0;
  heardMs: number;
  hasEnded = false;
  endRead = false;
  wasReset = false;
  isClosed = false;
  /** Packets on their way, in the order in which TCP delivers them. */
  readonly #travellers: { readonly action: (other: End) => void; readonly atMs: number }[] = [];
  probeAfterMs = Infinity;
  /** Writes that wait for room. */
  readonly waiting: (() => void)[] = [];

  constructor(
    readonly network: VirtualNetwork,
    readonly rank: number,
    readonly localAddress: string,
    readonly localPort: number,
    readonly remoteAddress: string,
    readonly remotePort: number,
  ) {
    this.heardMs = network.world.nowMs;
  }

  get name(): string {
    return `${this.localAddress}:${this.localPort}>${this.remoteAddress}:${this.remotePort}`;
  }

  /** Does something at the other end after the delay of the way, in order. */
  #send(action: (other: End) => void): void {
    const { world } = this.network;
    this.#travellers.push({ action, atMs: world.nowMs + this.network.delayMs() });
    if (this.#travellers.length === 1) this.#travel();
  }

  /** Lets the first of the travellers arrive, then the next. */
  #travel(): void {
    const { network, other } = this;
    const [first] = this.#travellers;
    if (first === undefined || other === undefined) return;
    const { world } = network;
    const arrive = (): void => {
      const openMs = network.opensMs(this.rank, other.rank);
      if (openMs !== undefined) {
        if (openMs < Infinity) world.after(openMs - world.nowMs + REPEAT_MS * world.random.next(), undefined, arrive);
        return;
      }
      this.#travellers.shift();
      other.heardMs = world.nowMs;
      first.action(other);
      this.#travel();
    };
    world.after(first.atMs - world.nowMs, undefined, arrive);
  }

  /** Writes bytes; calls `done` when the kernel has taken them. */
  write(bytes: Buffer, done: (error?: Error) => void): void {
    const { other, network } = this;
    if (this.wasReset || this.isClosed || other === undefined) {
      done(failure('EPIPE', 'write'));
      return;
    }
    if (this.travelling + other.unreadBytes >= WINDOW_BYTES) {
      this.waiting.push(() => this.write(bytes, done));
      return;
    }
    const random = network.world.random;
    // Data may arrive in pieces.
    const cut = bytes.length > 1 && random.chance(0.2) ? random.integer(1, bytes.length) : bytes.length;
    for (const piece of cut < bytes.length ? [bytes.subarray(0, cut), bytes.subarray(cut)] : [bytes]) {
      if (this.travelling === 0) this.travellingSinceMs = network.world.nowMs;
      this.travelling += piece.length;
      const copy = Buffer.from(piece);
      this.#send((end) => {
        this.travelling -= copy.length;
        this.travellingSinceMs = network.world.nowMs;
        this.heardMs = network.world.nowMs;
        end.#arrived(copy);
      });
    }
    done();
  }

  #arrived(bytes: Buffer): void {
    if (this.wasReset) return;
    if (this.isClosed) {
      this.#send((end) => end.#reset());
      return;
    }
    this.unread.push(bytes);
    this.unreadBytes += bytes.length;
    this.#tell();
  }

  #tell(): void {
    const { socket } = this;
    if (socket !== undefined) this.network.inRank(this.rank, () => socket.news());
  }

  end(): void {
    this.#send((end) => {
      if (end.isClosed || end.wasReset) return;
      end.hasEnded = true;
      end.#tell();
    });
  }

  #reset(): void {
    if (this.wasReset || this.isClosed) return;
    this.wasReset = true;
    this.unread.length = 0;
    this.unreadBytes = 0;
    this.#tell();
    this.#proceed();
  }

  /** The network ends it: both sides find a reset. */
  breakOff(): void {
    this.#reset();
  }

  reset(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.network.ends.delete(this);
    if (!this.wasReset) this.#send((end) => end.#reset());
  }

  /** Closes as the kernel does: with a reset if data are unread. */
  close(hasSaidEnd: boolean): void {
    if (this.isClosed) return;
    if (this.unreadBytes > 0) {
      this.reset();
      return;
    }
    this.isClosed = true;
    this.network.ends.delete(this);
    if (!hasSaidEnd && !this.wasReset) this.end();
  }

  /** Takes unread bytes, at most `most`. */
  take(most: number): Buffer | undefined {
    const first = this.unread[0];
    if (first === undefined) return undefined;
    const part = first.length <= most ? first : first.subarray(0, most);
    if (part.length === first.length) this.unread.shift();
    else this.unread[0] = first.subarray(most);
    this.unreadBytes -= part.length;
    if (this.other !== undefined) this.other.#proceed();
    return part;
  }

  /** Lets writes proceed that waited for room. */
  #proceed(): void {
    for (const write of this.waiting.splice(0)) this.network.inRank(this.rank, write);
  }

  /** A line of the kernel's table of connections. */
  line(): string {
    const { nowMs } = this.network.world;
    const hex = (value: number, digits: number): string => value.toString(16).toUpperCase().padStart(digits, '0');
    const unansweredMs = this.travelling > 0 ? nowMs - this.travellingSinceMs : 0;
    const repeats = unansweredMs < REPEAT_MS ? 0 : 1 + Math.floor(Math.log2(unansweredMs / REPEAT_MS));
    const idleMs = nowMs - this.heardMs - this.probeAfterMs;
    const isCut =
      this.other !== undefined &&
      (this.network.opensMs(this.rank, this.other.rank) ?? this.network.opensMs(this.other.rank, this.rank)) !== undefined;
    const probes = this.travelling === 0 && isCut && idleMs > 0 ? Math.floor(idleMs / PROBE_MS) : 0;
    return ` 1: 0100000A:${hex(this.localPort, 4)} 0100000A:${hex(this.remotePort, 4)} 01 ${hex(this.travelling, 8)}:00000000 00:00000000 ${hex(repeats, 8)}     0        ${probes} 0`;
  }
}

function failure(code: string, syscall: string, address = ''): NodeJS.ErrnoException {
  return Object.assign(new Error(`${syscall} ${code}${address}`), { code, syscall, errno: -1 });
}

/** A socket of net, on the virtual network. */
class VirtualSocket extends Duplex {
  connecting = false;
  localAddress: string | undefined;
  localPort: number | undefined;
  remoteAddress: string | undefined;
  remotePort: number | undefined;
  #end: End | undefined;
  #wants = false;
  #saidEnd = false;
  #onread: OnRead | undefined;

  constructor(onread?: OnRead) {
    super({ allowHalfOpen: false, emitClose: true, autoDestroy: true, decodeStrings: true });
    this.#onread = onread;
    this.on('end', () => undefined);
  }

  /** Takes over one end of a connection that has been made. */
  attach(end: End): void {
    this.#end = end;
    end.socket = this;
    ({
      localAddress: this.localAddress,
      localPort: this.localPort,
      remoteAddress: this.remoteAddress,
      remotePort: this.remotePort,
    } = end);
    this.connecting = false;
    if (this.#onread !== undefined || !this.isPaused()) this.read(0);
  }

  news(): void {
    if (this.#end?.wasReset === true) {
      this.destroy(failure('ECONNRESET', 'read'));
      return;
    }
    this.#flow();
  }

  #flow(): void {
    const end = this.#end;
    if (end === undefined || this.destroyed) return;
    while (this.#wants && end.unreadBytes > 0) {
      if (this.#onread !== undefined) {
        const { buffer, callback } = this.#onread;
        const room = typeof buffer === 'function' ? buffer() : buffer;
        const bytes = end.take(room.length);
        if (bytes === undefined) break;
        room.set(bytes);
        if (!callback(bytes.length, room)) this.#wants = false;
        // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- the callback may destroy the socket
        if (this.destroyed) return;
      } else {
        const bytes = end.take(65536);
        if (bytes === undefined) break;
        this.#wants = false;
        if (!this.push(bytes)) break;
      }
    }
    if (end.hasEnded && end.unreadBytes === 0 && !end.endRead && this.#wants) {
      end.endRead = true;
      this.push(null);
      this.read(0);
    }
  }

  override _read(): void {
    this.#wants = true;
    if (this.#end !== undefined) this.#flow();
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    if (this.connecting) return void this.once('connect', () => this._write(chunk, _, done));
    if (this.#end === undefined) done(failure('EPIPE', 'write'));
    else this.#end.write(chunk, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    if (this.connecting) return void this.once('connect', () => this._final(done));
    this.#saidEnd = true;
    this.#end?.end();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.connecting = false;
    this.#end?.close(this.#saidEnd);
    done(error);
  }

  resetAndDestroy(): this {
    this.#end?.reset();
    return this.destroy();
  }

  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  setKeepAlive(isOn: boolean, afterMs = 0): this {
    if (this.#end !== undefined) this.#end.probeAfterMs = isOn ? afterMs : Infinity;
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

/** A server of net, on the virtual network. */
class VirtualServer extends EventEmitter {
  #address: { address: string; port: number; family: string } | undefined;

  constructor(
    readonly network: VirtualNetwork,
    readonly rank: number,
    onConnection?: (socket: VirtualSocket) => void,
  ) {
    super();
    if (onConnection !== undefined) this.on('connection', onConnection);
  }

  listen(first: number | { host?: string; port?: number }, second?: unknown, third?: unknown): this {
    const callback = [second, third].find((argument) => typeof argument === 'function') as (() => void) | undefined;
    const host = typeof first === 'object' ? first.host : typeof second === 'string' ? second : undefined;
    const wanted = typeof first === 'object' ? (first.port ?? 0) : first;
    const { network, rank } = this;
    const address = host ?? network.addressOf(rank);
    if (callback !== undefined) this.once('listening', callback);
    const port = wanted === 0 ? network.freePort() : wanted;
    const fail = (code: string): void =>
      void network.world.after(0.01, rank, () => this.emit('error', failure(code, 'listen', ` ${address}:${port}`)));
    if (address !== network.addressOf(rank) && !address.startsWith('127.')) fail('EADDRNOTAVAIL');
    else if (network.servers.has(`${address}:${port}`)) fail('EADDRINUSE');
    else {
      network.servers.set(`${address}:${port}`, this);
      this.#address = { address, port, family: 'IPv4' };
      network.world.after(0.01, rank, () => this.emit('listening'));
    }
    return this;
  }

  address(): { address: string; port: number; family: string } | null {
    return this.#address ?? null;
  }

  close(callback?: () => void): this {
    if (this.#address !== undefined) this.network.servers.delete(`${this.#address.address}:${this.#address.port}`);
    this.#address = undefined;
    if (callback !== undefined) this.network.world.after(0.01, this.rank, callback);
    return this;
  }

  unref(): this {
    return this;
  }
}

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

  /** Lets nothing pass from one rank to another until a time. */
  closeWay(from: number, to: number, untilMs: number): void {
    this.#closedWays.set(`${from} ${to}`, untilMs);
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
      if (server === undefined) {
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
