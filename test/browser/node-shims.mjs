// Functions of Node.js that programs of test/multi-process/fixtures use, for a page.

/** As `util.parseArgs`, for `--name value` and flags. */
export function parseArgs({ options }) {
  const values = {};
  const args = globalThis.process.argv.slice(2);
  for (let i = 0; i < args.length; i++) {
    const name = args[i].slice(2);
    values[name] = options[name].type === 'boolean' ? true : args[++i];
  }
  return { values };
}

export function isDeepStrictEqual(a, b) {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (a instanceof Date || a instanceof RegExp) return String(a) === String(b) && Number(a) === Number(b);
  if (a instanceof Map) return isDeepStrictEqual([...a], [...b]);
  if (a instanceof Set) return isDeepStrictEqual([...a], [...b]);
  if (a instanceof ArrayBuffer) return isDeepStrictEqual(new Uint8Array(a), new Uint8Array(b));
  const keys = Reflect.ownKeys(a);
  return keys.length === Reflect.ownKeys(b).length && keys.every((key) => isDeepStrictEqual(a[key], b[key]));
}

export function deepStrictEqual(a, b) {
  if (!isDeepStrictEqual(a, b)) throw new Error(`not equal: ${show(a)} and ${show(b)}`);
}

const show = (value) => JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? `${part}n` : part))?.slice(0, 300);

export const parentPort = { postMessage: (message) => globalThis.postMessage(message) };
export const setTimeout = (ms) => new Promise((resolve) => globalThis.setTimeout(resolve, ms));
