// Scatter of objects. In mpi4py: data = comm.scatter(data, root=0)
import { init } from 'tccl';

const comm = await init();
const data = comm.rank === 0 ? Array.from({ length: comm.nRanks }, (_, i) => (i + 1) ** 2) : null;
const own = await comm.scatterObjects(data);
if (own !== (comm.rank + 1) ** 2) throw new Error(`rank ${comm.rank} got ${own}`);
console.log(`rank ${comm.rank}: ${own}`);
await comm.close();
