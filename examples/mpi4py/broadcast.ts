// Broadcast of an object. In mpi4py: data = comm.bcast(data, root=0)
import { init } from 'tccl';

const comm = await init();
const data = await comm.broadcastObject(comm.rank === 0 ? { key1: [7, 2.72, 'x'], key2: ['abc', 'xyz'] } : null);
console.log(`rank ${comm.rank}: ${JSON.stringify(data)}`);
await comm.close();
