import { expect, test } from 'vitest';
import { bundleAdvice } from '../../../../src/runtime/launch/bundle-advice.js';

test('the error of a missing module of tccl has advice about bundles, that of a module of the program has none', () => {
  const ofBundle = new Error("Cannot find module '/app/pool-rank.js'");
  const ofProgram = new Error(
    "Cannot find module '/app/job.mjs' imported from /app/node_modules/tccl/dist/runtime/pool/pool-rank.js",
  );
  expect(bundleAdvice(ofBundle, 'pool-rank.js')).toMatch(/^; a bundle has no pool-rank\.js/);
  expect(bundleAdvice(ofProgram, 'pool-rank.js')).toBe('');
});
