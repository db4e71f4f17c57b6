// The README's program. Run it with: npx tccl run -n 4 -- node examples/sum.mjs
import { init } from 'tccl';

const comm = await init(); // finds its rank by itself
const x = comm.alloc(Float32Array, 1_000_000); // memory that the host's ranks share: no copies
x.fill(comm.rank + 1);

await comm.allReduce(x); // or comm.allReduceSync(x)
console.log(`rank ${comm.rank} of ${comm.nRanks}: ${x[0]}`);

await comm.close();
