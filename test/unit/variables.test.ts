import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { algorithms } from '../../src/runtime/algorithms/call.js';
import { misspeltVariables, unknownVariables, variables } from '../../src/runtime/launch/variables.js';

/** The names of variables in all files of a folder but the list itself. */
function namesIn(folder: string, ending: string): Set<string> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith(ending) && file !== 'launch/variables.ts',
  );
  return new Set(
    files.flatMap((file) => readFileSync(join(folder, file), 'utf8').match(/\bTCCL_[A-Z0-9]+(?:_[A-Z0-9]+)*\b/g) ?? []),
  );
}

test('the list has every variable that the sources name, and no others', () => {
  expect([...variables].sort()).toEqual([...namesIn('src', '.ts')].sort());
});

test('the page of variables has a row for each, and for no other', () => {
  const rows = readFileSync('docs/reference/variables.md', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| `'));
  const names = rows.flatMap((row) => row.split('|')[1]?.match(/\bTCCL_\w+/g) ?? []);
  expect(names.sort()).toEqual([...variables].sort());
});

test('the page of options of init() has a row for each, and for no other', () => {
  const optionsIn = (file: string, name: string) =>
    [...new RegExp(`interface ${name}\\b[^]*?\n}`).exec(readFileSync(file, 'utf8'))![0].matchAll(/^ {2}readonly (\w+)/gm)].map(
      ([, option]) => option,
    );
  const rows = [...readFileSync('docs/reference/init.md', 'utf8').matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name);
  expect(rows).toEqual([
    ...optionsIn('src/runtime/resources/init-options.ts', 'InitOptions'),
    ...optionsIn('src/runtime/resources/config.ts', 'CommunicatorConfig'),
  ]);
});

test('the page of variables names every algorithm', () => {
  const [row = ''] = /^\| `TCCL_ALGO` .*$/m.exec(readFileSync('docs/reference/variables.md', 'utf8')) ?? [];
  expect([...(row.split('|')[2] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name)).toEqual([...algorithms]);
});

test('a misspelt variable is reported with the intended one', () => {
  expect(misspeltVariables({ TCCL_AGLO: 'ring', TCCL_DEBUG_SUBSYSTEM: 'ALL', TCCL_ALGO: 'ring', PATH: '/bin' })).toEqual([
    'TCCL_AGLO is set, but there is no such variable; did you mean TCCL_ALGO?',
    'TCCL_DEBUG_SUBSYSTEM is set, but there is no such variable; did you mean TCCL_DEBUG_SUBSYS?',
  ]);
});

test('a variable unlike all others is reported without a suggestion, and an empty one counts as unset', () => {
  const env = { TCCL_SOMETHING_OF_A_PROGRAM: '1', TCCL_AGLO: '' };
  expect(unknownVariables(env).map(({ text }) => text)).toEqual([
    'TCCL_SOMETHING_OF_A_PROGRAM is set, but there is no such variable',
  ]);
  expect(misspeltVariables(env)).toEqual([]);
});
