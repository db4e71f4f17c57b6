// A job that only makes a communicator: the cost of a launcher and init.
import { init } from 'tccl';

const comm = await init();
await comm.close();
