import type { VirtualNetwork } from './network.js';

/** Bytes that a kernel holds for a reader that does not read. */
const WINDOW_BYTES = 256 * 1024;
/** Times of TCP, milliseconds: the first repetition of unanswered data, and between two probes. */
const REPEAT_MS = 200;
const PROBE_MS = 1000;

/** One end of a TCP connection, as the kernel has it. */
export class End {
  /** The other end; undefined until the connection is made. */
  other: End | undefined;
  /** The reader of what arrives here. */
  socket: { news(): void } | undefined;
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

  /** Time at which packets pass again; undefined if they pass now. Nothing cuts a loopback interface. */
  #opensMs(other: End): number | undefined {
    return this.localAddress.startsWith('127.') ? undefined : this.network.opensMs(this.rank, other.rank);
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
      const openMs = this.#opensMs(other);
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
    // What has arrived can still be read, as on Linux.
    this.wasReset = true;
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
    const { other } = this;
    const isCut = other !== undefined && (this.#opensMs(other) ?? other.#opensMs(this)) !== undefined;
    const probes = this.travelling === 0 && isCut && idleMs > 0 ? Math.floor(idleMs / PROBE_MS) : 0;
    return ` 1: 0100000A:${hex(this.localPort, 4)} 0100000A:${hex(this.remotePort, 4)} 01 ${hex(this.travelling, 8)}:00000000 00:00000000 ${hex(repeats, 8)}     0        ${probes} 0`;
  }
}

/** An error of the system, as Node makes them. */
export function failure(code: string, syscall: string, address = ''): NodeJS.ErrnoException {
  return Object.assign(new Error(`${syscall} ${code}${address}`), { code, syscall, errno: -1 });
}
