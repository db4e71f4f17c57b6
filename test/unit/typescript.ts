import { createRequire } from 'node:module';
import type typescript from 'typescript';

/** The compiler, by `require`: an import parses its nine megabytes twice more, to find the names that it exports. */
export const ts = createRequire(import.meta.url)('typescript') as typeof typescript;
export type { Node } from 'typescript';
