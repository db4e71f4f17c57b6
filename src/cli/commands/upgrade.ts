import type { Command } from 'commander';
import { collect, examples, print } from '../output.js';
import { CLUSTER_HELP, WINDOWS_HELP } from '../cluster-options.js';

interface UpgradeOptions {
  readonly from: string;
  readonly to: string;
  readonly nodes?: string;
  readonly hardware?: string;
  readonly env?: readonly string[];
  readonly windows?: string;
  readonly html?: string;
  readonly json?: boolean;
  readonly all?: boolean;
  readonly predict?: boolean;
  readonly exitCode?: boolean;
}

/** `tccl upgrade`: changes of another version of NCCL on a cluster. */
export function register(program: Command): void {
  program
    .command('upgrade')
    .description('list what another version of NCCL changes on a cluster: decisions, times, and the rules behind')
    .argument('<cluster>', CLUSTER_HELP)
    .requiredOption('--from <version>', 'the version that runs now, as 2.26.2 or torch==2.7')
    .requiredOption('--to <version>', 'the version that is to run')
    .option('--nodes <count>', 'number of such machines that work together (default: 1)')
    .option('--hardware <description>', 'what the machines have where a file does not say: a line, or @FILE')
    .option('--env <name=value>', 'set a variable of NCCL in both; can be repeated', collect)
    .option('--windows <buffers>', `${WINDOWS_HELP}, in both`)
    .option('--predict', 'simulate all calls of both, not only all-to-all and send/recv')
    .option('--all', 'all rows, however many')
    .option('--html <file>', 'write it as a page into this file too')
    .option('--json', 'print differences, times and rules as JSON')
    .option('--exit-code', 'exit with 1 where the plans differ')
    .addHelpText(
      'after',
      examples(
        ['another NCCL', 'tccl upgrade dgx-h100 --nodes 2 --from 2.26.2 --to 2.27.5'],
        ['calls on symmetric windows', 'tccl upgrade dgx-b200 --from 2.30.7 --to 2.31.2 --windows symmetric'],
        ['the NCCL of another PyTorch', 'tccl upgrade dgx-h100 --nodes 2 --from torch==2.6 --to torch==2.9'],
      ),
    )
    .action(async (cluster: string, { from, to, ...rest }: UpgradeOptions) => {
      const { showDiff } = await import('../diff/show.js');
      const { namedVersion } = await import('../version-options.js');
      const { rulesBetween } = await import('../../planner/versions/describe.js');
      const { changedLines } = await import('./nccl.js');
      const [nccl, ncclB] = [namedVersion(from), namedVersion(to)];
      const rules = rulesBetween(nccl, ncclB);
      const { differs, effects = [] } = await showDiff(
        cluster,
        cluster,
        { ...rest, nccl, ncclB },
        {
          rules: rules.map(({ name, rule, before, after, setBy }) => ({
            name,
            about: rule.about,
            source: rule.source,
            undo: setBy,
            before,
            after,
          })),
        },
      );
      if (rest.json === true) return;
      if (rest.all === true) print('', ...changedLines(rules, nccl, ncclB));
      else {
        const deciding = effects.reduce((count, effect) => count + effect.rules.length, 0);
        print(...(differs ? [''] : []), `${howManyDecide(deciding, rules.length, `from NCCL ${nccl} to ${ncclB}`)}.`);
      }
    });
}

function howManyDecide(deciding: number, changed: number, way: string): string {
  if (changed === 0) return `No rule changes ${way}`;
  if (changed === 1)
    return `The one rule that changes ${way} decides ${deciding === 0 ? 'the same' : 'differently'} here (--all shows it)`;
  const howMany = deciding === 0 ? 'None' : String(deciding);
  return `${howMany} of the ${changed} rules that change ${way} ${deciding > 1 ? 'decide' : 'decides'} differently here (--all lists them)`;
}
