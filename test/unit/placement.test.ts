import { describe, expect, it } from 'vitest';
import { kubernetesJob } from '../../src/runtime/launch/job-id.js';
import { findPlacement } from '../../src/runtime/launch/placement.js';

const openmpi = {
  OMPI_COMM_WORLD_RANK: '3',
  OMPI_COMM_WORLD_SIZE: '8',
  OMPI_COMM_WORLD_LOCAL_RANK: '1',
  OMPI_COMM_WORLD_LOCAL_SIZE: '2',
  PMIX_RANK: '3',
  PMIX_NAMESPACE: '2073690113',
};
const mpich = { PMI_RANK: '3', PMI_SIZE: '8', MPI_LOCALRANKID: '1', MPI_LOCALNRANKS: '2' };
const slurm = {
  SLURM_JOB_ID: '77',
  SLURM_STEP_ID: '0',
  SLURM_PROCID: '6',
  SLURM_LOCALID: '0',
  SLURM_NODEID: '3',
  SLURM_NTASKS: '9',
  SLURM_STEP_NUM_TASKS: '7',
  SLURM_STEP_TASKS_PER_NODE: '2(x3),1',
};
const torchrun = {
  RANK: '3',
  WORLD_SIZE: '8',
  LOCAL_RANK: '1',
  LOCAL_WORLD_SIZE: '2',
  MASTER_ADDR: 'node7',
  MASTER_PORT: '29500',
  TORCHELASTIC_RUN_ID: 'none',
};
const tccl = { TCCL_RANK: '1', TCCL_NRANKS: '4', TCCL_LOCAL_RANK: '1', TCCL_LOCAL_NRANKS: '4', TCCL_COMM_ID: 'abc' };
const third = { rank: 3, nRanks: 8, localRank: 1, nLocalRanks: 2, commId: undefined };

describe('a placement from the environment', () => {
  it('is undefined without a launcher', () => {
    expect(findPlacement({ PATH: '/bin', RANK: 'general' })).toBeUndefined();
  });

  it.each([
    ['tccl run', tccl, { launcher: 'tccl', rank: 1, nRanks: 4, localRank: 1, nLocalRanks: 4, commId: 'abc' }],
    ['Open MPI', openmpi, { launcher: 'openmpi', ...third, jobId: 'pmix 2073690113' }],
    ['MPICH', mpich, { launcher: 'mpich', ...third }],
    [
      'Slurm',
      slurm,
      { launcher: 'slurm', rank: 6, nRanks: 7, localRank: 0, nLocalRanks: 1, commId: undefined, jobId: 'slurm 77.0' },
    ],
    ['torchrun', torchrun, { launcher: 'torchrun', ...third, commId: 'node7:29501' }],
    [
      'PRRTE with the number of ranks set by hand',
      { PMIX_RANK: '3', PMIX_NAMESPACE: 'prterun-node7-99@1', TCCL_NRANKS: '8' },
      { launcher: 'pmix', ...third, localRank: undefined, nLocalRanks: undefined, jobId: 'pmix prterun-node7-99@1' },
    ],
  ])('is read from the variables of %s', (_, env, place) => {
    expect(findPlacement(env)).toEqual(place);
  });

  it('leaves values undefined that the launcher does not give', () => {
    expect(findPlacement({ PMI_RANK: '0', PMI_SIZE: '2' })).toEqual({
      launcher: 'mpich',
      rank: 0,
      nRanks: 2,
      localRank: undefined,
      nLocalRanks: undefined,
      commId: undefined,
    });
    expect(findPlacement({ SLURM_PROCID: '1', SLURM_NTASKS: '2', SLURM_LOCALID: '1' })).toEqual({
      launcher: 'slurm',
      rank: 1,
      nRanks: 2,
      localRank: 1,
      nLocalRanks: undefined,
      commId: undefined,
    });
  });

  it('counts an empty variable as absent', () => {
    expect(findPlacement({ TCCL_RANK: '', TCCL_NRANKS: '', ...mpich, TCCL_COMM_ID: '' })).toEqual({
      launcher: 'mpich',
      ...third,
    });
  });

  it.each([
    ['mpich', mpich],
    ['openmpi', openmpi],
    ['slurm', slurm],
    ['torchrun', torchrun],
  ])('takes TCCL_COMM_ID as the address under %s', (launcher, env) => {
    expect(findPlacement({ ...env, TCCL_COMM_ID: 'node7:1234' })).toMatchObject({ launcher, commId: 'node7:1234' });
  });

  it.each([
    ['torchrun --rdzv-id', { ...torchrun, TORCHELASTIC_RUN_ID: 'run7' }, 'torchrun run7'],
    ['srun --mpi=pmi2', { ...mpich, SLURM_JOB_ID: '77', SLURM_STEP_ID: '2' }, 'slurm 77.2'],
    ['an older srun', { SLURM_PROCID: '1', SLURM_NTASKS: '2', SLURM_JOBID: '9', SLURM_STEPID: '1' }, 'slurm 9.1'],
    ['tccl run', tccl, undefined],
  ])('takes the id of its job from %s, and from TCCL_JOB_ID under each', (_, env, jobId) => {
    expect(findPlacement(env)?.jobId).toBe(jobId);
    expect(findPlacement({ ...env, TCCL_JOB_ID: 'mine' })).toMatchObject({ jobId: 'mine' });
  });

  it('takes the id of a job of Kubernetes from the name of the pod', () => {
    const inPod = { KUBERNETES_SERVICE_HOST: '10.96.0.1' };
    expect(kubernetesJob({ ...inPod, JOB_COMPLETION_INDEX: '12' }, 'sum-a-12')).toMatch(/^kubernetes .*\/sum-a$/);
    expect(kubernetesJob(inPod, 'sum-worker-3')).toBe(kubernetesJob(inPod, 'sum-master-0'));
    expect(kubernetesJob(inPod, 'sum-worker-3')).not.toBe(kubernetesJob(inPod, 'other-worker-3'));
    // The network of the host: the name of a machine, not of a pod.
    expect(kubernetesJob({ ...inPod, JOB_COMPLETION_INDEX: '12' }, 'gpu-7')).toBeUndefined();
    expect(kubernetesJob({ JOB_COMPLETION_INDEX: '12' }, 'sum-12')).toBeUndefined();
  });

  it('brackets an IPv6 address from torchrun', () => {
    expect(findPlacement({ ...torchrun, MASTER_ADDR: 'fd00::7' })?.commId).toBe('[fd00::7]:29501');
  });
});

