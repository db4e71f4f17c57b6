import type { Command } from 'commander';
import { CLUSTER_HELP, withClusterOptions, withWindowsOption } from '../cluster-options.js';
import { examples } from '../output.js';
import type { TunerOptions } from '../tuner/show.js';

/** `tccl tuner`: the table of NCCL's example tuner plugin for a cluster. */
export function register(program: Command): void {
  withWindowsOption(
    withClusterOptions(
      program
        .command('tuner')
        .summary("write or check the table of NCCL's example tuner plugin")
        .description(
          'Writes the CSV that the example tuner plugin of NCCL reads, with the algorithm and protocol that are predicted to be the fastest for each size; --check reads one instead and says what it does.',
        )
        .argument('<cluster>', CLUSTER_HELP),
    ),
  )
    .option('--check <file>', 'check a table against the cluster; - for the standard input')
    .option(
      '--gain <percent>',
      'do otherwise than NCCL only where a call becomes shorter by so much (default: 10, more where predictions are uncertain)',
    )
    .option('-o, --output <file>', 'write the table there and show what it gains')
    .option('--json', 'print rows and predicted times as JSON')
    .addHelpText(
      'after',
      `${examples(
        ['a table for two machines, and what it gains', 'tccl tuner dgx-h100 --nodes 2 -o nccl_tuner.conf'],
        ['a job with it', 'NCCL_TUNER_PLUGIN=example NCCL_TUNER_CONFIG_FILE=nccl_tuner.conf python train.py'],
        ['what a table that exists does', 'tccl tuner cluster.yaml --check nccl_tuner.conf'],
      )}\nThe plugin is plugins/tuner/example of NCCL (ext-tuner/example before 2.29). A table is for communicators of this many nodes and ranks; join several tables for a job that has several sizes of communicators, because calls without a row run on one channel.\nExit code: 0 fine, 1 where a checked table has errors or warnings, 2 wrong use.`,
    )
    .action(async (cluster: string, options: TunerOptions) => {
      const { showTuner } = await import('../tuner/show.js');
      process.exitCode = (await showTuner(cluster, options)) ? 0 : 1;
    });
}
