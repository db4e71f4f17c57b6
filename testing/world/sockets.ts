import { EventEmitter } from 'node:events';
import { Duplex } from 'node:stream';
import { failure, type End } from './connection-end.js';
import type { VirtualNetwork } from './network.js';

type OnRead = {
  readonly buffer: Uint8Array | (() => Uint8Array);
  readonly callback: (bytes: number, buffer: Uint8Array) => boolean;
};

/** A socket of net, on the virtual network. */
export class VirtualSocket extends Duplex {
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
    } else if (end.wasReset && end.unreadBytes === 0 && !end.endRead) this.destroy(failure('ECONNRESET', 'read'));
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
export class VirtualServer extends EventEmitter {
  /** True after `listening`: nobody is let in before. */
  accepts = false;
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
      network.world.after(0.01, rank, () => {
        this.accepts = true;
        this.emit('listening');
      });
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
