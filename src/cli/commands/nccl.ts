import type { Command } from 'commander';
import { counted } from '../../counted.js';
import { type Colors, colorsFor, examples, print, printJson } from '../output.js';

interface RulesOptions {
  readonly from?: string;
  readonly to?: string;
  readonly json?: boolean;
  readonly markdown?: boolean;
}

/** `tccl nccl`: the covered versions, and the changes between them. */
export function register(program: Command): void {
  const nccl = program
    .command('nccl')
    .description('versions of NCCL: which are covered, and which decisions changed between them');
  nccl
    .command('rules')
    .description('list the decisions that changed between versions of NCCL')
    .option('--from <version>', 'only what changed after this version')
    .option('--to <version>', 'up to this version (default: 2.30.7)')
    .option('--json', 'print them as JSON')
    .option('--markdown', 'print docs/reference/nccl-versions.md')
    .addHelpText(
      'after',
      examples(['all of them', 'tccl nccl rules'], ['what an upgrade changes', 'tccl nccl rules --from 2.26.2 --to 2.28.9']),
    )
    .action(async (options: RulesOptions) => {
      await showRules(options);
    });
  nccl
    .command('versions')
    .description('list the versions that are covered, and which of them are compared with answers of NCCL itself')
    .option('--json', 'print them as JSON')
    .action(async ({ json }: { readonly json?: boolean }) => {
      const { coveredVersions, isCompared } = await import('../../planner/versions/version.js');
      const { uncomparedRules } = await import('../../planner/versions/certainty.js');
      const { torchReleases } = await import('../../planner/versions/torch.js');
      const rows = coveredVersions.map((version) => ({
        version,
        compared: isCompared(version),
        uncomparedRules: uncomparedRules(version),
        torch: torchReleases.flatMap(({ release, nccl: usual, others = {} }) => [
          ...(usual === version ? [release] : []),
          ...Object.keys(others)
            .filter((build) => others[build] === version)
            .map((build) => `${release}+${build}`),
        ]),
      }));
      if (json === true) {
        printJson(rows);
        return;
      }
      for (const { version, compared, uncomparedRules: uncompared, torch } of rows) {
        const certainty = compared
          ? 'compared with recorded answers'
          : `read from source${uncompared.length === 0 ? '' : `, ${counted(uncompared.length, 'rule')} not compared`}`;
        print(`${version.padEnd(8)} ${certainty.padEnd(42)}${torch.length === 0 ? '' : `PyTorch ${torch.join(', ')}`}`.trimEnd());
      }
    });
}

async function showRules({ from, to, json, markdown }: RulesOptions): Promise<void> {
  const { allRules, rulesBetween, versionsPage } = await import('../../planner/versions/describe.js');
  const { certaintyOf } = await import('../../planner/versions/certainty.js');
  if (markdown === true) {
    print(...versionsPage().trimEnd().split('\n'));
    return;
  }
  const { coveredVersions, defaultVersion } = await import('../../planner/versions/version.js');
  const { namedVersion } = await import('../version-options.js');
  if (from === undefined && to === undefined) {
    if (json === true) {
      printJson(
        allRules.map(({ name, group, rule }) => ({
          name,
          group,
          ...rule,
          steps: rule.steps.map((step) => ({ ...step, certainty: certaintyOf(rule, step) })),
        })),
      );
      return;
    }
    const paint = colorsFor(process.stdout);
    for (const { name, rule } of allRules) {
      print(`${paint.bold(name)}  ${rule.about}`);
      for (const step of rule.steps)
        print(`  ${step.from.padEnd(8)} ${statedText({ ...step, certainty: certaintyOf(rule, step) }, paint)}`);
    }
    return;
  }
  const [older, newer] = [namedVersion(from ?? coveredVersions.at(-1) ?? ''), namedVersion(to ?? defaultVersion)];
  const changed = rulesBetween(older, newer);
  if (json === true) {
    printJson({
      from: older,
      to: newer,
      rules: changed.map(({ name, group, rule, before, after, setBy }) => ({
        name,
        group,
        about: rule.about,
        source: rule.source,
        undo: setBy,
        before,
        after,
      })),
    });
    return;
  }
  print(...changedLines(changed, older, newer));
}

/** A behaviour as text, and where it is known from. */
interface Stated {
  readonly means: string;
  readonly certainty: string;
}

function statedText({ means, certainty }: Stated, paint: Colors): string {
  return certainty === 'compared' ? means : `${means} ${paint.dim(`(${certainty})`)}`;
}

/** Rules that changed, as lines of text; `tccl upgrade` prints them, too. */
export function changedLines(
  changed: readonly {
    readonly name: string;
    readonly rule: { readonly about: string; readonly source: string };
    readonly setBy: string | undefined;
    readonly before: Stated;
    readonly after: Stated;
  }[],
  from: string,
  to: string,
): string[] {
  const paint = colorsFor(process.stdout);
  if (changed.length === 0) return [`Between NCCL ${from} and ${to} no rule changes.`];
  return [
    `${changed.length} ${changed.length === 1 ? 'rule changes' : 'rules change'} from NCCL ${from} to ${to}:`,
    ...changed.flatMap(({ name, rule, before, after, setBy }) => [
      `${paint.bold(name)}  ${rule.about}`,
      `  ${from.padEnd(8)} ${statedText(before, paint)}`,
      `  ${to.padEnd(8)} ${statedText(after, paint)}`,
      ...(setBy === undefined ? [] : [`  set by    ${setBy}`]),
    ]),
  ];
}
