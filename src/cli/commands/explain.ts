import type { Command } from 'commander';
import { CLUSTER_HELP, withClusterOptions, withSimulationOptions, withWindowsOption } from '../cluster-options.js';
import type { ExplainOptions } from '../explain/show.js';
import { examples } from '../output.js';

/** `tccl explain`: the reasons of NCCL's decisions. */
export function register(program: Command): void {
  withSimulationOptions(
    withWindowsOption(
      withClusterOptions(
        program
          .command('explain')
          .description('answer a question about what NCCL would do on a cluster, with numbers and causes')
          .argument('<cluster>', CLUSTER_HELP)
          .argument(
            '[question...]',
            'the question in free words; without one, what can be asked and the three most informative answers',
          ),
      ),
    ),
  )
    .option('--seconds <number>', 'time limit for trying changes and causes', '8')
    .option('--json', 'print the answer with its numbers as JSON')
    .addHelpText(
      'after',
      examples(
        ['what can be asked, and the three most informative answers', 'tccl explain dgx-h100 --nodes 2'],
        ['the bandwidth to expect', 'tccl explain dgx-h100 --nodes 2 what busbw should I expect'],
        ['a measured figure', 'tccl explain dgx-h100 --nodes 2 why is alltoall only 47 GB/s'],
        ['another cluster or setting', 'tccl explain dgx-h100 --nodes 2 what if one NIC is down'],
        ['why the plan has 16 channels', 'tccl explain dgx-h100 --nodes 2 why 16 channels'],
        ['what each algorithm would take', 'tccl explain dgx-a100 --nodes 4 why tree and not ring at 4M'],
        ['which NIC a GPU uses', 'tccl explain topo.xml --nodes 2 gpu 3 nic'],
        ['why something is missing', 'tccl explain dgx-a100 why no NVLS'],
        ['from which size on another algorithm is used', 'tccl explain dgx-h100 --nodes 2 flips'],
        ['which single change would help most', 'tccl explain topo.xml --nodes 2 what would help all_reduce 1G'],
      ),
    )
    .action(async (cluster: string, question: string[], options: ExplainOptions) => {
      const { showAnswer } = await import('../explain/show.js');
      await showAnswer(cluster, question.join(' '), options);
    });
}
