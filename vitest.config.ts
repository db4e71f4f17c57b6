import { defineConfig } from 'vitest/config';

/**
 * After so long a test, or what it prepares, hangs. The longest take seconds where they have a machine for themselves, and a
 * minute where it does much else.
 */
const HANGS_MS = 240_000;

/** Tests by level; `npx vitest run --project unit` runs one. The levels are told in docs/guides/testing.md. */
const level = (name: string, options: object = {}) => ({
  extends: true as const,
  test: { name, include: [`test/${name}/**/*.test.ts`], testTimeout: HANGS_MS, hookTimeout: HANGS_MS, ...options },
});

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 2,
    projects: [
      level('unit'),
      level('oracle', { testTimeout: 400_000 }),
      // Ranks are processes of their own and contend for cores: one file at a time.
      level('multi-process', { fileParallelism: false }),
      level('long', { fileParallelism: false }),
      level('multi-host', { fileParallelism: false }),
      level('browser'),
    ],
  },
});
