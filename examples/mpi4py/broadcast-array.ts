// Broadcast of an array. In mpi4py: comm.Bcast(data, root=0)
import { init } from 'tccl';

const comm = await init();
const data = comm.alloc(Int32Array, 100);
if (comm.rank === 0) data.set(data.map((_, i) => i));
await comm.broadcast(data);
if (data.some((value, i) => value !== i)) throw new Error(`rank ${comm.rank} has other data`);
console.log(`rank ${comm.rank}: ${data.at(-1)}`);
await comm.close();
