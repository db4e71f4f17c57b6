// The README's program. Run it with: npx tccl run -n 4 -- node examples/sum.mjs
import { init } from 'tccl';

const comm = await init(); // reads its rank from the launcher
const x = comm.alloc(Float32Array, 1_000_000); // shared memory of this host: no copies
x.fill(comm.rank + 1);

await comm.allReduce(x); // or comm.allReduceSync(x)
console.log(`rank ${comm.rank} of ${comm.nRanks}: ${x[0]}`);

await comm.close();
