import type { Command } from 'commander';
import { InvalidUsageError } from '../../errors.js';
import { CLUSTER_HELP, withClusterOptions, withSimulationOptions, withWindowsOption } from '../cluster-options.js';
import { examples } from '../output.js';
import type { ChannelOptions } from '../plan/channels.js';
import type { PlanOptions } from '../plan/plan.js';

/** `tccl plan`: NCCL's decisions for a cluster, on one screen. */
export function register(program: Command): void {
  withSimulationOptions(
    withWindowsOption(
      withClusterOptions(
        program
          .command('plan')
          .description('predict what NCCL would do on a cluster: limits, channels, algorithm, time and bandwidth by size')
          .argument('[cluster...]', CLUSTER_HELP),
      ),
    ),
  )
    .option('--follow-nccl', 'take variables that contradict each other as NCCL takes them')
    .option(
      '--split-from <cluster>',
      'the communicator that this one was split from and whose resources it shares (splitShare=1): it has no more channels',
    )
    .option('--sizes <list>', 'sizes of the table, as 1K,1M,1G')
    .option('-b, --minbytes <size>', 'smallest size (default: 1K)')
    .option('-e, --maxbytes <size>', 'largest size (default: 16G)')
    .option('-f, --stepfactor <factor>', 'factor between one size and the next (default: 8)')
    .option('--predict', 'simulate the calls also where that takes more than some two seconds')
    .option('--no-predict', "do not simulate the calls: only NCCL's own times, and nothing of all-to-all and send/recv")
    .option(
      '--topology <file...>',
      'files of TCCL_TOPO_DUMP_FILE, one for each host, and of TCCL_GRAPH_DUMP_FILE: print the channels of tccl itself, as TCCL_DEBUG=INFO does',
    )
    .option('--json', 'print all of it as JSON')
    .option('--costs <format>', 'print times by collective, size and ranks, with intervals, as csv or json, and nothing else')
    .option('--html <file>', 'write it as a page into this file too')
    .option('--svg <file>', 'write charts of bandwidth and choice by size into this file too')
    .addHelpText(
      'after',
      `${examples(
        ['two machines of the catalogue', 'tccl plan dgx-h100 --nodes 2'],
        ['the machines of a job, by their topology files', 'tccl plan big.xml:4 small.xml'],
        ['a cluster file, and a page of it', 'tccl plan cluster.yaml --html plan.html'],
        ['with a variable of NCCL', 'tccl plan dgx-h100 --nodes 2 --env NCCL_NVLS_ENABLE=0'],
        ['with buffers registered as symmetric windows', 'tccl plan dgx-h100 --windows symmetric'],
        ['half of a job, split off with splitShare=1', 'tccl plan dgx-h100 --nodes 2 --split-from dgx-h100:4'],
        ['a table of times for a compiler', 'tccl plan dgx-h100 --nodes 4 --costs csv'],
        ["NCCL's own times alone, for a script", 'tccl plan dgx-h100 --nodes 2 --no-predict --json'],
        ['the channels that ranks of tccl made', 'tccl plan --topology topo.*.xml'],
        ['every power of two from 64 KiB to 1 GiB', 'tccl plan dgx-a100 --nodes 8 -b 64K -e 1G -f 2'],
      )}\nTimes are predicted by a simulation, beside what NCCL's own model believes and chooses by. Sizes are those of nccl-tests. Variables of NCCL are read from the environment, then from the cluster file, then from --env.`,
    )
    .action(async (cluster: string[], options: PlanOptions & Partial<ChannelOptions>) => {
      const { topology } = options;
      if (topology !== undefined) {
        refuseOtherOptions(cluster, options);
        const { showChannels } = await import('../plan/channels.js');
        showChannels({ ...options, topology });
        return;
      }
      const { showPlan } = await import('../plan/plan.js');
      await showPlan(cluster, options);
    });
}

/** @throws InvalidUsageError for a cluster or an option of NCCL's plan beside --topology */
function refuseOtherOptions(cluster: readonly string[], options: PlanOptions & Partial<ChannelOptions>): void {
  const other = Object.keys(options).find((name) => !['topology', 'json', 'nodes'].includes(name));
  const beside =
    cluster.length > 0
      ? `the cluster ${cluster.join(' ')}`
      : other === undefined
        ? undefined
        : `--${other.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  if (beside === undefined) return;
  throw new InvalidUsageError(
    'UNSUPPORTED',
    `${beside} does not go with --topology, which prints the channels of tccl, not NCCL's plan: give one of them`,
  );
}
