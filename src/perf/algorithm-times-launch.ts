import { Writable } from 'node:stream';
import { NO_PROFILE } from '../runtime/algorithms/profile.js';
import { SystemError } from '../errors.js';
import { ownPath } from '../own-module.js';
import { launchRanks } from '../runtime/launch/run.js';
import type { TimingOptions, Failure, AlgorithmTime } from './algorithm-times.js';

const RANK_MODULE = ownPath('perf/algorithm-times-rank.js');

/** Variables that would force one algorithm or protocol on all candidates, or slow their calls down. */
const unwanted = ['TCCL_ALGO', 'TCCL_PROTO', 'TCCL_TRACE', 'TCCL_DEBUG'];

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Compares algorithms among `nRanks` ranks on this host, each a process.
 *
 * @throws SystemError `LAUNCH` with the last output of the ranks
 */
export async function launchTiming(
  nRanks: number,
  options: TimingOptions,
  onTime: (result: AlgorithmTime) => void,
  env: NodeJS.ProcessEnv = process.env,
): Promise<void> {
  const words: string[] = [];
  let failure: string | undefined;
  const take = (line: string): void => {
    const message = JSON.parse(line) as AlgorithmTime | Failure;
    if ('error' in message) failure ??= message.error;
    else onTime(message);
  };
  let handedOn: NodeJS.Signals | undefined;
  const note = (signal: NodeJS.Signals): void => void (handedOn = signal);
  for (const signal of signals) process.on(signal, note);
  const code = await launchRanks({
    nRanks,
    command: () => [process.execPath, ...process.execArgv, RANK_MODULE, JSON.stringify(options)],
    // The old profile may be missing or invalid: a new one is being made.
    env: { ...Object.fromEntries(Object.entries(env).filter(([name]) => !unwanted.includes(name))), TCCL_PROFILE: NO_PROFILE },
    output: { kind: 'merged', stdout: byLine(take), stderr: byLine((line) => words.push(line)), prefix: () => '' },
    graceMs: 1000,
    report: (line) => words.push(line),
  });
  for (const signal of signals) process.off(signal, note);
  // The ranks have ended; this process ends by the same signal.
  if (handedOn !== undefined) process.kill(process.pid, handedOn);
  if (code !== 0)
    throw new SystemError(
      'LAUNCH',
      `the algorithms cannot be measured with ${nRanks} ranks: ${failure ?? words.at(-1) ?? `exit code ${code}`}`,
    );
}

/** Passes its input on, line by line. */
function byLine(take: (line: string) => void): Writable {
  let rest = '';
  return new Writable({
    decodeStrings: false,
    write(chunk: Buffer | string, _encoding, done) {
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) take(line);
      done();
    },
  });
}
