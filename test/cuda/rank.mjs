// A rank with GPUs of the fake driver: `tccl run -n 2 node rank.mjs FAKE CHECK`; FAKE is the path of its bundle.
// FAKE_GPUS: `one` that all ranks share, `each` rank one, each one on a `switch`, `one-switch` that all share; without it, each
// process has GPUs alone.
import { pathToFileURL } from 'node:url';
import { CudaContext } from '../../dist/runtime/device/cuda/context.js';
import { loadLibc } from '../../dist/runtime/device/libc.js';
import { openCuda } from '../../dist/cuda/open.js';
import { init } from '../../dist/index.js';
import * as compliance from '../devices/compliance.mjs';
import * as own from './checks.mjs';
import * as peers from './peers.mjs';
import * as onSwitch from './switch.mjs';
import { kitOf } from './kit.mjs';
import { sharedMachine } from './machine.mjs';

const checks = { ...compliance, ...own, ...peers, ...onSwitch };

/** One check on this rank of `comm`. */
export async function check(comm, fake, name, how) {
  const { FakeDriver, FakeMachine, MACHINE_BYTES } = await import(pathToFileURL(fake).href);
  if (name === 'opening') return own.opening(comm, FakeDriver);
  const gpus = process.env.FAKE_GPUS;
  const shared = gpus && { machine: new FakeMachine(await sharedMachine(comm, MACHINE_BYTES)) };
  if (shared) shared.machine.makeFile = (bytes) => loadLibc().libc.createMemoryFile('fake-gpu', bytes);
  const isPeer = how === 'apart' ? () => false : undefined;
  const devices = Math.max(2, comm.nRanks);
  const driver = new FakeDriver({
    devices,
    memoryBytes: 2 ** 26,
    seed: 1 + comm.rank,
    hasMulticast: gpus?.endsWith('switch') === true,
    ...shared,
    ...(isPeer && { isPeer }),
  });
  const device = gpus === 'each' || gpus === 'switch' ? comm.rank : 0;
  if (name === 'switchTransport' && how !== undefined) {
    const [rank, call, result, after = 0] = how.split(',');
    if (comm.rank === Number(rank)) driver.fail(call, Number(result), Number(after));
  }
  const gpu = await openCuda(comm, { device }, () => driver);
  const [context, other] = [device, (device + 1) % devices].map((ordinal) => new CudaContext(driver, ordinal));
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
