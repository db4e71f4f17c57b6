// Two ranks in one thread that share a device: `node one-thread.mjs CHECK`. Prints as `tccl run` does.
import { getUniqueId, init } from '../../dist/index.js';
import { webgpu } from '../../dist/webgpu/index.js';
import * as checks from '../devices/compliance.mjs';
import { newDevice } from './devices.mjs';

const [check = ''] = process.argv.slice(2);
const device = await newDevice();
const commId = await getUniqueId();
const results = [0, 1].map(async (rank) => {
  const comm = await init({ rank, nRanks: 2, commId });
  const gpu = await webgpu(comm, device);
  const result = await checks[check](comm, gpu);
  await gpu.close();
  await comm.close();
  return result;
});
for (const [rank, result] of (await Promise.all(results)).entries()) console.log(`[${rank}] ${JSON.stringify(result)}`);
