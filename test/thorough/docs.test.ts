import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { tccl } from '../commands/in-process.js';
import { cliPath, start } from '../multi-process/cli.js';

/**
 * The pages show what the commands print. Blocks ```xml NAME, ```js NAME and the like are files; in blocks ```console
 * the line after `$` is a command and the rest its output, where a line … stands for any lines.
 */
const docs = fileURLToPath(new URL('../../docs/', import.meta.url));
const blocksOf = (page: string) => {
  const text = readFileSync(join(docs, page), 'utf8');
  return [...text.matchAll(/^```(\w+)(?: (\S+))?\n([\s\S]*?)^```$/gm)].map(([, kind = '', name = '', content = '']) => ({
    kind,
    name,
    content,
  }));
};
const pages = readdirSync(docs, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md') && blocksOf(name).some(({ kind }) => kind === 'console'))
  .sort();

it('many pages show commands', () => {
  expect(pages.length).toBeGreaterThan(8);
});

it('no two pages have a file of the same name', () => {
  const names = pages.flatMap((page) => [...new Set(blocksOf(page).map(({ name }) => name))].filter((name) => name !== ''));
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});

const folder = mkdtempSync(join(tmpdir(), 'tccl-docs-'));
mkdirSync(join(folder, 'node_modules'));
symlinkSync(fileURLToPath(new URL('../..', import.meta.url)), join(folder, 'node_modules', 'tccl'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** Runs a command as a shell does. One without operators, quotes and ranks needs no process. */
function run(command: string): Promise<{ stdout: string; stderr: string }> {
  if (/^tccl (?!run|perf|tune )[\w@%+=:,./ -]+$/.test(command)) return tccl(command.split(' ').slice(1), { cwd: folder });
  const script = `tccl() { "${process.execPath}" "${cliPath}" "$@"; }; cd "${folder}"; ${command}`;
  return start('sh', ['-c', script]).finished;
}

describe.each(pages)('docs/%s', (page) => {
  const blocks = blocksOf(page);
  for (const { name, content } of blocks) if (name !== '') writeFileSync(join(folder, name), content);
  const commands = blocks
    .filter(({ kind }) => kind === 'console')
    .map(({ content }) => {
      const [first = '', ...output] = content.trimEnd().split('\n');
      return { command: first.replace(/^\$ /, ''), output };
    });

  it.each(commands)('$command', async ({ command, output }) => {
    const { stdout, stderr } = await run(command);
    const printed = `${stdout}${stderr}`.trimEnd();
    // Each piece between two … stands in what was printed, one after the other.
    const pieces = output
      .join('\n')
      .split(/^…$/m)
      .map((piece) => piece.trim());
    let from = 0;
    for (const piece of pieces) {
      const at = printed.indexOf(piece, from);
      expect(at < 0 ? printed : piece).toBe(piece);
      from = at + piece.length;
    }
    if (pieces.length === 1) expect(printed.trim()).toBe(pieces[0]);
  });
});
