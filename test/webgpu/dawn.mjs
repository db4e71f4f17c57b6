// Dawn for Node.js: devices for ranks.
import { create, globals } from 'webgpu';

Object.assign(globalThis, globals);
/** Dawn ends the process once this object is collected. */
export const gpu = (globalThis.keptGpu = create([]));

export async function newDevice() {
  const adapter = await gpu.requestAdapter();
  if (adapter === null) throw new Error('no adapter');
  return adapter.requestDevice();
}
