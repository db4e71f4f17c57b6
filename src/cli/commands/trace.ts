import type { Command } from 'commander';
import { CLUSTER_HELP, withClusterOptions, withSimulationOptions } from '../cluster-options.js';
import { examples } from '../output.js';
import type { TraceOptions } from '../trace/show.js';

/** `tccl trace`: one call, simulated, as a timeline or a table of moves. */
export function register(program: Command): void {
  withSimulationOptions(
    withClusterOptions(
      program
        .command('trace')
        .description('simulate one call: where its time goes, a timeline for Perfetto, the moves of each rank as a table')
        .argument('<cluster...>', CLUSTER_HELP),
    ),
  )
    .option('--collective <name>', 'what is called, as nccl-tests names it: all_reduce, alltoall, sendrecv …')
    .option(
      '--program <file>',
      "an algorithm of one's own, in MSCCL's XML or MSCCL++'s JSON: is verified, and simulated beside NCCL's choice",
    )
    .requiredOption('--size <bytes>', 'its size, as 64M, as nccl-tests counts it')
    .option('-o, --out <file>', 'write the timeline there, in the JSON format that ui.perfetto.dev opens')
    .option('--goal <file>', 'write the messages there in GOAL, which LogGOPSim and ATLAHS simulate')
    .option('--chakra <prefix>', 'write the messages there as Chakra traces, PREFIX.RANK.et, which ASTRA-sim simulates')
    .option('--schedule', 'print the moves as a table')
    .option('--ranks <list>', 'only these ranks in timeline and table, as 0-7,12')
    .option('--root <rank>', 'of broadcast, reduce, gather and scatter', '0')
    .addHelpText(
      'after',
      `${examples(
        ['where the time goes', 'tccl trace dgx-h100:2 --collective all_reduce --size 64M'],
        ['a timeline to look at', 'tccl trace dgx-h100:2 --collective all_reduce --size 64M -o trace.json'],
        ['an input for LogGOPSim or ATLAHS', 'tccl trace dgx-h100:2 --collective all_reduce --size 64M --goal call.goal'],
        ['an input for ASTRA-sim', 'tccl trace dgx-h100 --collective all_reduce --size 1M --chakra ring'],
        ['what rank 3 does', 'tccl trace dgx-h100 --collective all_gather --size 1M --schedule --ranks 3'],
        ["an algorithm of one's own against NCCL's", 'tccl trace dgx-a100 --program allreduce.xml --size 1M'],
        ['the same with another algorithm', 'tccl trace dgx-h100 --collective all_reduce --size 64M --env NCCL_ALGO=Ring'],
      )}\nExit code: 0, 2 for wrong use.`,
    )
    .action(async (cluster: string[], options: TraceOptions) => {
      const { showTrace } = await import('../trace/show.js');
      await showTrace(cluster, options);
    });
}
