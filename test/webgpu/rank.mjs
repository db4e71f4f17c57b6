// A rank in Node.js with a device of Dawn: `tccl run -n 2 node rank.mjs CHECK`, or as a function of a pool.
import { init } from '../../dist/index.js';
import { webgpu } from '../../dist/webgpu/index.js';
import * as checks from '../devices/compliance.mjs';
import { newDevice } from './devices.mjs';
import { kitOf, lostBefore } from './kit.mjs';

/** One check on this rank of `comm`. */
export async function check(comm, name, how) {
  if (name === 'lostBefore') return lostBefore(comm, webgpu, newDevice);
  const device = await newDevice();
  const opened = await webgpu(comm, device);
  const other = name === 'refusals' ? await newDevice() : undefined;
  const kit = name === 'refusals' || name === 'failures' ? kitOf(opened, device, other) : undefined;
  const result = await checks[name](comm, opened, kit, how);
  await opened.close();
  return result;
}

if (process.env.TCCL_RANK !== undefined) {
  const comm = await init();
  console.log(JSON.stringify(await check(comm, ...process.argv.slice(2))));
  await comm.close();
}
