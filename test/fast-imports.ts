import type { Plugin } from 'vite';

/**
 * Fast imports. Modules under test reach their imports through objects of vitest, which V8 keeps as dictionaries: each use of an
 * imported name is a look-up. V8 keeps an object that serves as a prototype in its fast form (test/fast-objects.ts).
 */
export const fastImports: Plugin = {
  name: 'tccl:fast-imports',
  enforce: 'post',
  transform: (code, id) =>
    /\.ts$/.test(id) && !id.includes('/node_modules/')
      ? { code: `${code}\n;globalThis.makeFast?.(__vite_ssr_exports__);`, map: null }
      : undefined,
};
