// The other process of two that share memory of a GPU: `node shared-rank.js WAY DEVICE WORDS`, with memory as file descriptor 3.
import { countDevices } from '../../src/runtime/device/cuda/context.js';
import { loadDriver } from '../../src/runtime/device/cuda/load.js';
import { Gpu } from './gpu.js';
import { useShared, type WayName } from './shared-memory.js';

const [way = '', device = '0', words = ''] = process.argv.slice(2);
const driver = loadDriver();
countDevices(driver);
try {
  useShared(new Gpu(driver, Number(device)), way as WayName, words, 3);
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
