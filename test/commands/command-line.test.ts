import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { cliPath, start } from '../multi-process/cli.js';
import { tccl } from './in-process.js';

const commands = ['run', 'perf', 'topo', 'graph', 'completion'];

describe('the command line', () => {
  it.each(commands)('%s has help with examples', async (command) => {
    const { code, stdout } = await tccl([command, '--help']);
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^Usage: tccl ${command} `));
    expect(stdout).toContain('\nExamples:\n');
    expect(await tccl(['help', command])).toMatchObject({ code: 0, stdout });
  });

  it('lists every command in its help', async () => {
    const { stdout } = await tccl(['--help']);
    for (const command of commands) expect(stdout).toMatch(new RegExp(`^ {2}${command} `, 'm'));
  });

  it.each([
    [['rum'], "tccl: unknown command 'rum' (Did you mean run?)\n"],
    [['frobnicate'], "tccl: unknown command 'frobnicate'\n"],
    [['run', '--rank', '3'], "tccl: unknown option '--rank' (Did you mean --ranks?)\n"],
    [
      ['perf', 'all_reduce', '-g', '8'],
      "tccl: option '-g, --ngpus <count>' argument '8' is invalid. A process is one rank here: --ranks 8 starts 8 ranks, as launchers do.\n",
    ],
    [
      ['perf', 'all_reduce', '--nthreads', '2'],
      "tccl: option '-t, --nthreads <count>' argument '2' is invalid. A process is one rank here: --ranks 2 starts 2 ranks, as launchers do.\n",
    ],
    [
      ['completion', 'tcsh'],
      "tccl: command-argument value 'tcsh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.\n",
    ],
    [['completion', 'bash', 'zsh'], "tccl: too many arguments for 'completion'. Expected 1 argument but got 2.\n"],
  ])('refuses %j in one line with exit code 2', async (args, stderr) => {
    expect(await tccl(args)).toMatchObject({ code: 2, stdout: '', stderr });
  });

  it.each(['--help', 'completion bash', 'run -n 2 echo x', 'topo --help'])(
    'reports a full disk in one line: %s',
    async (args) => {
      const { code, stderr } = await start('sh', ['-c', `"${process.execPath}" "${cliPath}" ${args} > /dev/full`]).finished;
      expect(stderr).toMatch(/^tccl: the output cannot be written: ENOSPC: .*\n$/);
      expect(code).toBe(1);
    },
  );

  /** Files of dist/ that a module imports, and packages. */
  function importsOf(entries: readonly string[]) {
    const files = new Set<string>();
    const others = new Set<string>();
    const visit = (path: string) => {
      if (files.has(path)) return;
      files.add(path);
      for (const [, name = ''] of readFileSync(path, 'utf8').matchAll(/^(?:import|export)\b[^;'"]*?["']([^"']+)["'];$/gm))
        if (name.startsWith('.')) visit(resolve(path, '..', name));
        else others.add(name);
    };
    for (const entry of entries) visit(fileURLToPath(new URL(`../../dist/${entry}`, import.meta.url)));
    return { files: [...files], others };
  }

  const starts = ['index.js', 'planner/index.js', 'ddp/index.js', 'cli/main.js', 'cli/program.js'];
  const threads = ['runtime/pool/pool-rank.js', 'runtime/threads/direct-thread.js', 'runtime/threads/network-thread.js'];
  it.each([...starts, ...threads])(
    'dist/%s loads few files at its start, and the reader of XML only for the planner',
    (entry) => {
      const { files, others } = importsOf([entry]);
      expect(files.length, files.join('\n')).toBeLessThan(25);
      expect(others.has('saxes')).toBe(entry === 'planner/index.js');
    },
  );

  it('a plan loads neither the reader of logs nor that of YAML', () => {
    const loaded = ['cli/plan/plan.js', 'planner/plan/checks/check-plan.js', 'planner/plan/prediction.js'];
    const { files, others } = importsOf(['cli/main.js', 'cli/program.js', 'cli/commands/plan.js', ...loaded]);
    expect(others.has('yaml')).toBe(false);
    expect(files.filter((path) => /joined-(?:planner|log|planner-log)\.js$/.test(path))).toEqual([]);
  });

  it('prints its version', async () => {
    expect((await tccl(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it('shows its help and fails without a command', async () => {
    const { code, stderr } = await tccl([]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^Usage: tccl /);
  });
});
