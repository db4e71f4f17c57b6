import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Script } from 'node:vm';
import { rolldown } from 'rolldown';
import { shareCode, type SharedCode } from './share-code.js';
import type { init } from '../../src/runtime/init/init.js';

/** Exports of the runtime in one rank. */
export interface RankCode {
  readonly init: typeof init;
  /** Called before anything of this rank runs. */
  readonly enter: () => void;
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

/** A function that makes a runtime for each virtual rank: the same code, with its own variables of modules. */
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
        transform: (code: string) => withoutLazyImports(code),
        load: (id: string) => {
          if (id === ENTRY) return `export { init } from ${JSON.stringify(resolve('src/runtime/init/init.ts'))};`;
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
  const script = new Script(shareCode(output[0].code), { filename: 'rank.cjs' });
  const begin = script.runInThisContext() as (...values: unknown[]) => SharedCode<RankCode>;
  let shared: SharedCode<RankCode> | undefined;
  /** The rank whose variables the code has. */
  let current: { variables: unknown } | undefined;
  return ({ platform, process, require, WebAssembly: kernels, Atomics: atomics, FinalizationRegistry: registry }) => {
    const parameters = [platform, process, require, kernels, atomics, registry];
    if (current !== undefined) current.variables = shared?.leave();
    if (shared === undefined) shared = begin(...parameters, {}, resolve('src/rank.cjs'));
    else shared.make(...parameters);
    const { exports, leave, enter }: SharedCode<RankCode> = shared;
    const rank: { variables: unknown } = (current = { variables: undefined });
    return {
      init: exports.init,
      enter: () => {
        if (current === rank) return;
        if (current !== undefined) current.variables = leave();
        enter(rank.variables);
        current = rank;
      },
    };
  };
}

/** The kernels, compiled once for all ranks. */
export const kernels = new WebAssembly.Module(readFileSync(KERNELS));

/** Lets a module import at its beginning what it imports later: each rank would make modules that are made later. */
function withoutLazyImports(code: string): string {
  const imports: string[] = [];
  const body = code.replaceAll(/\bimport\(('[^']+')\)/g, (_, name: string) => {
    imports.push(`import * as lazy${imports.length} from ${name};`);
    return `Promise.resolve(lazy${imports.length - 1})`;
  });
  return `${imports.join(' ')}${body}`;
}
