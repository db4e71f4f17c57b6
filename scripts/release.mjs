// Makes a release: npm run release -- 0.2.0 [--dry-run]. Checks the repository, sets the version, closes the part of the
// changelog that is not released, commits and tags. Pushing the tag publishes (.github/workflows/publish.yml).
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const [version = '', ...options] = process.argv.slice(2);
const isDry = options.includes('--dry-run');
const run = (command, ...args) => execFileSync(command, args, { encoding: 'utf8' }).trim();
const described = JSON.parse(readFileSync('package.json', 'utf8'));
const changelog = readFileSync('CHANGELOG.md', 'utf8');

const problems = [
  ...(/^\d+\.\d+\.\d+$/.test(version) ? [] : [`'${version}' is no version: give one as 0.2.0`]),
  ...options.filter((option) => option !== '--dry-run').map((option) => `there is no option ${option}; there is --dry-run`),
  ...(isAbove(version, described.version) ? [] : [`${version} is not above ${described.version} of package.json`]),
  ...['repository', 'homepage', 'bugs', 'author', 'keywords']
    .filter((field) => described[field] === undefined)
    .map((field) => `package.json has no ${field}: fill it in`),
  ...(/^## Unreleased\n+(?!\n|## |$)/m.test(changelog) ? [] : ['CHANGELOG.md has nothing below "## Unreleased"']),
  ...(run('git', 'status', '--porcelain') === '' ? [] : ['files have changes that are not committed']),
  ...(run('git', 'rev-parse', '--abbrev-ref', 'HEAD') === 'main' ? [] : ['the branch is not main']),
  ...(run('git', 'tag', '--list', `v${version}`) === '' ? [] : [`there is a tag v${version}`]),
];
if (problems.length > 0) {
  for (const problem of problems) console.error(`release: ${problem}`);
  process.exit(1);
}

for (const check of ['lint', 'typecheck', 'test']) execFileSync('npm', ['run', check], { stdio: 'inherit' });
if (isDry) {
  console.log(`release: ${version} could be made now`);
  process.exit();
}
run('npm', 'version', '--no-git-tag-version', version);
writeFileSync('src/version.ts', readFileSync('src/version.ts', 'utf8').replace(`'${described.version}'`, `'${version}'`));
const day = new Date().toISOString().slice(0, 10);
writeFileSync('CHANGELOG.md', changelog.replace('## Unreleased', `## Unreleased\n\n## ${version} (${day})`));
run('git', 'commit', '--all', '--message', `Release ${version}`);
run('git', 'tag', '--annotate', `v${version}`, '--message', `tccl ${version}`);
console.log(`release: made ${version}; git push --follow-tags publishes it`);

function isAbove(a, b) {
  const [x, y] = [a, b].map((text) => text.split('.').map(Number));
  const at = x.findIndex((part, index) => part !== y[index]);
  return at >= 0 && x[at] > y[at];
}
