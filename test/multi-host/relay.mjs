/**
 * A wire between two network namespaces with configurable impairments: `node relay.mjs NETNS NETNS`. It makes a TUN device
 * `tccl0` in each and carries packets from one to the other. A line of JSON on stdin sets both ways, from the first namespace
 * and from the second; the answer is a line with the counts so far. Ends with its stdin.
 *
 *     [{"delayMs": 1, "loss": 0.01}, {"mbitPerS": 20}]
 *
 * It needs no netem and no qdisc, which kernels may lack.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import koffi from 'koffi';
import { random } from '../multi-process/fixtures/random.mjs';

/**
 * @typedef {object} Way how packets in one direction are treated
 * @property {number} [delayMs]
 * @property {number} [loss] share of packets that are lost
 * @property {number} [duplicate] share that arrives twice
 * @property {number} [reorder] share that is held back for `holdMs`, so that later packets overtake
 * @property {number} [holdMs]
 * @property {number} [dropAbove] packets of more bytes are lost
 * @property {number} [mbitPerS] rate; packets that would wait in a queue of more than `queueBytes` are lost
 * @property {number} [queueBytes]
 * @property {boolean} [down] all are lost
 */

const O_RDWR_NONBLOCK_CLOEXEC = 2 | 2048 | 0x80000;
const TUNSETIFF = 0x400454ca;
/** IFF_TUN, IFF_NO_PI: packets as they are. */
const TUN_FLAGS = 0x1001;
const CLONE_NEWNET = 0x40000000;
const POLLIN = 1;

const c = koffi.load(null);
const open = c.func('int open(const char *path, int flags)');
const ioctl = c.func('int ioctl(int fd, ulong request, ...)');
const setns = c.func('int setns(int fd, int kind)');
const read = c.func('int64_t read(int fd, void *bytes, size_t nBytes)');
const write = c.func('int64_t write(int fd, const void *bytes, size_t nBytes)');
const poll = c.func('int poll(void *fds, ulong nFds, int timeoutMs)');

/** A device in a namespace. @param {string} name */
function makeDevice(name) {
  const netns = openSync(`/run/netns/${name}`, 'r');
  if (setns(netns, CLONE_NEWNET) !== 0) throw new Error(`setns to ${name} failed: errno ${koffi.errno()}`);
  closeSync(netns);
  const device = open('/dev/net/tun', O_RDWR_NONBLOCK_CLOEXEC);
  if (device < 0) throw new Error(`/dev/net/tun cannot be opened: errno ${koffi.errno()}`);
  const request = Buffer.alloc(40);
  request.write('tccl0');
  request.writeUInt16LE(TUN_FLAGS, 16);
  if (ioctl(device, TUNSETIFF, 'void *', request) !== 0) throw new Error(`TUNSETIFF failed: errno ${koffi.errno()}`);
  return device;
}

const devices = process.argv.slice(2, 4).map(makeDevice);
const draw = random(7);
const chance = (/** @type {number} */ share) => share > 0 && draw(1e6) < share * 1e6;

/** Of each direction: treatment, packets on their way in the order in which they are due, when the wire is free, counts. */
const ways = devices.map((_, from) => ({
  to: devices[1 - from],
  /** @type {Way} */ treatment: {},
  /** @type {{ dueMs: number, packet: Buffer }[]} */ queue: [],
  freeMs: 0,
  passed: 0,
  lost: 0,
}));

/** @param {typeof ways[number]} way @param {Buffer} packet */
function send(way, packet) {
  if (Number(write(way.to, packet, packet.length)) === packet.length) way.passed++;
  else way.lost++;
}

/** A packet has come; `packet` is valid during the call only. @param {typeof ways[number]} way @param {Buffer} packet */
function take(way, packet) {
  const { delayMs = 0, loss = 0, duplicate = 0, reorder = 0, holdMs = 5, dropAbove = Infinity } = way.treatment;
  const { mbitPerS = Infinity, queueBytes = 256 * 1024, down = false } = way.treatment;
  if (down || packet.length > dropAbove || chance(loss)) {
    way.lost++;
    return;
  }
  const nowMs = performance.now();
  const startMs = Math.max(nowMs, way.freeMs);
  if (((startMs - nowMs) * mbitPerS * 1000) / 8 > queueBytes) {
    way.lost++;
    return;
  }
  way.freeMs = startMs + (packet.length * 8) / (mbitPerS * 1000);
  const dueMs = way.freeMs + delayMs + (chance(reorder) ? holdMs : 0);
  for (let times = chance(duplicate) ? 2 : 1; times > 0; times--) {
    if (dueMs <= nowMs && way.queue.length === 0) send(way, packet);
    else enqueue(way.queue, dueMs, Buffer.from(packet));
  }
}

/** @param {{ dueMs: number, packet: Buffer }[]} queue @param {number} dueMs @param {Buffer} packet */
function enqueue(queue, dueMs, packet) {
  let place = queue.length;
  while (place > 0 && (queue[place - 1]?.dueMs ?? 0) > dueMs) place--;
  queue.splice(place, 0, { dueMs, packet });
}

let unread = '';
/** @param {string} text */
function hear(text) {
  const lines = (unread + text).split('\n');
  unread = lines.pop() ?? '';
  for (const line of lines) {
    const treatments = JSON.parse(line);
    for (const [index, way] of ways.entries()) way.treatment = treatments[index] ?? {};
    writeSync(1, `${JSON.stringify(ways.map(({ passed, lost }) => ({ passed, lost })))}\n`);
  }
}

const fds = new Int32Array([...devices, 0].flatMap((fd) => [fd, POLLIN]));
const buffer = Buffer.alloc(65_536);
writeSync(1, '"ready"\n');
for (;;) {
  let nextMs = Infinity;
  for (const way of ways) {
    const nowMs = performance.now();
    let due = 0;
    while ((way.queue[due]?.dueMs ?? Infinity) <= nowMs) send(way, way.queue[due++].packet);
    way.queue.splice(0, due);
    nextMs = Math.min(nextMs, way.queue[0]?.dueMs ?? Infinity);
  }
  const timeoutMs = nextMs === Infinity ? -1 : Math.max(0, Math.ceil(nextMs - performance.now()));
  if (poll(fds, 3, timeoutMs) <= 0) continue;
  if (fds[5] >> 16 !== 0) {
    const length = Number(read(0, buffer, buffer.length));
    if (length <= 0) break;
    hear(buffer.toString('utf8', 0, length));
  }
  for (const [from, way] of ways.entries()) {
    // Some at a time, so that neither the other direction nor packets that are due wait for long.
    for (let count = 0; count < 64; count++) {
      const length = Number(read(devices[from] ?? -1, buffer, buffer.length));
      if (length <= 0) break;
      take(way, buffer.subarray(0, length));
    }
  }
}
