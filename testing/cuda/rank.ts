// A rank of two on one GPU: `tccl run -n 2 node rank.js DEVICE [--fake]`.
import type { CudaDevice, CudaOptions } from '../../src/cuda/open.js';
import type * as tccl from '../../src/index.js';
import type { Driver } from '../../src/runtime/device/cuda/functions.js';
import { loadDriver } from '../../src/runtime/device/cuda/load.js';
import { FakeDriver, FakeMachine, MACHINE_BYTES } from './fake-driver.js';

// The built package, whose parts this program's own copies are not.
const built = (path: string): Promise<unknown> => import(new URL(`../../../dist/${path}`, import.meta.url).href);
const { init } = (await built('index.js')) as typeof tccl;
type Open = (comm: tccl.Communicator, options: CudaOptions, load: () => Driver) => Promise<CudaDevice>;
const { openCuda: open } = (await built('cuda/open.js')) as { openCuda: Open };

type Share = (comm: tccl.Communicator, bytes: number) => Promise<Uint8Array>;
const { sharedMachine } = (await built('../test/cuda/machine.mjs')) as { sharedMachine: Share };

const [device = '0', fake] = process.argv.slice(2);
const comm = await init();
const machine = fake === undefined ? undefined : new FakeMachine(await sharedMachine(comm, MACHINE_BYTES));
const load = machine === undefined ? loadDriver : () => new FakeDriver({ machine });
const gpu = await open(comm, { device: Number(device) }, load);
const COUNT = fake === undefined ? 16 << 20 : 1 << 16;
const x = await gpu.alloc(Float32Array, COUNT);
await x.upload(new Float32Array(COUNT).map((_, i) => (i % 1000) + comm.rank));
await gpu.allReduce(x, x, 'max');
const startMs = performance.now();
await gpu.allReduce(x);
const ms = performance.now() - startMs;
const values = await x.download();
const wrong = values.findIndex((value, i) => value !== comm.nRanks * ((i % 1000) + comm.nRanks - 1));
const megabytes = (4 * COUNT) / 2 ** 20;
const word = wrong < 0 ? 'right' : `wrong at ${wrong}`;
console.log(`all-reduce of ${megabytes} MiB (${gpu.transport.name}) ${word}, ${ms.toFixed(1)} ms`);
x.free();
await gpu.close();
await comm.close();
process.exitCode = wrong < 0 ? 0 : 1;
