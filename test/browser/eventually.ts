import { expect } from 'vitest';

/** Expects something of what a page shows once it has drawn: reads it until the expectation holds. */
export function eventually<T>(read: () => Promise<T>) {
  return expect.poll(read, { timeout: 30_000 });
}
