import { readFileSync } from '#platform/files';

/** The compiled kernels. In dist/, the build replaces this module by one that contains them: a bundle has no other files. */
export function kernelsWasm(): Uint8Array<ArrayBuffer> {
  return readFileSync(new URL('./kernels.wasm', import.meta.url));
}

/** Inflates the kernels of a page, before their first use; Node.js reads them as they are. */
export function loadKernels(): Promise<void> {
  return Promise.resolve();
}
