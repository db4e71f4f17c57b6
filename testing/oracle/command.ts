import { Command } from 'commander';
import { colorsFor, examples, print, printJson } from '../../src/cli/output.js';
import { InvalidArgumentError } from '../../src/errors.js';
import { didYouMean } from '../../src/suggest.js';
import { caseFolders, readCase } from './read-cases.js';
import { type CaseResult, type Outcome, runOracleCase, sectionNames } from './run-oracle.js';

interface OracleOptions {
  readonly sections?: string;
  readonly filter?: string;
  readonly json?: boolean;
}

/** `npm run oracle`: compares the planner with answers of the real NCCL. */
export function oracleCommand(): Command {
  return new Command('oracle')
    .description('compare the planner with recorded answers of NCCL')
    .argument(
      '<directory>',
      'folder of cases: each a folder with case.json, expected.json and XML files; or one folder of cases per version of NCCL',
    )
    .option('--sections <names>', 'compare only these sections (comma-separated)')
    .option('--filter <text>', 'only cases whose name contains this text')
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      `${examples(
        ['all cases', 'npm run oracle -- ../shared/oracle/cases'],
        ['other versions of NCCL, each by its own rules', 'npm run oracle -- ../shared/oracle-versions/cases'],
        ['two sections of some cases', 'npm run oracle -- ../shared/oracle/cases --sections system,paths --filter dgxh100'],
      )}\nExit code 0 when all compared sections are equal in all cases, else 1.`,
    )
    .action((directory: string, options: OracleOptions) => {
      process.exitCode = compareWithOracle(directory, options);
    });
}

function compareWithOracle(directory: string, options: OracleOptions): number {
  const asked = options.sections?.split(',').map((name) => name.trim());
  for (const name of asked ?? []) {
    if (!sectionNames.includes(name)) {
      throw new InvalidArgumentError(
        'UNKNOWN_NAME',
        `no section ${name}${didYouMean(name, sectionNames)} (there are ${sectionNames.join(', ')})`,
      );
    }
  }
  const names = sectionNames.filter((name) => asked?.includes(name) ?? true);

  const results: CaseResult[] = [];
  const start = performance.now();
  for (const folder of caseFolders(directory, options.filter)) results.push(runOracleCase(readCase(folder), names));
  const seconds = (performance.now() - start) / 1000;

  const failures = results.flatMap(({ name, outcomes }) =>
    [...outcomes].flatMap(([section, outcome]) =>
      outcome.kind === 'failed' ? [{ name, section, difference: outcome.difference }] : [],
    ),
  );
  const counts = names.map((name) => ({ section: name, ...count(results.map(({ outcomes }) => outcomes.get(name))) }));
  const versions = byVersion(results, names);
  if (options.json === true) {
    printJson({ cases: results.length, seconds, sections: counts, versions, failures }, 1);
  } else {
    printTable(results.length, counts, failures, seconds);
    printVersions(versions);
  }
  return failures.length > 0 ? 1 : 0;
}

interface Count {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

function count(outcomes: readonly (Outcome | undefined)[]): Count {
  const of = (kind: Outcome['kind']) => outcomes.filter((outcome) => outcome?.kind === kind).length;
  return { passed: of('passed'), failed: of('failed'), skipped: of('skipped') };
}

function printTable(
  cases: number,
  counts: readonly ({ readonly section: string } & Count)[],
  failures: readonly { readonly name: string; readonly section: string; readonly difference: string }[],
  seconds: number,
): void {
  const paint = colorsFor(process.stdout);
  for (const { name, section, difference } of failures) print(`${paint.red('differs')} ${name} ${section}: ${difference}`);
  if (failures.length > 0) print('');
  print(`${'section'.padEnd(12)}${'passed'.padStart(8)}${'failed'.padStart(8)}${'skipped'.padStart(9)}`);
  for (const { section, passed, failed, skipped } of counts) {
    const row = `${String(passed).padStart(8)}${String(failed).padStart(8)}${String(skipped).padStart(9)}`;
    print(section.padEnd(12) + (failed > 0 ? paint.red(row) : row));
  }
  print('', `${cases} cases in ${seconds.toFixed(1)} s`);
}

interface VersionCounts {
  readonly nccl: string;
  readonly cases: number;
  readonly sections: readonly ({ readonly section: string } & Count)[];
}

function byVersion(results: readonly CaseResult[], names: readonly string[]): VersionCounts[] {
  return [...new Set(results.map(({ nccl }) => nccl))].map((nccl) => {
    const own = results.filter((result) => result.nccl === nccl);
    return {
      nccl,
      cases: own.length,
      sections: names.map((section) => ({ section, ...count(own.map(({ outcomes }) => outcomes.get(section))) })),
    };
  });
}

/** Equal cases of those compared, by version and section. */
function printVersions(versions: readonly VersionCounts[]): void {
  const paint = colorsFor(process.stdout);
  print(
    '',
    `${'NCCL'.padEnd(8)}${'cases'.padStart(6)}${(versions[0]?.sections ?? []).map(({ section }) => section.padStart(12)).join('')}`,
  );
  for (const { nccl, cases, sections } of versions) {
    const cells = sections.map(({ passed, failed }) => {
      const text = `${passed}/${passed + failed}`.padStart(12);
      return failed > 0 ? paint.red(text) : text;
    });
    print(`${nccl.padEnd(8)}${String(cases).padStart(6)}${cells.join('')}`);
  }
}
