import { value, type Environment } from './environment.js';
import { hostname } from '../platform/platform.js';
import { textOf } from '../proc.js';

/*
 * Ids of jobs: texts that all ranks of a job have, and no other job. Ranks that meet at one HOST:PORT tell jobs apart by them.
 */

/** File with the name of a pod's namespace, if it is mounted, which is so in all pods of a job or in none. */
const NAMESPACE_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/** Id of the job that a `tccl run` on each node belongs to, as Slurm or Kubernetes gives it. Its steps may be several. */
export function jobOfNodes(env: Environment): string | undefined {
  return slurmJob(env) ?? kubernetesJob(env);
}

/** Slurm's job and step: all tasks of an `srun`. */
export function slurmStep(env: Environment): string | undefined {
  const job = slurmJob(env);
  const step = value(env, 'SLURM_STEP_ID') ?? value(env, 'SLURM_STEPID');
  return job === undefined || step === undefined ? job : `${job}.${step}`;
}

/** A task of a job array has a number of its own. */
function slurmJob(env: Environment): string | undefined {
  const id = value(env, 'SLURM_JOB_ID') ?? value(env, 'SLURM_JOBID');
  return id === undefined ? undefined : `slurm ${id}`;
}

/** `--rdzv-id` of torchrun, which is `none` if nobody gave one. */
export function torchrunId(env: Environment): string | undefined {
  const id = value(env, 'TORCHELASTIC_RUN_ID');
  return id === undefined || id === 'none' ? undefined : `torchrun ${id}`;
}

/** The job of Open MPI's and PRRTE's launchers. */
export function pmixJob(env: Environment): string | undefined {
  const job = value(env, 'PMIX_NAMESPACE');
  return job === undefined ? undefined : `pmix ${job}`;
}

/**
 * Kubernetes' name of the job, which begins the names of its pods: `sum-0` in an indexed Job, `sum-worker-0` in a PyTorchJob. A
 * pod in the network of its host has that host's name instead.
 */
export function kubernetesJob(env: Environment, pod = hostname()): string | undefined {
  if (value(env, 'KUBERNETES_SERVICE_HOST') === undefined) return undefined;
  const index = value(env, 'JOB_COMPLETION_INDEX');
  const [, job, last] = /^(.+?)(?:-(?:master|worker))?-(\d+)$/.exec(pod) ?? [];
  return job === undefined || (index !== undefined && index !== last)
    ? undefined
    : `kubernetes ${textOf(NAMESPACE_FILE).trim()}/${job}`;
}
