// Gather of objects. In mpi4py: data = comm.gather((rank + 1) ** 2, root=0)
import { init } from 'tccl';

const comm = await init();
const data = await comm.gatherObject((comm.rank + 1) ** 2);
console.log(`rank ${comm.rank}: ${JSON.stringify(data)}`);
await comm.close();
