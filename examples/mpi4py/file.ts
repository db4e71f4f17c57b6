// Ranks write parts of one file. In mpi4py: MPI.File.Open, fh.Write_at_all(offset, buffer); tccl leaves files to Node.js
import { open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { init } from 'tccl';

const comm = await init();
const path = await comm.broadcastObject(join(tmpdir(), `contiguous-${process.pid}.bin`));
if (comm.rank === 0) await (await open(path, 'w')).close();
await comm.barrier();
const buffer = new Int32Array(10).fill(comm.rank);
const file = await open(path, 'r+');
await file.write(buffer, 0, buffer.byteLength, comm.rank * buffer.byteLength);
await file.close();
await comm.barrier();
if (comm.rank === 0) {
  const { buffer: bytes, byteOffset, length } = await readFile(path);
  const all = new Int32Array(bytes.slice(byteOffset, byteOffset + length));
  console.log(all.filter((_, i) => i % 10 === 9).join(' '));
  await rm(path);
}
await comm.close();
