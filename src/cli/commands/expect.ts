import type { Command } from 'commander';
import { CLUSTER_HELP, withClusterOptions, withSimulationOptions, withWindowsOption } from '../cluster-options.js';
import { InvalidUsageError } from '../../errors.js';
import type { ExpectOptions } from '../expect/options.js';
import { examples } from '../output.js';

/** `tccl expect`: results of nccl-tests beside simulated times. */
export function register(program: Command): void {
  withSimulationOptions(
    withWindowsOption(
      withClusterOptions(
        program
          .command('expect')
          .description('compare results of nccl-tests with what a cluster should reach, and name what would explain slow ones')
          .argument('<cluster>', CLUSTER_HELP)
          .argument(
            '[results...]',
            'what nccl-tests printed, or the JSON that it wrote (-J); - for the standard input; with --gate also outputs of nvidia-smi, ibstat, lspci, NCCL',
          ),
      ),
    ),
  )
    .option('--collective <name>', 'what was measured, where the results do not say: all_reduce, all_gather …')
    .option('--seconds <number>', 'how long to try explanations', '20')
    .option('--gate', 'print thresholds for this cluster; with results: exit 1 and name the first part that is missing or slow')
    .option('--for <check>', 'with --gate: thresholds for nccl-tests, aznhc, chs, nvsentinel or nvsentinel-loopback')
    .option('--sizes <list>', 'with --gate: sizes of the thresholds, as 1G,16G')
    .option('--json', 'print rows and explanations as JSON')
    .addHelpText(
      'after',
      `${examples(
        ['one machine', 'tccl expect dgx-h100 results.txt'],
        ['the output of a run, as it is printed', 'mpirun -np 16 all_reduce_perf -b 8 -e 8G -f 2 | tccl expect dgx-h100:2 -'],
        ['the JSON of newer versions', 'all_reduce_perf -g 8 -J results.json; tccl expect dgx-h100 results.json'],
        ['thresholds of a healthy cluster', 'tccl expect dgx-h100:2 --gate'],
        ['the same as variables of nccl-tests', 'tccl expect dgx-h100:2 --gate --for nccl-tests > gate.env'],
        ['pass or fail of a host', 'tccl expect dgx-h100 --gate nvidia-smi.txt lspci.txt results.txt'],
        ['a cluster with its own topology and settings', 'tccl expect cluster.yaml results.txt'],
      )}\nExpected are simulated times; in eight of ten measurements of other machines the time lay in the interval. Variables of NCCL and its version are taken from the results where they say so, unless --env and --nccl set them.\nExit code: 0 as expected or faster, 1 where most small, middle or large sizes of a table are slow, 2 wrong use, 3 where they are slower than expected but nobody measured enough to tell. With --gate: 0 where nothing is missing, 1 where something is.`,
    )
    .action(async (cluster: string, results: readonly string[], options: ExpectOptions) => {
      if (options.gate === true) {
        const { showGate } = await import('../expect/gate.js');
        process.exitCode = (await showGate(cluster, results, options)) ? 0 : 1;
        return;
      }
      for (const option of ['for', 'sizes'] as const)
        if (options[option] !== undefined)
          throw new InvalidUsageError('UNSUPPORTED', `--${option} goes with --gate, which prints thresholds`);
      const [first, second] = results;
      if (first === undefined)
        throw new InvalidUsageError('UNSUPPORTED', 'no results are given: add a file, or --gate for thresholds');
      if (second !== undefined)
        throw new InvalidUsageError('UNSUPPORTED', 'several files of results go with --gate only: give one');
      const { showExpected } = await import('../expect/show.js');
      process.exitCode = await showExpected(cluster, first, options);
    });
}
