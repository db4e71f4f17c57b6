// Point-to-point: arrays. In mpi4py: comm.Send([data, MPI.INT], dest=1, tag=77), comm.Recv([data, MPI.INT], source=0, tag=77)
import { init } from 'tccl';

const comm = await init();
if (comm.rank === 0) {
  await comm.send(
    Int32Array.from({ length: 1000 }, (_, i) => i),
    1,
  );
  await comm.send(
    Float64Array.from({ length: 100 }, (_, i) => i),
    1,
  );
} else if (comm.rank === 1) {
  const whole = new Int32Array(1000);
  const reals = new Float64Array(100);
  await Promise.all([comm.recv(whole, 0), comm.recv(reals, 0)]);
  console.log(whole.at(-1), reals.at(-1));
}
await comm.close();
