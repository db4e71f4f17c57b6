// Devices for ranks: of the platform, as in Deno, or else of Dawn for Node.js.
export const gpu = globalThis.navigator?.gpu ?? (await dawn());

async function dawn() {
  const { create, globals } = await import('webgpu');
  Object.assign(globalThis, globals);
  // Dawn ends the process once this object is collected.
  return (globalThis.keptGpu = create([]));
}

export async function newDevice() {
  const adapter = await gpu.requestAdapter();
  if (adapter === null) throw new Error('no adapter');
  return adapter.requestDevice();
}
