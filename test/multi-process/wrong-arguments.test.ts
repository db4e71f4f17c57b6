import { expect, test } from 'vitest';
import { fixture, start } from './cli.js';

test('the error of every wrong argument is one line that begins with the call', async () => {
  const { code, stdout, stderr } = await start(process.execPath, [fixture('wrong-arguments.mjs')]).finished;
  expect(code, stderr).toBe(0);
  const records = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(records).toHaveLength(1);
  expect(records[0]?.['refused']).toBeGreaterThan(1000);
});
