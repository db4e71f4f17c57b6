import { constants, getSystemErrorName } from '#platform/system';
import { SystemError } from '../../errors.js';
import { ownRequire } from '../../own-module.js';

interface Koffi {
  load(path: string | null): { func(prototype: string): (...values: unknown[]) => unknown };
  errno(): number;
}

interface Calls {
  readonly koffi: Koffi;
  readonly socket: (family: number, type: number, protocol: number) => number;
  readonly bind: (fd: number, address: Uint8Array, bytes: number) => number;
  readonly name: (fd: number, address: Uint8Array, bytes: Int32Array) => number;
  readonly send: (fd: number, message: Uint8Array, flags: number) => number;
  readonly receive: (fd: number, message: Uint8Array, flags: number) => number;
  readonly close: (fd: number) => number;
  readonly addressOf: (view: Uint8Array) => bigint;
}

const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SCM_RIGHTS = 1;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
const MSG_CMSG_CLOEXEC = 0x40000000;

/** Bytes of a mailbox's address: the family, a 0, and the five digits that Linux chooses. */
export const MAILBOX_BYTES = 8;
/** Bytes of what a message has beside the descriptor. */
export const TOKEN_BYTES = 16;

/** Places in a message: a struct msghdr, its iovec, its control message (length, level, kind, descriptor) and its data. */
const places = { name: 0, nameBytes: 8, pieces: 16, nPieces: 24, control: 32, controlBytes: 40, flags: 48 } as const;
const PIECE = 56;
const CONTROL = 72;
const CONTROL_LENGTH = 20;
const DATA = CONTROL + 24;
const NAME = DATA + TOKEN_BYTES;
const MESSAGE_BYTES = NAME + 112;

let bound: Calls | undefined;

function calls(): Calls {
  return (bound ??= bindCalls(ownRequire()('koffi') as Koffi));
}

function bindCalls(koffi: Koffi): Calls {
  const c = koffi.load(null);
  const move = c.func('uintptr_t memmove(void *destination, void *source, size_t bytes)');
  return {
    koffi,
    socket: c.func('int socket(int family, int type, int protocol)') as Calls['socket'],
    bind: c.func('int bind(int fd, const void *address, uint32_t bytes)') as Calls['bind'],
    name: c.func('int getsockname(int fd, void *address, void *bytes)') as Calls['name'],
    send: c.func('int64_t sendmsg(int fd, const void *message, int flags)') as Calls['send'],
    receive: c.func('int64_t recvmsg(int fd, void *message, int flags)') as Calls['receive'],
    close: c.func('int close(int fd)') as Calls['close'],
    addressOf: (view) => BigInt(move(view, view, 0) as bigint | number),
  };
}

/**
 * A place of this process to which others of the host send file descriptors: a datagram socket without a name in any folder. A
 * message has a token, which the sender got by a safe way; those of other senders are dropped.
 */
export class DescriptorMailbox {
  readonly address: Uint8Array;
  readonly #fd: number;

  /** @throws SystemError `SHARED_MEMORY` */
  constructor() {
    this.#fd = openSocket();
    const [address, length] = [new Uint8Array(new ArrayBuffer(112)), Int32Array.of(112)];
    address[0] = AF_UNIX;
    // An address of the family alone lets Linux choose a name.
    check('bind', calls().bind(this.#fd, address, 2));
    check('getsockname', calls().name(this.#fd, address, length));
    this.address = address.slice(0, MAILBOX_BYTES);
  }

  /**
   * The descriptor of a message that has been sent.
   * @throws SystemError `SHARED_MEMORY` if there is none with the token
   */
  receive(token: Uint8Array): number {
    const { koffi, receive, close } = calls();
    for (;;) {
      const { bytes, view } = makeMessage();
      const received = receive(this.#fd, bytes, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
      if (received === -1 && koffi.errno() === constants.errno.EINTR) continue;
      check('recvmsg', received);
      const isOne =
        view.getBigUint64(places.controlBytes, true) >= BigInt(CONTROL_LENGTH) &&
        view.getInt32(CONTROL + 12, true) === SCM_RIGHTS;
      const fd = isOne ? view.getInt32(CONTROL + 16, true) : -1;
      const isExpected = received === TOKEN_BYTES && token.every((byte, i) => bytes[DATA + i] === byte);
      if (isExpected && fd >= 0) return fd;
      if (fd >= 0) close(fd);
    }
  }

  close(): void {
    calls().close(this.#fd);
  }
}

/** Sends a descriptor to a mailbox of another process; it has it when this returns. @throws SystemError `SHARED_MEMORY` */
export function sendDescriptor(fd: number, to: Uint8Array, token: Uint8Array): void {
  const socket = openSocket();
  try {
    const { bytes, view } = makeMessage(to, token);
    view.setBigUint64(CONTROL, BigInt(CONTROL_LENGTH), true);
    view.setInt32(CONTROL + 8, SOL_SOCKET, true);
    view.setInt32(CONTROL + 12, SCM_RIGHTS, true);
    view.setInt32(CONTROL + 16, fd, true);
    check('sendmsg', calls().send(socket, bytes, MSG_DONTWAIT | MSG_NOSIGNAL));
  } finally {
    calls().close(socket);
  }
}

export function closeDescriptor(fd: number): void {
  calls().close(fd);
}

function openSocket(): number {
  return check('socket', calls().socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

function makeMessage(to?: Uint8Array, data?: Uint8Array): { bytes: Uint8Array; view: DataView } {
  const bytes = new Uint8Array(new ArrayBuffer(MESSAGE_BYTES));
  const view = new DataView(bytes.buffer);
  const start = calls().addressOf(bytes);
  const set = (at: number, value: bigint | number): void => view.setBigUint64(at, BigInt(value), true);
  if (to !== undefined) {
    bytes.set(to, NAME);
    set(places.name, start + BigInt(NAME));
    view.setUint32(places.nameBytes, to.length, true);
  }
  if (data !== undefined) bytes.set(data, DATA);
  set(places.pieces, start + BigInt(PIECE));
  set(places.nPieces, 1);
  set(PIECE, start + BigInt(DATA));
  set(PIECE + 8, TOKEN_BYTES);
  set(places.control, start + BigInt(CONTROL));
  set(places.controlBytes, DATA - CONTROL);
  return { bytes, view };
}

function check(call: string, result: number): number {
  if (result === -1)
    throw new SystemError(
      'SHARED_MEMORY',
      `${call} failed: ${getSystemErrorName(-calls().koffi.errno())}; a file descriptor has to pass`,
    );
  return result;
}
