import { defineConfig } from 'vitest/config';

/** Tests by level; `npx vitest run --project unit` runs one. The levels are told in docs/testing.md. */
const level = (name: string, options: object = {}) => ({
  extends: true as const,
  test: { name, include: [`test/${name}/**/*.test.ts`], ...options },
});

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 2,
    projects: [
      // Some search whole machines: seconds on a machine that does much else.
      level('unit', { testTimeout: 60_000 }),
      level('oracle', { testTimeout: 400_000 }),
      // Ranks are processes of their own and contend for cores: one file at a time.
      level('multi-process', { testTimeout: 60_000, fileParallelism: false }),
      level('multi-host', { testTimeout: 60_000, fileParallelism: false }),
      level('browser', { testTimeout: 60_000 }),
    ],
  },
});
