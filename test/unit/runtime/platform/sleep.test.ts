import { expect, test } from 'vitest';
import { platform as node } from '../../../../src/runtime/platform/node/platform.js';
import { platform as page } from '../../../../src/runtime/platform/browser/platform.js';

test.each([
  { name: 'Node.js', platform: node },
  { name: 'a page', platform: page },
])('a sleep in $name ends with the reason of its signal, aborted before it or in it', async ({ platform }) => {
  const reason = new Error('the rank closes');
  await expect(platform.sleep(2 ** 30, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  const stop = new AbortController();
  const slept = platform.sleep(2 ** 30, { signal: stop.signal });
  stop.abort(reason);
  await expect(slept).rejects.toBe(reason);
});
