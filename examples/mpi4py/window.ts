// One-sided communication. In mpi4py: win = MPI.Win.Create(mem, comm=comm), win.Put(…), win.Get(…), win.Fence()
import { init } from 'tccl';

const comm = await init();
const { rank, nRanks } = comm;
const memory = comm.alloc(Int32Array, rank === 0 ? 10 : 0);
const window = await comm.window(memory);
if (rank === 0) memory.fill(42);
await comm.barrier();
const seen = new Int32Array(10);
await window.get(seen, 0);
if (seen.some((value) => value !== 42)) throw new Error(`rank ${rank} read other data`);
await comm.barrier();
if (rank === nRanks - 1)
  await window.put(
    Int32Array.from(seen, (value, i) => value + i),
    0,
  );
await window.flush();
await comm.barrier();
if (rank === 0) console.log(memory.join(' '));
await window.close();
await comm.close();
