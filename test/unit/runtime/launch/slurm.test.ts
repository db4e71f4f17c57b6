import { describe, expect, it } from 'vitest';
import { slurmAddress, slurmAllocation } from '../../../../src/runtime/launch/slurm.js';

const shell = { SLURM_JOB_ID: '77', SLURM_JOB_NODELIST: 'n[1-2]', SLURM_TASKS_PER_NODE: '2(x2)' };
const step = { SLURM_JOB_ID: '77', SLURM_STEP_ID: '0', SLURM_STEP_NODELIST: 'n[1-2]' };

describe('the hosts of an allocation of Slurm', () => {
  it.each([
    ['n1', '1', ['n1']],
    ['n[1-2]', '1(x2)', ['n1', 'n2']],
    ['n[08-10,12],login', '1(x5)', ['n08', 'n09', 'n10', 'n12', 'login']],
    ['rack[1-2]-gpu[0-1]', '1(x4)', ['rack1-gpu0', 'rack1-gpu1', 'rack2-gpu0', 'rack2-gpu1']],
    ['a[1-2]b,c.example', '1(x3)', ['a1b', 'a2b', 'c.example']],
  ])('are those of %s', (list, tasks, names) => {
    const hosts = slurmAllocation({ ...shell, SLURM_JOB_NODELIST: list, SLURM_TASKS_PER_NODE: tasks });
    expect(hosts?.map(({ name }) => name)).toEqual(names);
  });

  it('take as many ranks as tasks, if the user gave a number of these', () => {
    const uneven = { ...shell, SLURM_TASKS_PER_NODE: '3,1' };
    expect(slurmAllocation({ ...uneven, SLURM_NTASKS: '4' })?.map(({ slots }) => slots)).toEqual([3, 1]);
    expect(slurmAllocation(uneven)?.map(({ slots }) => slots)).toEqual([undefined, undefined]);
  });

  it.each([
    ['outside of Slurm', {}],
    ['in a task of srun', { ...shell, SLURM_STEP_ID: '0' }],
  ])('are none %s', (_, env) => {
    expect(slurmAllocation(env)).toBeUndefined();
  });

  it.each(['n[1-2', 'n[1-2]]', 'n[2-x]', 'n[2-1]', 'n[]', ',', 'n1,,n2', 'n 1', 'n[1-99999999]', 'n[1-999][1-999]'])(
    'are not read from %s',
    (list) => {
      expect(() => slurmAllocation({ ...shell, SLURM_JOB_NODELIST: list })).toThrow(
        /^SLURM_JOB_NODELIST=.* is not a list of hosts such as node\[1-4\],login/,
      );
    },
  );

  it('need a number of tasks for each', () => {
    expect(() => slurmAllocation({ ...shell, SLURM_TASKS_PER_NODE: '2' })).toThrow(
      /^SLURM_TASKS_PER_NODE=2 is not a list of task counts for the 2 hosts of SLURM_JOB_NODELIST/,
    );
  });
});

describe('the address where tasks of srun meet', () => {
  it('is on the first host, at a port below that of outgoing connections, of each step its own', () => {
    const ports = [0, 1, 2, 3].map((id) => {
      const [host, port] = (slurmAddress({ ...step, SLURM_STEP_ID: String(id) }) ?? '').split(':');
      expect(host).toBe('n1');
      return Number(port);
    });
    expect(new Set(ports).size).toBe(4);
    for (const port of ports) expect(port >= 20_000 && port < 32_768).toBe(true);
  });

  it('is on loopback where all are on one host', () => {
    expect(slurmAddress({ ...step, SLURM_STEP_NODELIST: 'n1' })).toMatch(/^127\.0\.0\.1:\d+$/);
  });

  it('is unknown without the list of hosts', () => {
    expect(slurmAddress({ SLURM_JOB_ID: '77', SLURM_STEP_ID: '0' })).toBeUndefined();
  });
});
