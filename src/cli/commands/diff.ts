import type { Command } from 'commander';
import type { DiffOptions } from '../diff/show.js';
import { WINDOWS_HELP } from '../cluster-options.js';
import { collect, examples } from '../output.js';

/** `tccl diff`: two plans. */
export function register(program: Command): void {
  program
    .command('diff')
    .description('compare two plans: which decisions differ, in order, and what that costs at each size')
    .argument('<a>', 'cluster as for tccl plan, or a plan that tccl graph --json or tccl plan --json wrote')
    .argument('[b]', 'the other one; the same as a if not given')
    .option('--nodes <count>', 'number of such machines that work together, in both (default: 1)')
    .option('--nodes-a <count>', 'the same in a only')
    .option('--nodes-b <count>', 'the same in b only')
    .option('--hardware <description>', 'what the machines have where a file does not say: a line, or @FILE')
    .option('--nccl <version>', 'version of NCCL to plan for in a, and in b where --nccl-b does not say another, as 2.26.2')
    .option('--nccl-b <version>', 'the version in b only')
    .option('--torch <release>', 'the NCCL that a release of PyTorch brings, in both')
    .option('--env <name=value>', 'set a variable of NCCL in both; can be repeated', collect)
    .option('--env-a <name=value>', 'the same in a only', collect)
    .option('--env-b <name=value>', 'the same in b only', collect)
    .option('--collnet', 'the network can reduce (SHARP) and is asked to')
    .option('--windows <buffers>', `${WINDOWS_HELP}, in both`)
    .option('--predict', 'simulate the calls on both: their times, with all-to-all and send/recv')
    .option('--all', 'all rows, also where hundreds differ')
    .option('--html <file>', 'write the comparison as a page into this file too')
    .option('--json', 'print the comparison as JSON')
    .option('--exit-code', 'exit with 1 where the plans differ')
    .addHelpText(
      'after',
      `${examples(
        ['what a variable changes', 'tccl diff dgx-h100 --nodes 2 --env-b NCCL_NVLS_ENABLE=0'],
        ['two machines', 'tccl diff dgx-a100 dgx-h100 --nodes 4'],
        ['a topology file before and after', 'tccl diff before.xml after.xml --nodes 2'],
        ['what calls will really take', 'tccl diff dgx-h100 --nodes 2 --env-b NCCL_PROTO=^LL128 --predict'],
        ['more nodes', 'tccl diff dgx-h100 --nodes-a 2 --nodes-b 16'],
        [
          'with a plan that was kept',
          'tccl graph topo.xml --nodes 2 --json > kept.json; tccl diff kept.json topo.xml --nodes-b 2',
        ],
      )}\nExit code: 0, also where the plans differ; with --exit-code 1 where they do.`,
    )
    .action(async (a: string, b: string | undefined, options: DiffOptions) => {
      const { showDiff } = await import('../diff/show.js');
      await showDiff(a, b ?? a, options);
    });
}
