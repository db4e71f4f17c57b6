import { defineConfig } from 'vitest/config';
import { fastImports } from './test/fast-imports.js';

/**
 * A test, or its preparation, that takes longer hangs. The longest take seconds alone on a machine, and a minute on a busy one.
 */
const HANGS_MS = 240_000;

/**
 * Node's flags for levels that compute in the test's own process. Workers fill the cores already: parallel garbage collection
 * would only wait for its helper threads.
 */
const execArgv = ['--single-threaded-gc', '--max-semi-space-size=32'];

/** Tests by level; `npx vitest run --project unit` runs one. docs/guides/testing.md describes the levels. */
const level = (name: string, options: object = {}) => ({
  extends: true as const,
  test: { name, include: [`test/${name}/**/*.test.ts`], testTimeout: HANGS_MS, hookTimeout: HANGS_MS, ...options },
});

export default defineConfig({
  plugins: [fastImports],
  // As `imports` of package.json, but of the sources.
  resolve: {
    alias: [
      { find: /^#platform\/(.*)$/, replacement: `${import.meta.dirname}/src/runtime/platform/node/$1.ts` },
      { find: /^#seam\/(.*)$/, replacement: `${import.meta.dirname}/src/runtime/$1.ts` },
    ],
  },
  test: {
    pool: 'forks',
    maxWorkers: 2,
    // Keeps compiled modules in node_modules; their contents and this configuration are the key.
    experimental: { fsModuleCache: true },
    setupFiles: ['test/fast-objects.ts', 'test/other-node.ts'],
    projects: [
      // Files of unit tests share their process, which loads the modules once: they leave nothing behind.
      level('unit', { isolate: false, execArgv }),
      level('oracle', { testTimeout: 400_000, execArgv }),
      level('commands', { execArgv }),
      level('multi-process'),
      level('thorough'),
      // Many ranks contend for cores: one file at a time.
      level('long', { fileParallelism: false }),
      level('multi-host', { fileParallelism: false }),
      level('browser'),
      level('pages'),
    ],
  },
});
