// A job that only becomes a communicator: what a launcher and init cost.
import { init } from 'tccl';

const comm = await init();
await comm.close();
