import { spawn, spawnSync, type ChildProcess, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';

/** TCCL_TEST_NET=ucx: ranks that share no memory exchange their data over that network. */
const net = process.env['TCCL_TEST_NET'];

/** The built command. */
export const cliPath = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** A program for the ranks. */
export function fixture(name: string): string {
  return fileURLToPath(new URL(`fixtures/${name}`, import.meta.url));
}

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface StartOptions {
  /** Beside the variables of this process. */
  readonly env?: NodeJS.ProcessEnv;
  /** For standard input; none when left out. */
  readonly input?: string;
  /** Folder in which it runs. */
  readonly cwd?: string;
  /** Standard input stays open until the test ends it (`process.stdin`). */
  readonly openInput?: boolean;
}

export interface Started {
  readonly process: ChildProcess;
  readonly finished: Promise<Finished>;
  /** Resolves with what stdout holds as soon as it matches; rejects when the command ends without. */
  shown(pattern: RegExp): Promise<string>;
}

/** Variables of this process, but for those of launchers that the tests themselves run under. */
export function inheritedEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(TCCL|OMPI|PMI|PMIX|SLURM)_/.test(name)));
}

/** Starts a program and collects its output. */
export function start(
  command: string,
  args: readonly string[],
  { env = {}, input, cwd, openInput = false }: StartOptions = {},
): Started {
  const child = spawn(command, args, {
    env: { ...inheritedEnvironment(), ...(net === undefined ? {} : { TCCL_NET: net }), ...env },
    ...(cwd === undefined ? {} : { cwd }),
    stdio: [input === undefined && !openInput ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  }) as ChildProcessByStdio<Writable | null, Readable, Readable>;
  if (!openInput) child.stdin?.end(input);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const finished = once(child, 'close').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
    stdout,
    stderr,
  }));
  return {
    process: child,
    finished,
    shown: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (pattern.test(stdout)) resolve(stdout);
        };
        child.stdout.on('data', look);
        child.once('close', () => reject(new Error(`ended without showing ${String(pattern)}:\n${stdout}${stderr}`)));
        look();
      }),
  };
}

/** Starts `tccl …`. */
export function startTccl(args: readonly string[], options?: StartOptions): Started {
  return start(process.execPath, [cliPath, ...args], options);
}

/** Runs `tccl …` to its end. */
export function tccl(args: readonly string[], options?: StartOptions): Promise<Finished> {
  return startTccl(args, options).finished;
}

/** Resolves when no process has any of these ids; the test's own time limit ends a wait for one that remains. */
export async function gone(pids: readonly number[]): Promise<void> {
  while (pids.some(isAlive)) await new Promise((resolve) => setTimeout(resolve, 10));
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** The numbers that `name=number` gives in a text. */
export function numbersOf(text: string, name: string): number[] {
  return [...text.matchAll(new RegExp(`\\b${name}=(\\d+)`, 'g'))].map((match) => Number(match[1]));
}

/** ` (needs Node 20.19)` if the Node that the tests' processes run under is older, otherwise empty. */
export function needsNode(version: string): string {
  const number = (text: string): number[] => text.replace('v', '').trim().split('.').map(Number);
  const [major = 0, minor = 0] = number(spawnSync(process.execPath, ['--version'], { encoding: 'utf8' }).stdout);
  const [leastMajor = 0, leastMinor = 0] = number(version);
  return major > leastMajor || (major === leastMajor && minor >= leastMinor) ? '' : ` (needs Node ${version})`;
}

/** Reason why a test cannot run here, or undefined when it can: for `it.skipIf` and the test's name. */
export function lacks(command: string): string | undefined {
  return spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0 ? undefined : `${command} is not installed`;
}
