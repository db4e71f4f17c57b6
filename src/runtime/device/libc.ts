import { constants, getSystemErrorName } from '#platform/system';
import { firstLineOf, SystemError } from '../../errors.js';
import { ownRequire } from '../../own-module.js';
import { FdWatches, type FdWatch, type Readiness } from './fd-watches.js';
import { defined } from '../../defined.js';

/**
 * The calls of the C library that sockets and shared memory between processes need. Lengths and offsets are in bytes. Calls
 * that move bytes through a descriptor return their number, or minus the `errno`; every other call throws a SystemError with
 * the name of its `errno` when it fails.
 */
export interface Libc {
  /** Address of the memory that a typed array views. */
  addressOf(view: Uint8Array): bigint;
  /**
   * Creates an anonymous file in memory, which has no name and ends with the last process that uses it. Its length is sealed,
   * because a file cut short ends all processes that map it with SIGBUS. Close it with `close`, not with node:fs.
   */
  createMemoryFile(name: string, bytes: number): number;
  close(fd: number): void;
  /** Allocates memory for a range of a file, so that touching it later cannot fail. */
  reserve(fd: number, offset: number, bytes: number): void;
  /** Maps the file's first `bytes` bytes over the memory at `address`, shared and writable. */
  mapShared(address: bigint, bytes: number, fd: number): void;
  /** Replaces the mapping at `address` by private memory of zeros. */
  mapPrivate(address: bigint, bytes: number): void;
  /** Locks one byte of the file as long as this descriptor is open. */
  lockByte(fd: number, offset: number): void;
  /** True if another descriptor holds a lock on the byte. */
  isByteLocked(fd: number, offset: number): boolean;
  /** Copies between any two arrays by the C library's copy. They may not overlap. */
  copy(destination: Uint8Array, source: Uint8Array, bytes: number): void;
  /**
   * Copies `destination.length` bytes from an address of another process, or of this one, without risk of a fault. Returns
   * the name of the `errno` if not all of them could be read.
   */
  readProcess(pid: number, address: number, destination: Uint8Array): string | undefined;
  /** Lets descendants of a process read this one's memory where Yama would not; without effect elsewhere. */
  admitDescendantsOf(pid: number): void;
  /**
   * Makes a function of machine code, which stays as long as the process lives. Its memory is first writable and then
   * executable, never both. It takes 64-bit integers, six at most, and returns nothing.
   */
  makeFunction(code: Uint8Array, nArguments: number): (...args: number[]) => void;
  /** Moves `bytes` bytes of this process, at a multiple of `bytes`, to a huge page if possible. */
  collapse(address: number, bytes: number): void;
  /** Gives the core to another runnable thread. */
  yieldCore(): void;
  /** The cores on which this thread may run, as numbers. */
  affinity(): number[];
  /** Lets this thread run on these cores only. */
  setAffinity(cores: readonly number[]): void;
  /** Sleeps. */
  sleep(microseconds: number): void;
  /** Sends bytes from an address, as many as the kernel has room for now. Never raises SIGPIPE. */
  send(fd: number, address: number, bytes: number): number;
  /** The same, of up to MOST_PIECES pieces of memory, one after the other, whose addresses and lengths `setPiece` has set. */
  sendPieces(fd: number, count: number): number;
  /** Receives arrived data, at most `bytes` bytes, to an address. 0 is the end of the stream. */
  recv(fd: number, address: number, bytes: number): number;
  /** The same, to such pieces. */
  recvPieces(fd: number, count: number): number;
  /** Sets piece `index` of the next `sendPieces` or `recvPieces`. */
  setPiece(index: number, address: number, bytes: number): void;
  /** A datagram socket of this host. With an address, which Linux chooses, it can receive. */
  datagramSocket(): number;
  giveAddress(fd: number): Uint8Array;
  /** Sends or receives a `struct msghdr`, of which the buffer has all parts. A received descriptor is closed by exec. */
  sendMessage(fd: number, message: Uint8Array): void;
  receiveMessage(fd: number, message: Uint8Array): number;
  /** State of a connection; undefined if `fd` is none. */
  tcpState(fd: number): TcpState | undefined;
  /** A pipe that never blocks. Other processes of the user can open its ends as `/proc/PID/fd/N`. */
  pipe(): { readonly readEnd: number; readonly writeEnd: number };
  /** Reads a byte from a pipe. */
  readFd(fd: number): number;
  /** Writes a byte to a pipe. */
  writeFd(fd: number): number;
  /**
   * Blocks until one of the first `count` descriptors is ready, or the time is over. `setPollEntry` fills `fds`. Returns the
   * number of ready descriptors; 0 after the time, or a signal.
   */
  pollFds(fds: Int32Array, count: number, timeoutMs: number): number;
  /**
   * Watches a descriptor in the event loop, even one of node:net. A descriptor has one watch at a time.
   *
   * @param callback called once when the descriptor is ready or broken; `start` watches again
   */
  watchFd(fd: number, wanted: Readiness, callback: () => void): FdWatch;
  /** False in Bun and Deno, whose event loops do not watch descriptors that they did not open. */
  readonly watchesFds: boolean;
}

