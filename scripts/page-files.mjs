import { existsSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';

const entries = ['src/browser/index.ts', 'src/webgpu/index.ts', 'src/ddp/index.ts'];
/** Folders that `imports` of package.json gives to the beginning of a name where the condition is `browser`. */
const seams = new Map([
  ['#platform', 'src/runtime/platform/browser'],
  ['#seam', 'src/runtime/page/instead'],
]);
/** Imports and exports that are not of types alone, and imports at run time. */
const imports = /^(?:import|export)\s+(?!type\b)(?:[^;']*?\sfrom\s+)?'([^']+)'|\bimport\('([^']+)'\)/gm;

/** The modules of src/ that pages load: the entries of dist/browser, and all that they import. */
export function pageFiles(root = process.cwd()) {
  /** @type {Set<string>} */
  const seen = new Set();
  const visit = (/** @type {string} */ file) => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const [, atStart, later] of readFileSync(file, 'utf8').matchAll(imports)) {
      const path = atStart ?? later ?? '';
      const [start = '', ...rest] = path.split('/');
      const folder = seams.get(start);
      const target = folder === undefined ? resolve(file, '..', path) : join(root, folder, ...rest);
      const module = `${target.replace(/\.js$/, '')}.ts`;
      if ((folder !== undefined || path.startsWith('.')) && existsSync(module)) visit(module);
    }
  };
  for (const entry of entries) visit(join(root, entry));
  return [...seen].map((file) => relative(root, file)).sort();
}
