import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { version } from '../../src/version.js';

it('the version is that of package.json', () => {
  const { version: ofPackage } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(version).toBe(ofPackage);
});
