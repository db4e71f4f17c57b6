import { readFileSync } from '#platform/files';

/** The compiled kernels. In dist/, the build replaces this module by one that contains them: a bundle has no other files. */
export function kernelsWasm(): Uint8Array<ArrayBuffer> {
  return readFileSync(new URL('./kernels.wasm', import.meta.url));
}
