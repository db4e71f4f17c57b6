// Compute pi, each rank a part of the sum. In mpi4py: comm.bcast(N), comm.Reduce([PI, MPI.DOUBLE], …, op=MPI.SUM, root=0)
import { init } from 'tccl';

const comm = await init();
const steps = await comm.broadcastObject(comm.rank === 0 ? 1000 : 0);
const sum = new Float64Array(1);
for (let i = comm.rank; i < steps; i += comm.nRanks) sum[0] = (sum[0] ?? 0) + 4 / (1 + ((i + 0.5) / steps) ** 2) / steps;
await comm.reduce(sum, sum, 'sum', 0);
if (comm.rank === 0) console.log(`pi is about ${(sum[0] ?? 0).toFixed(6)}`);
await comm.close();
