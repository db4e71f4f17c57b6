// Gather of arrays. In mpi4py: comm.Gather(sendbuf, recvbuf, root=0)
import { init } from 'tccl';

const comm = await init();
const { rank, nRanks } = comm;
const send = new Int32Array(100).fill(rank);
const recv = rank === 0 ? new Int32Array(100 * nRanks) : null;
await comm.gather(send, recv);
if (recv !== null) console.log(Array.from({ length: nRanks }, (_, r) => recv[100 * r + 99]).join(' '));
await comm.close();
