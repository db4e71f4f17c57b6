import type { Command } from 'commander';
import { CLUSTER_HELP, withClusterOptions, withSimulationOptions } from '../cluster-options.js';
import { collect, examples } from '../output.js';
import type { ReplayOptions } from '../replay/show.js';

/** `tccl replay`: a whole job, from traces of its ranks. */
export function register(program: Command): void {
  withSimulationOptions(
    withClusterOptions(
      program
        .command('replay')
        .description('replay the traces of a job on a cluster: step time, what is exposed, which ranks others wait for')
        .argument('<cluster>', CLUSTER_HELP)
        .argument(
          '<trace...>',
          'profiles of PyTorch, its flight recordings, records of NCCL Inspector, databases of Nsight Systems, or traces of Chakra; a folder or archive of them; - for the standard input',
        ),
    ),
  )
    .option('--calls', 'print every call, not one row for calls that are alike')
    .option('--what-if <cluster>', 'replay the job on this cluster, too')
    .option('--what-if-nccl <version>', 'the same with this version of NCCL')
    .option('--what-if-env <name=value>', 'the same with a variable of NCCL; can be repeated', collect)
    .option(
      '--perfetto <file>',
      'write measured and replayed calls of all ranks there, in the JSON format that ui.perfetto.dev opens',
    )
    .option('--json', 'print all of it as JSON')
    .addHelpText(
      'after',
      `${examples(
        ['profiles of all ranks', 'tccl replay dgx-h100:2 traces/rank*.json.gz'],
        ['a folder of flight recordings', 'tccl replay dgx-h100:2 /tmp/nccl_trace'],
        ['call by call', 'tccl replay dgx-h100 rank*.json --calls'],
        ['with a variable of the job', 'tccl replay dgx-h100:2 traces --env NCCL_ALGO=Ring'],
        ['on other machines', 'tccl replay dgx-h100:2 traces --what-if dgx-b200:2'],
        ['with another version or setting', 'tccl replay dgx-h100:2 traces --what-if-nccl 2.30.7 --what-if-env NCCL_ALGO=Ring'],
        ['as a timeline', 'tccl replay dgx-h100:2 traces --perfetto job.json'],
      )}\nA rank's time between calls stays as it was measured; calls take the time that tccl predicts, and begin when their last rank comes. Ranks are joined by sequence numbers, clocks are aligned by collectives, which end on all ranks together. The version of NCCL is taken from the traces where they have it, unless --nccl sets it.`,
    )
    .action(async (cluster: string, traces: readonly string[], options: ReplayOptions) => {
      const { showReplay } = await import('../replay/show.js');
      await showReplay(cluster, traces, options);
    });
}
