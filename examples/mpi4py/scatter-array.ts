// Scatter of an array. In mpi4py: comm.Scatter(sendbuf, recvbuf, root=0)
import { init } from 'tccl';

const comm = await init();
const { rank, nRanks } = comm;
const send = rank === 0 ? Int32Array.from({ length: nRanks * 100 }, (_, i) => Math.floor(i / 100)) : null;
const recv = new Int32Array(100);
await comm.scatter(send, recv);
if (recv.some((value) => value !== rank)) throw new Error(`rank ${rank} has other data`);
console.log(`rank ${rank}: ${recv[0]} ${recv.length}`);
await comm.close();
