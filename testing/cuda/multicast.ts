import { deviceAttributes, FILE_DESCRIPTOR, multicastObject } from '../../src/runtime/device/cuda/functions.js';
import { describeResult, results } from '../../src/runtime/device/cuda/results.js';
import type { Gpu } from './gpu.js';
import { withGpu, type Seen, type Setting } from './part.js';

/** Results of a multicast object for one GPU, which nobody needs: errors that NVLS has to expect. */
export function* multicast(setting: Setting): Generator<Seen> {
  yield* withGpu(setting, (gpu) => [{ name: 'multicast of one GPU', text: resultsOf(gpu).join('; ') }]);
}

function resultsOf(gpu: Gpu): string[] {
  const { context } = gpu;
  const isSupported = context.attribute(deviceAttributes.multicast);
  const object = new DataView(new ArrayBuffer(multicastObject.bytes));
  object.setUint32(multicastObject.nDevices, 1, true);
  object.setBigUint64(multicastObject.size, 2n ** 21n, true);
  object.setBigUint64(multicastObject.handleTypes, BigInt(FILE_DESCRIPTOR), true);
  return context.run((driver) => {
    const out = new BigUint64Array(1);
    const seen = [`the attribute says ${isSupported}`];
    const granularity = driver.cuMulticastGetGranularity(out, object, 0);
    seen.push(
      `cuMulticastGetGranularity: ${granularity === results.SUCCESS ? `${out[0]} bytes` : describeResult(driver, granularity)}`,
    );
    if (granularity === results.SUCCESS) object.setBigUint64(multicastObject.size, out[0] ?? 0n, true);
    const created = driver.cuMulticastCreate(out, object);
    seen.push(`cuMulticastCreate: ${describeResult(driver, created)}`);
    if (created === results.SUCCESS) {
      const device = new Int32Array(1);
      driver.cuDeviceGet(device, context.ordinal);
      seen.push(`cuMulticastAddDevice: ${describeResult(driver, driver.cuMulticastAddDevice(out[0] ?? 0n, device[0] ?? 0))}`);
    }
    return seen;
  });
}
