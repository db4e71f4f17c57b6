import { malformed, value, wholeNumber, type Environment } from './environment.js';
import { kubernetesJob, pmixJob, slurmStep, torchrunId } from './job-id.js';
import { isSlurmTask, slurmTasksOnThisNode } from './slurm.js';

/** Variables of one launcher. A launcher is recognised by those of the rank and the number of ranks. */
export interface Launcher {
  readonly name: string;
  /** Variable with the rank. */
  readonly rank: string;
  /** Variables with the number of ranks; the first one that is set is used. */
  readonly nRanks: readonly string[];
  /** Variable with the rank among those on this host. */
  readonly localRank: string;
  /** Variable with the number of ranks on this host, and how to read it where it isn't simply that number. */
  readonly nLocalRanks: { readonly name: string; readonly read?: (env: Environment) => number | undefined };
  /** True when the variables are present but mean something else. */
  readonly unless?: (env: Environment) => boolean;
  /** Address where the ranks meet, if the launcher gives one. */
  readonly address?: (env: Environment) => string | undefined;
  /** The launcher's id of the job, the same on all its ranks. `TCCL_JOB_ID` replaces it. */
  readonly jobId?: (env: Environment) => string | undefined;
}

const torchrun: Launcher = {
  name: 'torchrun',
  rank: 'RANK',
  nRanks: ['WORLD_SIZE'],
  localRank: 'LOCAL_RANK',
  nLocalRanks: { name: 'LOCAL_WORLD_SIZE' },
  address: torchrunAddress,
  jobId: (env) => torchrunId(env) ?? kubernetesJob(env),
};

/**
 * Known launchers, in the order in which they are tried. Jobs nest (`srun` starts torchrun or mpirun on each host, and any of
 * them may start `tccl run`), and the ranks of the inner job still have the variables of the outer one. So launchers that
 * start inner jobs come before those that start outer jobs.
 */
export const launchers: readonly Launcher[] = [
  {
    name: 'tccl',
    rank: 'TCCL_RANK',
    nRanks: ['TCCL_NRANKS'],
    localRank: 'TCCL_LOCAL_RANK',
    nLocalRanks: { name: 'TCCL_LOCAL_NRANKS' },
  },
  // TORCHELASTIC_RUN_ID shows the real torchrun; RANK and WORLD_SIZE alone may be the user's own variables.
  { ...torchrun, unless: (env) => value(env, 'TORCHELASTIC_RUN_ID') === undefined },
  {
    // Open MPI 4's own runtime, and PRRTE in Open MPI 5 (its PMIx library sets these names for MPI jobs).
    name: 'openmpi',
    rank: 'OMPI_COMM_WORLD_RANK',
    nRanks: ['OMPI_COMM_WORLD_SIZE'],
    localRank: 'OMPI_COMM_WORLD_LOCAL_RANK',
    nLocalRanks: { name: 'OMPI_COMM_WORLD_LOCAL_SIZE' },
    jobId: pmixJob,
  },
  {
    // Hydra, which MPICH, MVAPICH and Intel MPI share; `srun --mpi=pmi2` without the local names.
    name: 'mpich',
    rank: 'PMI_RANK',
    nRanks: ['PMI_SIZE'],
    localRank: 'MPI_LOCALRANKID',
    nLocalRanks: { name: 'MPI_LOCALNRANKS' },
    jobId: slurmStep,
  },
  {
    // PRRTE's own prterun: PMIx sets only the rank in the environment; the sizes need its protocol.
    name: 'pmix',
    rank: 'PMIX_RANK',
    nRanks: [],
    localRank: 'TCCL_LOCAL_RANK',
    nLocalRanks: { name: 'TCCL_LOCAL_NRANKS' },
    jobId: pmixJob,
    // Under Slurm's PMIx plugin, Slurm's own variables contain everything.
    unless: (env) => env['PMIX_NAMESPACE']?.startsWith('slurm.') === true,
  },
  {
    name: 'slurm',
    rank: 'SLURM_PROCID',
    // After `srun --preserve-env`, SLURM_NTASKS is the job's number, not the step's.
    nRanks: ['SLURM_STEP_NUM_TASKS', 'SLURM_NTASKS', 'SLURM_NPROCS'],
    localRank: 'SLURM_LOCALID',
    nLocalRanks: { name: 'SLURM_STEP_TASKS_PER_NODE', read: slurmTasksOnThisNode },
    jobId: slurmStep,
    unless: (env) => !isSlurmTask(env),
  },
  torchrun,
];

/** The port above torchrun's: torchrun's agent (or rank 0) serves its own key-value store on MASTER_PORT while the job runs. */
function torchrunAddress(env: Environment): string | undefined {
  const host = value(env, 'MASTER_ADDR');
  const port = value(env, 'MASTER_PORT');
  if (host === undefined || port === undefined) return undefined;
  const number = wholeNumber(port) ?? 0;
  if (number < 1 || number > 65534)
    throw malformed(env, 'MASTER_PORT', 'a port from 1 to 65534 (tccl takes the one above; or set TCCL_COMM_ID)');
  return `${host.includes(':') ? `[${host}]` : host}:${number + 1}`;
}
