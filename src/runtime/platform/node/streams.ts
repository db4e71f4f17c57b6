export { PassThrough, Readable, Transform, Writable } from 'node:stream';
export { finished } from 'node:stream/promises';
export { Socket } from 'node:net';
export { createInterface } from 'node:readline';
