// Memory of fake GPUs that the ranks of a communicator share.
import { closeSync, openSync } from 'node:fs';
import { loadLibc } from '../../dist/runtime/device/libc.js';

const PAGE_BYTES = 65536;

/** Maps a file of rank 0, which has no name. */
export async function sharedMachine(comm, bytes) {
  const { libc } = loadLibc();
  const pages = bytes / PAGE_BYTES;
  const memory = new Uint8Array(new WebAssembly.Memory({ shared: true, initial: pages, maximum: pages }).buffer);
  const own = comm.rank === 0 ? libc.createMemoryFile('fake-gpus', bytes) : -1;
  const path = await comm.broadcastObject(`/proc/${process.pid}/fd/${own}`);
  const fd = comm.rank === 0 ? own : openSync(path, 'r+');
  libc.mapShared(libc.addressOf(memory), bytes, fd);
  await comm.barrier();
  // Node.js closes what it has opened when a thread ends.
  if (comm.rank === 0) libc.close(fd);
  else closeSync(fd);
  return memory;
}
