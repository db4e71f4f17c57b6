import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Script } from 'node:vm';
import { rolldown } from 'rolldown';
import type { init } from '../../src/runtime/communicator/init.js';

/** Exports of the runtime in one rank. */
export interface RankCode {
  readonly init: typeof init;
}

/** Values that take the place of Node's in a rank. */
export interface RankGlobals {
  readonly platform: object;
  readonly process: object;
  readonly require: (name: string) => unknown;
  readonly WebAssembly: object;
  readonly Atomics: object;
  readonly FinalizationRegistry: unknown;
}

const ENTRY = 'world:rank';
const KERNELS = resolve('src/runtime/device/kernels/kernels.wasm');

/** Functions that each make a runtime of its own, with its own variables of modules: one for each virtual rank. */
export async function loadRankCode(): Promise<(globals: RankGlobals) => RankCode> {
  const bundle = await rolldown({
    input: ENTRY,
    external: /^node:/,
    platform: 'node',
    treeshake: false,
    resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
    plugins: [
      {
        name: 'world',
        resolveId: (id: string) => {
          const [, kind, name = ''] = /^#(platform|seam)\/(.*)$/.exec(id) ?? [];
          if (kind !== undefined) return resolve('src/runtime', kind === 'seam' ? '' : 'platform/node', `${name}.ts`);
          return id === ENTRY ? id : null;
        },
        load: (id: string) => {
          if (id === ENTRY) return `export { init } from ${JSON.stringify(resolve('src/runtime/communicator/init.ts'))};`;
          if (id === resolve('src/runtime/platform/node/platform.ts'))
            return "export const platform = worldPlatform; export { isIP, isIPv6 } from 'node:net';";
          if (id === resolve('src/runtime/device/kernels/kernels-wasm.ts')) return 'export const kernelsWasm = () => undefined;';
          return null;
        },
      },
    ],
  });
  const { output } = await bundle.generate({ format: 'cjs', codeSplitting: false });
  await bundle.close();
  const script = new Script(
    `(function (worldPlatform, process, require, WebAssembly, Atomics, FinalizationRegistry, exports, __filename) {${output[0].code}\nreturn exports;})`,
    { filename: 'rank.cjs' },
  );
  const make = script.runInThisContext() as (...values: unknown[]) => RankCode;
  return ({ platform, process, require, WebAssembly: kernels, Atomics: atomics, FinalizationRegistry: registry }) =>
    make(platform, process, require, kernels, atomics, registry, {}, resolve('src/rank.cjs'));
}

/** The kernels, compiled once for all ranks. */
export const kernels = new WebAssembly.Module(readFileSync(KERNELS));
