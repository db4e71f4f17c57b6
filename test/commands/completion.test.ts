import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lacks, start } from '../multi-process/cli.js';
import { tccl } from './in-process.js';

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'tccl-completion-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

const script = async (shell: string) => (await tccl(['completion', shell])).stdout;

/** Completions of bash when Tab is pressed at the end of the words. */
async function offeredByBash(...words: string[]): Promise<string[]> {
  const input = `${await script('bash')}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}
_tccl; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = await start('bash', ['--norc'], { input }).finished;
  expect(stderr).toBe('');
  return stdout.split('\n').filter((line) => line !== '');
}

describe('completion scripts', () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const missing = lacks(shell);
    it.skipIf(missing)(`${shell} can read its own${missing === undefined ? '' : ` (skipped: ${missing})`}`, async () => {
      writeFileSync(`${directory}/${shell}`, await script(shell));
      const { code, stderr } = await start(shell, ['-n', `${directory}/${shell}`]).finished;
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    });
  }

  it('offer commands, options and values in bash', async () => {
    expect(await offeredByBash('tccl', 'comp')).toEqual(['completion']);
    expect(await offeredByBash('tccl', 'completion', '')).toEqual(['bash', 'zsh', 'fish']);
    expect(await offeredByBash('tccl', 'run', '--ra')).toEqual(['--ranks']);
    expect(await offeredByBash('tccl', 'run', '--bind-to', '')).toEqual(['core', 'numa', 'none']);
    expect(await offeredByBash('tccl', 'perf', 'all')).toEqual(['all_reduce', 'all_gather', 'alltoall']);
    expect(await offeredByBash('tccl', 'perf', 'all_reduce', '-d', 'f')).toEqual(['float', 'f8e4m3', 'f8e5m2']);
    expect(await offeredByBash('tccl', '--ver')).toEqual(['--version']);
  });

  it('complete file names for values of options and other arguments', async () => {
    expect(await offeredByBash('tccl', 'run', '--output-dir', '')).toEqual([]);
    expect(await offeredByBash('tccl', 'run', '-n', '2', 'node', './')).toEqual([]);
    expect(await offeredByBash('tccl', 'run', 'nod')).toContain('node');
  });
});
