// Point-to-point: objects. In mpi4py: comm.send(data, dest=1, tag=11), comm.recv(source=0, tag=11)
import { init } from 'tccl';

const comm = await init();
if (comm.rank === 0) await comm.sendObject({ a: 7, b: 3.14 }, 1);
else if (comm.rank === 1) console.log(await comm.recvObject(0));
await comm.close();