/** The kernel's state of a TCP connection. */
export interface TcpState {
  /** Bytes that the other side's kernel has not confirmed. */
  readonly unconfirmedBytes: number;
  /** Number of times that the oldest unconfirmed data have been sent again. */
  readonly retransmits: number;
  /** Number of probes, of an idle connection or a full window, that the other side's kernel has not answered. */
  readonly unansweredProbes: number;
}

/** Most pieces of memory of one call of `sendPieces` and `recvPieces`. */
export const MOST_PIECES = 16;

export const POLLIN = 1;
export const POLLOUT = 4;

/** Writes a `struct pollfd` for `pollFds`; `events` are POLLIN and POLLOUT. */
export function setPollEntry(fds: Int32Array, index: number, fd: number, events: number): void {
  fds[2 * index] = fd;
  fds[2 * index + 1] = events;
}

interface Koffi {
  load(path: string | null): { func(prototype: string): (...args: unknown[]) => unknown };
  errno(): number;
  address(pointer: unknown): bigint;
  proto(result: string, types: readonly string[]): unknown;
  decode(pointer: bigint, type: unknown): unknown;
  readonly node: { poll(fd: number, wanted: Readiness, callback: () => void): PollHandle };
}

interface PollHandle {
  start(wanted: Readiness, callback: () => void): void;
  stop(): void;
  close(): void;
}

const PROT_READ_WRITE = 3;
const PROT_READ_EXECUTE = 5;
const MAP_SHARED = 1;
const MAP_PRIVATE = 2;
const MAP_FIXED = 16;
const MAP_ANONYMOUS = 32;
const MAP_NORESERVE = 16384;
const MFD_CLOEXEC = 1;
const MFD_ALLOW_SEALING = 2;
const F_ADD_SEALS = 1033;
/** F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW: `fallocate` within the length still works. */
const FIXED_LENGTH = 1 | 2 | 4;
const F_OFD_GETLK = 36;
const F_OFD_SETLK = 37;
const F_WRLCK = 1;
const F_UNLCK = 2;
const MADV_COLLAPSE = 25;
const PR_SET_PTRACER = 0x59616d61;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
/** Length of a struct iovec, and of a struct msghdr, in words of 32 bits. */
const IOVEC_WORDS = 4;
const MESSAGE_WORDS = 14;
const MSG_CMSG_CLOEXEC = 0x40000000;
const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
/** Length of a struct sockaddr_un, of whose addresses Linux chooses the first bytes: the family, a 0, and five digits. */
const ADDRESS_BYTES = 110;
const CHOSEN_BYTES = 8;
const IPPROTO_TCP = 6;
const TCP_INFO = 11;
/** Reads the number of bytes that were written and not confirmed. */
const SIOCOUTQ = 0x5411;
const O_NONBLOCK = 0o4000;
const O_CLOEXEC = 0o2000000;
const EPOLL_CTL_ADD = 1;
const EPOLL_CTL_DEL = 2;
const EPOLL_CTL_MOD = 3;
const RTLD_NOW = 2;
const RTLD_NODELETE = 4096;
/** Linux moves at most a page less than 2 GiB in one call. */
const MOST_READ_BYTES = 2 ** 30;
/** Size of a set of cores: 8192 of them. */
const MASK_BYTES = 1024;

/** The C library, or the reason why it cannot be called here. */
export type LoadedLibc =
  { readonly libc: Libc; readonly reason?: undefined } | { readonly libc?: undefined; readonly reason: string };

let loaded: LoadedLibc | undefined;

/** Loads the C library, once in each thread. */
export function loadLibc(): LoadedLibc {
  loaded ??= open();
  return loaded;
}

