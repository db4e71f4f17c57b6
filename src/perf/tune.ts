import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism, cpus } from 'node:os';
import { algorithms, type Algorithm, type CallKind } from '../collectives/call.js';
import { carriesOut } from '../communicator/choose-algorithm.js';
import type { Profile, Times } from '../communicator/profile.js';
import { InternalError } from '../errors.js';

/** What is measured of each collective that perf knows: the kind of call, under perf's name. */
export const measuredKinds: readonly (readonly [kind: CallKind, name: string])[] = [
  ['allReduce', 'all_reduce'], ['reduce', 'reduce'], ['broadcast', 'broadcast'], ['allGather', 'all_gather'],
  ['reduceScatter', 'reduce_scatter'], ['allToAll', 'alltoall'], ['gather', 'gather'], ['scatter', 'scatter'],
];

export interface TuneOptions {
  readonly ranks: readonly number[];
  /** Largest size, bytes. */
  readonly maxBytes: number;
  /** The command line that runs `tccl perf`. */
  readonly command: readonly string[];
  readonly onProgress: (done: number, total: number, text: string) => void;
}

/**
 * Measures all algorithms for all collectives on this host, each forced by TCCL_ALGO, with `tccl perf`: float sums out
 * of place, on arrays in shared memory, by the blocking API.
 */
export async function tune({ ranks, maxBytes, command, onProgress }: TuneOptions): Promise<Profile> {
  const runs = ranks.flatMap((count) => measuredKinds.flatMap(([kind, name]) =>
    algorithms.filter((algorithm) => carriesOut(algorithm, kind, count)).map((algorithm) => ({ count, kind, name, algorithm }))));
  const times: Record<string, Times> = {};
  for (const [done, { count, kind, name, algorithm }] of runs.entries()) {
    onProgress(done, runs.length, `${name} of ${count} ranks by ${algorithm}`);
    const points = await measure(command, count, name, maxBytes, algorithm);
    times[count] = { ...times[count], [kind]: { ...times[count]?.[kind], [algorithm]: points } };
  }
  return {
    format: 'tccl profile', formatVersion: 1,
    machine: `${cpus()[0]?.model.trim() ?? 'unknown processor'}, ${availableParallelism()} cores`,
    cores: availableParallelism(),
    times,
  };
}

/** Bytes as the choice of an algorithm sees them, and µs. Without an algorithm, what the ranks choose themselves. */
export async function measure(
  command: readonly string[], ranks: number, name: string, maxBytes: number, algorithm: Algorithm | undefined,
): Promise<(readonly [number, number])[]> {
  const [file = '', ...args] = command;
  const child = spawn(file, [...args, name, '--ranks', String(ranks), '-b', '8', '-e', String(maxBytes), '-f', '8', '-c', '0', '--json'], {
    env: { ...process.env, ...(algorithm === undefined ? {} : { TCCL_ALGO: algorithm }) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => { stdout += text; });
  child.stderr.setEncoding('utf8').on('data', (text: string) => { stderr += text; });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new InternalError('INTERNAL', `tccl perf ${name} of ${ranks} ranks${algorithm === undefined ? '' : ` by ${algorithm}`} failed: ${stderr.trim()}`);
  const bytesPerElement = 4;
  const points = stdout.trim().split('\n').map((line) => JSON.parse(line) as { count?: number; inplace?: number; time_us?: number })
    .flatMap(({ count, inplace, time_us: us }): (readonly [number, number])[] => (inplace === 0 && count !== undefined && us !== undefined ? [[count * bytesPerElement, us]] : []));
  // Small sizes are rounded to whole blocks: the same count may come twice.
  return points.filter(([bytes], i) => bytes > (points[i - 1]?.[0] ?? 0));
}
