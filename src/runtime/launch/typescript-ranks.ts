import { fileURLToPath, nodeModule, pathToFileURL } from '#platform/paths';
import { InvalidUsageError, namingCall } from '../../errors.js';

/** Options of Node that load something before a program, which may read TypeScript. */
const loader = /(?:^|\s)(?:--import|--loader|--experimental-loader|--experimental-(?:strip|transform)-types)(?:[=\s]+(\S*)|$)/g;

/** Ends of messages about TypeScript that nothing here can read: a process gets a flag from Node 22.6 on, a thread none. */
export const PROCESS_REMEDY = remedy('22.6');
const THREAD_REMEDY = remedy('22.18');

/**
 * URL of tsx's module that makes a thread read TypeScript, if threads that run `module` need it: a thread does not inherit
 * loaders, in Node 20 not even from `--import tsx` among its flags.
 *
 * @returns undefined for JavaScript, and where the runtime or a loader among the flags reads TypeScript
 * @throws InvalidUsageError `UNSUPPORTED` for TypeScript that nothing here can read
 */
export function tsxFor(
  module: string | URL,
  flags: readonly string[],
  env: Readonly<Record<string, string | undefined>> | undefined,
  call: string,
): string | undefined {
  const path = typeof module === 'string' ? module : module.protocol === 'file:' ? fileURLToPath(module) : '';
  if (!isTypeScript(path) || readsTypeScript()) return undefined;
  const options = [...flags, env?.['NODE_OPTIONS'] ?? process.env['NODE_OPTIONS'] ?? ''].join(' ');
  const loaders = [...options.matchAll(loader)].map(([, loaded = '']) => loaded);
  if (loaders.some((loaded) => !loaded.includes('tsx'))) return undefined;
  try {
    // Resolved as for require(), whose variant does not work in a thread; the other one lies beside it.
    const variant = resolveTsx(path, 'tsx/esm/api');
    return pathToFileURL(variant.replace(/\.cjs$/, '.mjs')).href;
  } catch {
    throw namingCall(
      new InvalidUsageError(
        'UNSUPPORTED',
        `${call}: Node ${process.versions.node} cannot run ${path}, which is TypeScript; ${THREAD_REMEDY}`,
      ),
    );
  }
}

/** Flags with which this Node runs a program in TypeScript; undefined where nothing here can read it. */
export function nodeFlagsFor(program: string): readonly string[] | undefined {
  if (readsTypeScript()) return [];
  try {
    return ['--import', pathToFileURL(resolveTsx(program, 'tsx')).href];
  } catch {
    // From Node 22.6 on; tsx comes first, because it also reads what cannot be stripped, such as enums.
    const strip = '--experimental-strip-types';
    return process.allowedNodeEnvironmentFlags.has(strip) ? [strip] : undefined;
  }
}

/** Path of a module of tsx that `program` can import. Throws without one, and where Node cannot register tsx's loader. */
function resolveTsx(program: string, name: string): string {
  if (!('register' in nodeModule)) throw new Error('module.register() came with Node 20.6');
  return nodeModule.createRequire(program).resolve(name);
}

export function isTypeScript(path: string): boolean {
  return /\.[cm]?ts$/.test(path);
}

/** Program of a thread that runs `module` through tsx. */
export function programThroughTsx(tsx: string, module: string | URL): string {
  const path = typeof module === 'string' ? module : fileURLToPath(module);
  return `import(${JSON.stringify(tsx)}).then(({ register }) => {
    register();
    process.argv[1] = ${JSON.stringify(path)};
    return import(${JSON.stringify(pathToFileURL(path).href)});
  });`;
}

/** True where the runtime reads TypeScript by itself: Node from 22.18 and 23.6 on, Bun, Deno. */
function readsTypeScript(): boolean {
  const { features, versions } = process as unknown as { features: Record<string, unknown>; versions: Record<string, unknown> };
  return Boolean(features['typescript']) || versions['bun'] !== undefined || versions['deno'] !== undefined;
}

/** Advice for a rank that failed because its module is TypeScript; otherwise the empty string. */
export function typeScriptAdvice(cause: unknown): string {
  const { code, message } = (cause ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  if (code === 'ERR_UNKNOWN_FILE_EXTENSION' && /"\.[cm]?ts"/.test(String(message))) return THREAD_REMEDY;
  if (code === 'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING')
    return 'Node reads no TypeScript in node_modules; publish JavaScript';
  return '';
}

/** @param node the oldest Node that reads TypeScript by itself */
function remedy(node: string): string {
  return `install tsx in the project (npm install --save-dev tsx; from Node 20.6 on), use Node ${node} or newer, or pass the JavaScript that the compiler writes`;
}
