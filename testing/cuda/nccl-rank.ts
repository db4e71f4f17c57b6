// A rank of two of NCCL on one GPU: `node nccl-rank.js ID DEVICE BYTES RANK`.
import { countDevices } from '../../src/runtime/device/cuda/context.js';
import { loadDriver } from '../../src/runtime/device/cuda/load.js';
import { Gpu } from './gpu.js';
import { openNccl, timeOfNccl } from './nccl.js';

const [id = '', device = '0', bytes = '0', rank = '0'] = process.argv.slice(2);
const driver = loadDriver();
countDevices(driver);
try {
  const place = { nRanks: 2, id: Buffer.from(id, 'hex'), rank: Number(rank) };
  const { ms, sum } = timeOfNccl(openNccl(), new Gpu(driver, Number(device)), Number(bytes), place);
  console.log(`all-reduce of ${Number(bytes) / 2 ** 20} MiB ${sum === 3 ? 'right' : `wrong: ${sum}`}, ${ms.toFixed(2)} ms`);
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
