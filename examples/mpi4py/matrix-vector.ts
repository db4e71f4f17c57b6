// Parallel matrix-vector product, rows divided among ranks. In mpi4py: comm.Allgather([x, MPI.DOUBLE], [xg, MPI.DOUBLE])
import { init, type Communicator } from 'tccl';

async function multiply(comm: Communicator, rows: Float64Array, x: Float64Array): Promise<Float64Array> {
  const all = new Float64Array(x.length * comm.nRanks);
  await comm.allGather(x, all);
  return x.map((_, row) => all.reduce((sum, value, column) => sum + (rows[row * all.length + column] ?? 0) * value, 0));
}

const comm = await init();
const own = 2;
const size = own * comm.nRanks;
// Row r of the matrix has r + 1 everywhere; x is 0, 1, 2 …
const rows = Float64Array.from({ length: own * size }, (_, i) => comm.rank * own + Math.floor(i / size) + 1);
const x = Float64Array.from({ length: own }, (_, i) => comm.rank * own + i);
const y = new Float64Array(size);
await comm.allGather(await multiply(comm, rows, x), y);
if (comm.rank === 0) console.log(y.join(' '));
await comm.close();
