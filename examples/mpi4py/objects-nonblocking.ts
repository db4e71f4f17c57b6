// Point-to-point: objects, non-blocking. In mpi4py: req = comm.isend(…), req.wait(); req = comm.irecv(…), req.wait()
import { init } from 'tccl';

const comm = await init();
if (comm.rank === 0) {
  const request = comm.sendObject({ a: 7, b: 3.14 }, 1);
  // … compute meanwhile …
  await request;
} else if (comm.rank === 1) {
  const request = comm.recvObject(0);
  console.log(await request);
}
await comm.close();
