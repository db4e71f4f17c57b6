import { SystemError } from '../../errors.js';
import { loadLibc, type Libc } from './libc.js';

const SOL_SOCKET = 1;
const SCM_RIGHTS = 1;
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

/**
 * A place of this process to which others of the host send file descriptors: a datagram socket without a name in any folder. A
 * message has a token, which the sender got by a safe way; those of other senders are dropped.
 */
export class DescriptorMailbox {
  readonly address: Uint8Array;
  readonly #fd: number;

  /** @throws SystemError `SHARED_MEMORY` */
  constructor() {
    this.#fd = libc().datagramSocket();
    this.address = libc().giveAddress(this.#fd);
  }

  /**
   * The descriptor of a message that has been sent.
   * @throws SystemError `SHARED_MEMORY` if there is none with the token
   */
  receive(token: Uint8Array): number {
    for (;;) {
      const { bytes, view } = makeMessage();
      const received = libc().receiveMessage(this.#fd, bytes);
      const isOne =
        view.getBigUint64(places.controlBytes, true) >= BigInt(CONTROL_LENGTH) &&
        view.getInt32(CONTROL + 12, true) === SCM_RIGHTS;
      const fd = isOne ? view.getInt32(CONTROL + 16, true) : -1;
      const isExpected = received === TOKEN_BYTES && token.every((byte, i) => bytes[DATA + i] === byte);
      if (isExpected && fd >= 0) return fd;
      if (fd >= 0) libc().close(fd);
    }
  }

  close(): void {
    libc().close(this.#fd);
  }
}

/** Sends a descriptor to a mailbox of another process; it has it when this returns. @throws SystemError `SHARED_MEMORY` */
export function sendDescriptor(fd: number, to: Uint8Array, token: Uint8Array): void {
  const socket = libc().datagramSocket();
  try {
    const { bytes, view } = makeMessage(to, token);
    view.setBigUint64(CONTROL, BigInt(CONTROL_LENGTH), true);
    view.setInt32(CONTROL + 8, SOL_SOCKET, true);
    view.setInt32(CONTROL + 12, SCM_RIGHTS, true);
    view.setInt32(CONTROL + 16, fd, true);
    libc().sendMessage(socket, bytes);
  } finally {
    libc().close(socket);
  }
}

export function closeDescriptor(fd: number): void {
  libc().close(fd);
}

function libc(): Libc {
  const { libc, reason } = loadLibc();
  if (libc === undefined) throw new SystemError('SHARED_MEMORY', reason);
  return libc;
}

function makeMessage(to?: Uint8Array, data?: Uint8Array): { bytes: Uint8Array; view: DataView } {
  const bytes = new Uint8Array(new ArrayBuffer(MESSAGE_BYTES));
  const view = new DataView(bytes.buffer);
  const start = libc().addressOf(bytes);
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
