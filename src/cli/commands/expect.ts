import type { Command } from 'commander';
import { CLUSTER_HELP, withClusterOptions } from '../cluster-options.js';
import type { ExpectOptions } from '../expect/show.js';
import { examples } from '../output.js';

/** `tccl expect`: results of nccl-tests beside simulated times. */
export function register(program: Command): void {
  withClusterOptions(
    program
      .command('expect')
      .description('compare results of nccl-tests with what a cluster should reach, and name what would explain slow ones')
      .argument('<cluster>', CLUSTER_HELP)
      .argument('<results>', 'what nccl-tests printed, or the JSON that it wrote (-J); - for the standard input'),
  )
    .option('--collective <name>', 'what was measured, where the results do not say: all_reduce, all_gather …')
    .option('--seconds <number>', 'how long to try explanations', '20')
    .option('--json', 'print rows and explanations as JSON')
    .addHelpText(
      'after',
      `${examples(
        ['one machine', 'tccl expect dgx-h100 results.txt'],
        ['the output of a run, as it is printed', 'mpirun -np 16 all_reduce_perf -b 8 -e 8G -f 2 | tccl expect dgx-h100:2 -'],
        ['the JSON of newer versions', 'all_reduce_perf -g 8 -J results.json; tccl expect dgx-h100 results.json'],
        ['a cluster with its own topology and settings', 'tccl expect cluster.yaml results.txt'],
      )}\nExpected are simulated times; in eight of ten measurements of other machines the time lay in the interval. Variables of NCCL and its version are taken from the results where they say so, unless --env and --nccl set them.\nExit code: 0 as expected or faster, 1 where most small, middle or large sizes of a table are slow, 2 wrong use.`,
    )
    .action(async (cluster: string, results: string, options: ExpectOptions) => {
      const { showExpected } = await import('../expect/show.js');
      process.exitCode = (await showExpected(cluster, results, options)) ? 1 : 0;
    });
}
