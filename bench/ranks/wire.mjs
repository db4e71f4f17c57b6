/**
 * Ceiling of suite rails: plain TCP sockets that each carry data one way for some time. The listening side prints a JSON line
 * with the MB/s that it received, and with `both` sends as much itself on a second socket.
 *
 *     node wire.mjs listen PORT one|both SECONDS
 *     node wire.mjs HOST PORT one|both SECONDS
 *
 * @module
 */
import { connect, createServer } from 'node:net';

const [host = '', port = '', ways, seconds] = process.argv.slice(2);
const nSockets = ways === 'both' ? 2 : 1;
const runMs = Number(seconds) * 1000;
/** The first part of the time is not measured: congestion control learns the rate. */
const warmMs = runMs / 4;
const piece = Buffer.alloc(60 * 1024);
let begin = 0;
let received = 0;

/** Sends or counts data until the process ends. @param {import('node:net').Socket} socket @param {boolean} isSender */
function use(socket, isSender) {
  // The other side ends first or last, whatever is on the way.
  socket.on('error', () => undefined);
  if (isSender) {
    const send = () => {
      while (!socket.destroyed && socket.write(piece));
    };
    socket.on('drain', send);
    socket.on('connect', send);
    if (!socket.connecting) send();
    return;
  }
  const start = performance.now();
  socket.on('data', (data) => {
    if (performance.now() - start < warmMs) return;
    if (begin === 0) begin = performance.now();
    else received += data.length;
  });
}

if (host === 'listen') {
  let nAccepted = 0;
  createServer((socket) => {
    if (nAccepted === 0)
      setTimeout(() => {
        console.log(JSON.stringify({ ways, MBps: received / 1e3 / (performance.now() - begin) }));
        process.exit();
      }, runMs);
    use(socket, nAccepted++ > 0);
  }).listen(Number(port));
} else {
  const begun = performance.now();
  for (let number = 0; number < nSockets; number++) {
    const open = () => {
      const socket = connect(Number(port), host);
      // The listener may start later; once it has ended, so does this.
      socket.once('error', () => (performance.now() - begun < runMs ? setTimeout(open, 50) : undefined));
      socket.once('close', () => {
        if (socket.bytesRead + socket.bytesWritten > 0) process.exit();
      });
      use(socket, number === 0);
    };
    open();
  }
}