describe('launchers inside launchers', () => {
  it.each([
    ['tccl run inside anything', { ...slurm, ...torchrun, ...openmpi, ...mpich, ...tccl }, 'tccl'],
    ['torchrun started by srun', { ...slurm, ...torchrun }, 'torchrun'],
    ['torchrun started by mpirun', { ...openmpi, ...torchrun }, 'torchrun'],
    ['mpirun inside a Slurm job', { ...slurm, ...openmpi }, 'openmpi'],
    ['mpiexec inside a Slurm job', { ...slurm, ...mpich }, 'mpich'],
    ['srun --mpi=pmix', { ...slurm, PMIX_RANK: '6', PMIX_NAMESPACE: 'slurm.pmix.77.0' }, 'slurm'],
    ['srun with RANK and WORLD_SIZE exported by a script', { ...slurm, RANK: '0', WORLD_SIZE: '1' }, 'slurm'],
  ])('%s', (_, env, launcher) => {
    expect(findPlacement(env)?.launcher).toBe(launcher);
  });

  const batchShell = { ...slurm, SLURM_STEP_ID: undefined, SLURM_PROCID: '0', ENVIRONMENT: 'BATCH' };
  it.each([
    ['a batch script', batchShell],
    ['a batch script whose step id is printed', { ...batchShell, SLURM_STEP_ID: '-5' }],
    ['an interactive shell of salloc', { ...batchShell, SLURM_STEP_ID: '4294967290' }],
  ])('%s is no task of Slurm', (_, env) => {
    expect(findPlacement(env)).toBeUndefined();
  });
});

describe('wrong values', () => {
  it.each([
    [{ ...tccl, TCCL_RANK: 'one' }, 'TCCL_RANK=one is not a rank from 0 to 3: there are 4 ranks'],
    [{ ...tccl, TCCL_RANK: '4' }, 'TCCL_RANK=4 is not a rank from 0 to 3: there are 4 ranks'],
    [{ ...tccl, TCCL_RANK: '-1' }, 'TCCL_RANK=-1 is not a rank'],
    [{ ...tccl, TCCL_NRANKS: '0' }, 'TCCL_NRANKS=0 is not a number of ranks (1 or more)'],
    [{ ...tccl, TCCL_NRANKS: '4.0' }, 'TCCL_NRANKS=4.0 is not a number of ranks'],
    [{ ...tccl, TCCL_NRANKS: '99999999999999999999' }, 'TCCL_NRANKS=99999999999999999999 is not a number of ranks'],
    [{ ...tccl, TCCL_LOCAL_RANK: '4' }, 'TCCL_LOCAL_RANK=4 is not a rank from 0 to 3: there are 4 ranks on this host'],
    [{ ...tccl, TCCL_LOCAL_NRANKS: '5' }, '5 ranks on this host (TCCL_LOCAL_NRANKS) are more than the 4 ranks in all'],
    [{ ...openmpi, OMPI_COMM_WORLD_RANK: '8' }, 'OMPI_COMM_WORLD_RANK=8 is not a rank from 0 to 7'],
    [{ ...mpich, PMI_SIZE: 'x' }, 'PMI_SIZE=x is not a number of ranks'],
    [{ ...mpich, MPI_LOCALRANKID: '2' }, 'MPI_LOCALRANKID=2 is not a rank from 0 to 1'],
    [{ ...slurm, SLURM_STEP_TASKS_PER_NODE: '2(x3' }, 'SLURM_STEP_TASKS_PER_NODE=2(x3 is not a list of task counts'],
    [{ ...torchrun, MASTER_PORT: 'http' }, 'MASTER_PORT=http is not a port from 1 to 65534'],
    [{ ...torchrun, MASTER_PORT: '65535' }, 'MASTER_PORT=65535 is not a port from 1 to 65534'],
    [{ TCCL_RANK: '1' }, 'TCCL_RANK=1 gives this process its rank, but nothing gives the number of ranks: set TCCL_NRANKS'],
    [{ TCCL_NRANKS: '4' }, 'TCCL_NRANKS is set but TCCL_RANK is not'],
    [{ PMIX_RANK: '1' }, 'PMIX_RANK=1 gives this process its rank, but nothing gives the number of ranks: set TCCL_NRANKS'],
  ])('%o', (env, message) => {
    expect(() => findPlacement(env)).toThrow(
      expect.objectContaining({
        name: 'InvalidUsageError',
        code: 'ENVIRONMENT',
        message: expect.stringContaining(message) as string,
      }),
    );
  });
});
