// A rank with GPUs of the fake driver: `tccl run -n 2 node rank.mjs FAKE CHECK`; FAKE is the path of its bundle.
import { pathToFileURL } from 'node:url';
import { CudaContext } from '../../dist/runtime/device/cuda/context.js';
import { openCuda } from '../../dist/cuda/open.js';
import { init } from '../../dist/index.js';
import * as compliance from '../devices/compliance.mjs';
import * as own from './checks.mjs';
import { kitOf } from './kit.mjs';

const checks = { ...compliance, ...own };

/** One check on this rank of `comm`. */
export async function check(comm, fake, name, how) {
  const { FakeDriver } = await import(pathToFileURL(fake).href);
  if (name === 'opening') return own.opening(comm, FakeDriver);
  const driver = new FakeDriver({ devices: 2, memoryBytes: 2 ** 26, seed: 1 + comm.rank });
  const gpu = await openCuda(comm, { device: 0 }, () => driver);
  const [context, other] = [0, 1].map((ordinal) => new CudaContext(driver, ordinal));
  const kit = ['refusals', 'failures'].includes(name) ? kitOf(gpu, driver, context, other) : undefined;
  const result = await checks[name](comm, gpu, kit ?? { driver, context }, how);
  await gpu.close();
  return result;
}

if (process.env.TCCL_RANK !== undefined) {
  const comm = await init();
  console.log(JSON.stringify(await check(comm, ...process.argv.slice(2))));
  await comm.close();
}
