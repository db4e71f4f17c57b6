import type { Command } from 'commander';
import { CLUSTER_HELP, withClusterOptions } from '../cluster-options.js';
import type { GraphOptions } from '../graph/show.js';
import { examples } from '../output.js';

/** `tccl graph`: the channels of NCCL. */
export function register(program: Command): void {
  withClusterOptions(
    program
      .command('graph')
      .description('search the rings and trees that NCCL would use on a machine, and say why')
      .argument('<cluster>', CLUSTER_HELP),
  )
    .option('--ranks <list>', 'ranks whose trees are shown, as 0-7,12, or all; those of the first machine if not given')
    .option('--whole', 'whole lines of rings and trees, which NCCL cuts when they are long')
    .option('--follow-nccl', 'take variables that contradict each other as NCCL takes them')
    .option('--why', 'explain how each graph was found')
    .option('--steps [lines]', 'list the search step by step: so many lines for each graph (20), or all')
    .option('--graph-xml', 'print the XML that NCCL_GRAPH_DUMP_FILE would hold')
    .option('--json', 'print graphs and the plan for all ranks as JSON')
    .addHelpText(
      'after',
      `${examples(
        ['rings and trees of a machine on its own', 'tccl graph dgx-a100'],
        ['of four that work together', 'tccl graph topo.xml --nodes 4'],
        ['rings through all ranks in full, and the trees of rank 9', 'tccl graph dgx-h100 --nodes 4 --whole --ranks 9'],
        ['why there are not more channels', 'tccl graph topo.xml --nodes 2 --why'],
        ['the search one step at a time, with what links have left', 'tccl graph dgx-a100 --nodes 2 --steps 30'],
        ['a file for NCCL_GRAPH_FILE', 'tccl graph topo.xml --nodes 2 --graph-xml > graph.xml'],
        ['with variables of NCCL', 'NCCL_CROSS_NIC=0 tccl graph dgx-h100 --nodes 2'],
      )}\nGraphs come in NCCL's words. Its variables are read from the environment, NCCL_GRAPH_FILE and NCCL_GRAPH_DUMP_FILE too.`,
    )
    .action(async (cluster: string, options: GraphOptions) => {
      const { showGraphs } = await import('../graph/show.js');
      await showGraphs(cluster, options);
    });
}
