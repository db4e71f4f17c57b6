import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const script = fileURLToPath(new URL('../../scripts/nccl-places.mjs', import.meta.url));

it('places in NCCL’s source that pages name are in the list with a word of their line, and no others', () => {
  const { status, stderr } = spawnSync(process.execPath, [script], { encoding: 'utf8' });
  expect(stderr).toMatch(/^\d{3,} places, 0 faults\n$/);
  expect(status).toBe(0);
});
