import { createHash } from '#platform/crypto';
import { malformed, value, type Environment } from './environment.js';
import { slurmStep } from './job-id.js';
import type { Host } from './hosts/host-list.js';
import { fixedPorts } from './meeting-point.js';

/**
 * True for a task of `srun`. The shells of `sbatch` and `salloc` have SLURM_PROCID=0 and the job's SLURM_NTASKS, too, although
 * nobody starts the other tasks. Their step id is from the reserved end of Slurm's range (slurm.h: 0xfffffff0 and up, printed
 * signed by some versions), or absent.
 */
export function isSlurmTask(env: Environment): boolean {
  const step = value(env, 'SLURM_STEP_ID') ?? value(env, 'SLURM_STEPID');
  if (step === undefined) return value(env, 'SLURM_JOB_ID') === undefined;
  return /^\d+$/.test(step) && Number(step) < 0xfffffff0;
}

/** Number of tasks of this step on this host. */
export function slurmTasksOnThisNode(env: Environment): number | undefined {
  return taskCounts(env, 'SLURM_STEP_TASKS_PER_NODE')[Number(env['SLURM_NODEID'] ?? NaN)];
}

/**
 * Hosts of the job in whose shell this process runs, that of `salloc` or `sbatch`; undefined anywhere else. They take as many
 * ranks as tasks, if the user gave Slurm a number of these (`-n`, `--ntasks-per-node`).
 */
export function slurmAllocation(env: Environment): Host[] | undefined {
  if (value(env, 'SLURM_JOB_ID') === undefined || isSlurmTask(env)) return undefined;
  if (value(env, 'SLURM_JOB_NODELIST') === undefined) return undefined;
  const names = hostsOf(env, 'SLURM_JOB_NODELIST');
  const counts = taskCounts(env, 'SLURM_TASKS_PER_NODE');
  if (counts.length !== names.length)
    throw malformed(env, 'SLURM_TASKS_PER_NODE', `a list of task counts for the ${names.length} hosts of SLURM_JOB_NODELIST`);
  const isCounted = value(env, 'SLURM_NTASKS') !== undefined;
  return names.map((name, i) => ({ name, slots: isCounted ? counts[i] : undefined }));
}

/**
 * `host:port` where the tasks of a step can meet: its first host, which has rank 0, and a port by the step's id. Two steps may
 * have one port: then their ids keep them apart.
 */
export function slurmAddress(env: Environment): string | undefined {
  const step = slurmStep(env);
  if (step === undefined || value(env, 'SLURM_STEP_NODELIST') === undefined) return undefined;
  const [first = '', ...others] = hostsOf(env, 'SLURM_STEP_NODELIST');
  const port =
    fixedPorts.first + (createHash('sha256').update(step).digest().readUInt32LE() % (fixedPorts.end - fixedPorts.first));
  return `${others.length === 0 ? '127.0.0.1' : first}:${port}`;
}

/** Most hosts of a list, which a mistake in it could multiply. */
const MOST_HOSTS = 100_000;

/**
 * Expands a list of hosts: `node[1-2,08-10],login` has six. A name may have several brackets, of which the last one changes
 * fastest.
 */
function hostsOf(env: Environment, name: string): string[] {
  const text = env[name] ?? '';
  const word = /(?:[^\s,[\]]|\[[\d,-]+\])+/g;
  const words = text.match(word) ?? [];
  const hosts = words.flatMap((one) =>
    one.split(/[[\]]/).reduce<string[]>(
      (names, part, index) => {
        const ends = index % 2 === 0 ? [part] : numbersOf(part);
        return names.length * ends.length > MOST_HOSTS ? [] : names.flatMap((begin) => ends.map((end) => begin + end));
      },
      [''],
    ),
  );
  if (words.join() !== text || hosts.length === 0 || hosts.length > MOST_HOSTS)
    throw malformed(env, name, 'a list of hosts such as node[1-4],login');
  return hosts;
}

/** The numbers of `1-3,08`, with leading zeros where the list has them. */
function numbersOf(text: string): string[] {
  return text.split(',').flatMap((part) => {
    const [, first = '', last = first] = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(part) ?? [];
    const count = first === '' ? 0 : Math.min(Number(last) - Number(first) + 1, MOST_HOSTS + 1);
    return Array.from({ length: Math.max(0, count) }, (_, i) => String(Number(first) + i).padStart(first.length, '0'));
  });
}

/** Reads `2(x3),1`: three hosts with two tasks, one with one. */
function taskCounts(env: Environment, name: string): number[] {
  return (env[name] ?? '').split(',').flatMap((part) => {
    const match = /^(\d{1,9})(?:\(x(\d{1,6})\))?$/.exec(part);
    if (match === null) throw malformed(env, name, 'a list of task counts such as 2(x3),1');
    return Array<number>(Number(match[2] ?? 1)).fill(Number(match[1]));
  });
}