function open(): LoadedLibc {
  if (process.platform !== 'linux') return { reason: `shared memory between processes needs Linux, this is ${process.platform}` };
  if (!['x64', 'arm64', 'riscv64', 'loong64'].includes(process.arch))
    return { reason: `${process.arch} is not a 64-bit platform of tccl` };
  const require = ownRequire();
  let koffi: Koffi;
  try {
    koffi = require('koffi') as Koffi;
  } catch (error) {
    return { reason: `the library koffi cannot be loaded (${firstLineOf(error)})` };
  }
  const addon = Object.keys(require.cache).find((path) => path.endsWith('koffi.node'));
  return { libc: bind(koffi, addon) };
}

/** @param addon path of koffi's binary */
// eslint-disable-next-line max-lines-per-function -- a list of functions
function bind(koffi: Koffi, addon: string | undefined): Libc {
  const c = koffi.load(null);
  // Node unloads the binary when the last thread that loaded it ends, but closes its event-loop handles later, with its code.
  if (addon !== undefined) c.func('void *dlopen(const char *path, int flags)')(addon, RTLD_NOW | RTLD_NODELETE);
  const memmove = c.func('void *memmove(void *destination, void *source, size_t bytes)');
  const memcpy = c.func('int64_t memcpy(void *destination, const void *source, size_t bytes)');
  const mmap = c.func('int64_t mmap(int64_t address, size_t bytes, int protection, int flags, int fd, int64_t offset)');
  const mprotect = c.func('int mprotect(int64_t address, size_t bytes, int protection)');
  const write = c.func('void *memcpy(int64_t destination, const void *source, size_t bytes)');
  const memfdCreate = c.func('int memfd_create(const char *name, uint flags)');
  const ftruncate = c.func('int ftruncate(int fd, int64_t bytes)');
  const fallocate = c.func('int fallocate(int fd, int mode, int64_t offset, int64_t bytes)');
  const close = c.func('int close(int fd)');
  const fcntl = c.func('int fcntl(int fd, int command, ...)');
  const schedYield = c.func('int sched_yield()');
  const getAffinity = c.func('int sched_getaffinity(int pid, size_t bytes, void *mask)');
  const setAffinity = c.func('int sched_setaffinity(int pid, size_t bytes, const void *mask)');
  const processRead = c.func(
    'int64_t process_vm_readv(int pid, void *local, ulong nLocal, void *remote, ulong nRemote, ulong flags)',
  );
  const madvise = c.func('int madvise(int64_t address, size_t bytes, int advice)');
  const prctl = c.func('int prctl(int option, ulong a, ulong b, ulong c, ulong d)');
  const usleep = c.func('int usleep(uint microseconds)');
  // Addresses as numbers: 0.26 µs for a call, 0.31 with an array of its own.
  const send = c.func('int64_t send(int fd, int64_t address, int64_t bytes, int flags)');
  const recv = c.func('int64_t recv(int fd, int64_t address, int64_t bytes, int flags)');
  const sendMessage = c.func('int64_t sendmsg(int fd, int64_t message, int flags)');
  const receiveMessage = c.func('int64_t recvmsg(int fd, int64_t message, int flags)');
  const socket = c.func('int socket(int family, int type, int protocol)');
  const bindSocket = c.func('int bind(int fd, const void *address, uint32_t bytes)');
  const getName = c.func('int getsockname(int fd, void *address, void *bytes)');
  const getOption = c.func('int getsockopt(int fd, int level, int name, void *value, void *bytes)');
  const ioctl = c.func('int ioctl(int fd, ulong request, ...)');
  const pipe2 = c.func('int pipe2(void *fds, int flags)');
  const readFile = c.func('int64_t read(int fd, void *bytes, size_t nBytes)');
  const writeFile = c.func('int64_t write(int fd, const void *bytes, size_t nBytes)');
  const poll = c.func('int poll(void *fds, ulong nFds, int timeoutMs)');
  const epollCreate = c.func('int epoll_create1(int flags)');
  const epollControl = c.func('int epoll_ctl(int epoll, int operation, int fd, const void *event)');
  const epollWait = c.func('int epoll_wait(int epoll, void *events, int most, int timeoutMs)');

  const failed = (call: string): SystemError => {
    const errno = koffi.errno();
    const name = getSystemErrorName(-errno);
    const code = name === 'ENOMEM' || name === 'ENOSPC' ? 'OUT_OF_MEMORY' : 'SHARED_MEMORY';
    return new SystemError(code, `${call} failed: ${name}`);
  };
  const check = (call: string, result: unknown): number => {
    if (Number(result) === -1) throw failed(call);
    return Number(result);
  };

  // struct flock: l_type i16, l_whence i16, (4) l_start i64, l_len i64, l_pid i32
  const lock = Buffer.alloc(32);
  const lockRequest = (offset: number): Buffer => {
    lock.fill(0);
    lock.writeInt16LE(F_WRLCK, 0);
    lock.writeBigInt64LE(BigInt(offset), 8);
    lock.writeBigInt64LE(1n, 16);
    return lock;
  };

  const addressOf = (view: Uint8Array): bigint => koffi.address(memmove(view, view, 0));
  const byte = new Uint8Array(1);
  const watches = new FdWatches({
    create: () => check('epoll_create1', epollCreate(O_CLOEXEC)),
    add(epoll, fd, event) {
      const result = epollControl(epoll, EPOLL_CTL_ADD, fd, event);
      if (result === -1 && koffi.errno() === constants.errno.EBADF) return false;
      check('epoll_ctl', result);
      return true;
    },
    modify: (epoll, fd, event) => void check('epoll_ctl', epollControl(epoll, EPOLL_CTL_MOD, fd, event)),
    remove: (epoll, fd) => void epollControl(epoll, EPOLL_CTL_DEL, fd, null),
    wait: (epoll, events, most) => moved(epollWait(epoll, events, most, 0)),
    close: (fd) => void check('close', close(fd)),
    pollReadable(fd, callback) {
      const wanted = { readable: true };
      const handle = koffi.node.poll(fd, wanted, callback);
      return { start: () => handle.start(wanted, callback), stop: () => handle.stop(), close: () => handle.close() };
    },
  });
  /** Result of a call that moves bytes. Such calls never wait, so interrupting signals need no retry. */
  const moved = (bytes: unknown): number => (bytes === -1 ? -koffi.errno() : (bytes as number));
  // struct iovec: address u64, length u64
  const local = new BigInt64Array(2);
  const remote = new BigInt64Array(2);

  // struct tcp_info: state u8, ca_state u8, retransmits u8, probes u8 …
  const info = new Uint8Array(8);
  const infoBytes = new Int32Array(1);
  const unconfirmed = new Int32Array(1);

  // Struct iovecs (address u64, length u64), then struct msghdr: name u64, (8), iovecs u64, their number u64, (24).
  const message = new Uint32Array(MOST_PIECES * IOVEC_WORDS + MESSAGE_WORDS);
  const iovecs = Number(addressOf(new Uint8Array(message.buffer)));
  const header = iovecs + MOST_PIECES * IOVEC_WORDS * 4;
  const set = (word: number, value: number): void => {
    message[word] = value;
    message[word + 1] = value / 2 ** 32;
  };
  set(MOST_PIECES * IOVEC_WORDS + 4, iovecs);

  return {
    addressOf,
    createMemoryFile(name, bytes) {
      const fd = check('memfd_create', memfdCreate(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
      check('ftruncate', ftruncate(fd, bytes));
      check('fcntl', fcntl(fd, F_ADD_SEALS, 'int', FIXED_LENGTH));
      return fd;
    },
    close: (fd) => void check('close', close(fd)),
    reserve: (fd, offset, bytes) => void check('fallocate', fallocate(fd, 0, offset, bytes)),
    mapShared: (address, bytes, fd) =>
      void check('mmap', mmap(address, bytes, PROT_READ_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0)),
    mapPrivate: (address, bytes) =>
      void check('mmap', mmap(address, bytes, PROT_READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0)),
    lockByte: (fd, offset) => void check('fcntl', fcntl(fd, F_OFD_SETLK, 'void *', lockRequest(offset))),
    isByteLocked(fd, offset) {
      check('fcntl', fcntl(fd, F_OFD_GETLK, 'void *', lockRequest(offset)));
      return lock.readInt16LE(0) !== F_UNLCK;
    },
    copy: (destination, source, bytes) => void memcpy(destination, source, bytes),
    readProcess(pid, address, destination) {
      const here = addressOf(destination);
      for (let done = 0; done < destination.length;) {
        local[0] = here + BigInt(done);
        remote[0] = BigInt(address + done);
        local[1] = remote[1] = BigInt(Math.min(destination.length - done, MOST_READ_BYTES));
        const bytes = Number(processRead(pid, local, 1, remote, 1, 0));
        if (bytes === -1) return getSystemErrorName(-koffi.errno());
        done += bytes;
      }
      return undefined;
    },
    admitDescendantsOf: (pid) => void prctl(PR_SET_PTRACER, pid, 0, 0, 0),
    makeFunction(code, nArguments) {
      const address = check('mmap', mmap(0, code.length, PROT_READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      write(address, code, code.length);
      check('mprotect', mprotect(address, code.length, PROT_READ_EXECUTE));
      return koffi.decode(BigInt(address), koffi.proto('void', new Array<string>(nArguments).fill('int64_t'))) as (
        ...args: number[]
      ) => void;
    },
    collapse: (address, bytes) => void madvise(address, bytes, MADV_COLLAPSE),
    yieldCore: () => void schedYield(),
    affinity() {
      const mask = Buffer.alloc(MASK_BYTES);
      check('sched_getaffinity', getAffinity(0, MASK_BYTES, mask));
      return Array.from({ length: MASK_BYTES * 8 }, (_, core) => core).filter(
        (core) => (defined(mask[core >> 3]) >> (core & 7)) & 1,
      );
    },
    setAffinity(cores) {
      const mask = Buffer.alloc(MASK_BYTES);
      for (const core of cores) mask[core >> 3] = defined(mask[core >> 3]) | (1 << (core & 7));
      check('sched_setaffinity', setAffinity(0, MASK_BYTES, mask));
    },
    sleep: (microseconds) => void usleep(microseconds),
    send: (fd, address, bytes) => moved(send(fd, address, bytes, MSG_DONTWAIT | MSG_NOSIGNAL)),
    setPiece(index, address, bytes) {
      set(index * IOVEC_WORDS, address);
      set(index * IOVEC_WORDS + 2, bytes);
    },
    datagramSocket: () => check('socket', socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)),
    giveAddress(fd) {
      const address = new Uint8Array(new ArrayBuffer(ADDRESS_BYTES));
      address[0] = AF_UNIX;
      // An address of the family alone lets Linux choose a name.
      check('bind', bindSocket(fd, address, 2));
      check('getsockname', getName(fd, address, Int32Array.of(ADDRESS_BYTES)));
      return address.slice(0, CHOSEN_BYTES);
    },
    sendMessage: (fd, bytes) => void check('sendmsg', sendMessage(fd, Number(addressOf(bytes)), MSG_DONTWAIT | MSG_NOSIGNAL)),
    receiveMessage: (fd, bytes) =>
      check('recvmsg', receiveMessage(fd, Number(addressOf(bytes)), MSG_DONTWAIT | MSG_CMSG_CLOEXEC)),
    tcpState(fd) {
      infoBytes[0] = info.length;
      if (getOption(fd, IPPROTO_TCP, TCP_INFO, info, infoBytes) === -1) return undefined;
      if (ioctl(fd, SIOCOUTQ, 'void *', unconfirmed) === -1) return undefined;
      const [unconfirmedBytes = 0] = unconfirmed;
      const [, , retransmits = 0, unansweredProbes = 0] = info;
      return { unconfirmedBytes, retransmits, unansweredProbes };
    },
    sendPieces(fd, count) {
      message[MOST_PIECES * IOVEC_WORDS + 6] = count;
      return moved(sendMessage(fd, header, MSG_DONTWAIT | MSG_NOSIGNAL));
    },
    recv: (fd, address, bytes) => moved(recv(fd, address, bytes, MSG_DONTWAIT)),
    recvPieces(fd, count) {
      message[MOST_PIECES * IOVEC_WORDS + 6] = count;
      return moved(receiveMessage(fd, header, MSG_DONTWAIT));
    },
    pipe() {
      const ends = new Int32Array(2);
      check('pipe2', pipe2(ends, O_NONBLOCK | O_CLOEXEC));
      return { readEnd: defined(ends[0]), writeEnd: defined(ends[1]) };
    },
    readFd: (fd) => moved(readFile(fd, byte, 1)),
    writeFd: (fd) => moved(writeFile(fd, byte, 1)),
    pollFds(fds, count, timeoutMs) {
      const nReady = poll(fds, count, timeoutMs) as number;
      return nReady < 0 && koffi.errno() === constants.errno.EINTR ? 0 : check('poll', nReady);
    },
    watchFd: (fd, wanted, callback) => watches.open(fd, wanted, callback),
    watchesFds: process.versions['bun'] === undefined && process.versions['deno'] === undefined,
  };
}
