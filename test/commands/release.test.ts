import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';

const script = fileURLToPath(new URL('../../scripts/release.mjs', import.meta.url));
let folder: string;
const read = (name: string) => readFileSync(join(folder, name), 'utf8');
const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' }).trim();
const release = (...args: string[]) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], { cwd: folder, encoding: 'utf8' });
  return { status, stdout, problems: stderr.split('\n').filter((line) => line.startsWith('release: ')) };
};

const fields = {
  name: 'made',
  version: '0.1.0',
  repository: { type: 'git', url: 'git+https://example.org/made.git' },
  homepage: 'https://example.org',
  bugs: 'https://example.org/bugs',
  author: 'somebody',
  keywords: ['made'],
  scripts: { lint: 'node -e 0', typecheck: 'node -e 0', test: 'node -e 0' },
};

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tccl-release-'));
  mkdirSync(join(folder, 'src'));
  writeFileSync(join(folder, 'package.json'), JSON.stringify(fields));
  writeFileSync(join(folder, 'src/version.ts'), "export const version = '0.1.0';\n");
  writeFileSync(join(folder, 'CHANGELOG.md'), '# Changelog\n\n## Unreleased\n\n- **New.**\n');
  git('init', '--quiet', '--initial-branch', 'main');
  git('config', 'user.email', 'somebody@example.org');
  git('config', 'user.name', 'somebody');
  git('add', '--all');
  git('commit', '--quiet', '--message', 'Begin');
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

it('sets the version everywhere, closes the changelog, commits and tags', () => {
  const { status, stdout } = release('0.2.0');
  expect([status, stdout.trim().split('\n').at(-1)]).toEqual([0, 'release: made 0.2.0; git push --follow-tags publishes it']);
  expect(JSON.parse(read('package.json'))).toMatchObject({ version: '0.2.0' });
  expect(read('src/version.ts')).toBe("export const version = '0.2.0';\n");
  expect(read('CHANGELOG.md')).toMatch(/^# Changelog\n\n## Unreleased\n\n## 0\.2\.0 \(\d{4}-\d\d-\d\d\)\n\n- \*\*New/);
  expect([git('log', '-1', '--format=%s'), git('tag'), git('status', '--porcelain')]).toEqual(['Release 0.2.0', 'v0.2.0', '']);
  expect(release('0.2.1').problems).toEqual(['release: CHANGELOG.md has nothing below "## Unreleased"']);
});

it('changes nothing with --dry-run', () => {
  expect(release('1.0.0', '--dry-run').stdout).toContain('release: 1.0.0 could be made now');
  expect([git('tag'), git('status', '--porcelain')]).toEqual(['', '']);
});

it('names all that is missing', () => {
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...fields, repository: undefined }));
  git('checkout', '--quiet', '-b', 'other');
  expect(release('0.1', '--now').problems).toEqual([
    "release: '0.1' is no version: give one as 0.2.0",
    'release: there is no option --now; there is --dry-run',
    'release: 0.1 is not above 0.1.0 of package.json',
    'release: package.json has no repository: fill it in',
    'release: files have changes that are not committed',
    'release: the branch is not main',
  ]);
  expect(release('0.1.0').problems).toContain('release: 0.1.0 is not above 0.1.0 of package.json');
});
