import type { LogFinding } from './finding.js';
import type { LogModel } from '../job/model.js';
import { type OutputOf, outputsOf } from './tools/outputs.js';

/** Variables that are alike on all hosts of a job. */
const common = ['MASTER_ADDR', 'MASTER_PORT', 'NNODES', 'WORLD_SIZE', 'PET_NNODES', 'PET_RDZV_ENDPOINT'] as const;
/** Variables that are different on all hosts. */
const own = ['NODE_RANK', 'PET_NODE_RANK', 'GROUP_RANK'] as const;

/** Compares the variables with which hosts start their ranks, from `env` of several hosts. */
export function checkLaunch(model: LogModel): LogFinding[] {
  const byHost = new Map<string, OutputOf<'env'>>();
  for (const output of outputsOf(model, 'env'))
    if (output.host !== '' && !byHost.has(output.host)) byHost.set(output.host, output);
  const hosts = [...byHost];
  const valuesOf = (name: string) =>
    hosts.flatMap(([host, { facts }]) => {
      const found = facts.variables.get(name);
      return found === undefined ? [] : [{ host, ...found }];
    });
  const finding = (problem: string, cause: string, list: ReturnType<typeof valuesOf>): LogFinding => ({
    code: 'launch-variables',
    severity: 'error',
    kind: 'fault',
    explains: ['store-timeout', 'init-unfinished', 'exit-child', 'rank-absent', 'watchdog-timeout', 'calls-failed'],
    problem,
    cause,
    remedy:
      'start each host with its own node rank (0, 1, …) and the same address, port and number of nodes: torchrun --nnodes N --node-rank R --master-addr A; the scheduler knows R (SLURM_NODEID, JOB_COMPLETION_INDEX)',
    places: list.slice(0, 4).map(({ place }) => place),
  });
  const shown = (list: ReturnType<typeof valuesOf>) =>
    list
      .slice(0, 4)
      .map(({ host, value }) => `${value} on ${host}`)
      .join(', ');
  for (const name of common) {
    const list = valuesOf(name);
    const other = list.find(({ value }) => value !== list[0]?.value);
    if (other !== undefined && list[0] !== undefined)
      return [
        finding(
          `hosts of one job differ in ${name}: ${shown([list[0], other])}`,
          'each host was started with values of its own',
          [list[0], other],
        ),
      ];
  }
  for (const name of own) {
    const list = valuesOf(name);
    const twice = list.filter(({ value }) => list.filter((each) => each.value === value).length > 1);
    // Without one meeting point they may be jobs of their own.
    if (twice.length > 1 && valuesOf('MASTER_ADDR').length + valuesOf('PET_RDZV_ENDPOINT').length === hosts.length)
      return [
        finding(
          `hosts of one job have the same ${name}: ${shown(twice)}`,
          'the command of one host was copied to the others, so their ranks have the same numbers: some wait for ranks that never come',
          twice,
        ),
      ];
  }
  return [];
}
