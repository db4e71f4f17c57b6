import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Command } from 'commander';
import { InputError, InvalidArgumentError, SystemError } from '../../errors.js';
import type { CaseResult, Outcome } from '../../planner/plan/oracle/run-oracle.js';
import type { OracleInput } from '../../planner/plan/oracle/oracle-case.js';
import { didYouMean } from '../../suggest.js';
import { colorsFor, examples, print, printJson } from '../output.js';

interface OracleOptions {
  readonly sections?: string;
  readonly filter?: string;
  readonly json?: boolean;
}

/** `tccl oracle`: compares the planner with answers of the real NCCL. */
export function register(program: Command): void {
  program
    .command('oracle')
    .description('compare the planner with what NCCL itself answered for many machines')
    .argument(
      '<directory>',
      'folder of cases: each a folder with case.json, expected.json and XML files; or one folder of cases for each version of NCCL',
    )
    .option('--sections <names>', 'compare these sections only, by comma')
    .option('--filter <text>', 'only cases whose name contains this')
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      `${examples(
        ['all cases', 'tccl oracle ../shared/oracle/cases'],
        ['other versions, each by its own rules', 'tccl oracle ../shared/oracle-versions/cases'],
        ['two parts of some', 'tccl oracle ../shared/oracle/cases --sections system,paths --filter dgxh100'],
      )}\nExit code 0 when all compared sections are equal in all cases, else 1.`,
    )
    .action(async (directory: string, options: OracleOptions) => {
      process.exitCode = await compareWithOracle(directory, options);
    });
}

async function compareWithOracle(directory: string, options: OracleOptions): Promise<number> {
  const { runOracleCase, sectionNames } = await import('../../planner/plan/oracle/run-oracle.js');
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
    if (versions.length > 1) printVersions(versions);
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

/** Folders with a case, in order of their names; of a folder with a folder for each version, those of all versions. */
function caseFolders(directory: string, filter = ''): string[] {
  let entries: string[];
  try {
    entries = readdirSync(directory).sort();
  } catch (error) {
    throw new SystemError(
      'FILE',
      `cannot read the folder ${directory}: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  }
  const isCase = (folder: string) => statSync(join(folder, 'case.json'), { throwIfNoEntry: false })?.isFile() === true;
  const isFolder = (folder: string) => statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true;
  const versions = entries
    .filter((name) => /^[0-9]+\.[0-9]+\.[0-9]+$/.test(name))
    .map((name) => join(directory, name))
    .filter(isFolder);
  const candidates =
    versions.length === 0
      ? entries.map((name) => join(directory, name))
      : versions.flatMap((version) =>
          readdirSync(version)
            .sort()
            .map((name) => join(version, name)),
        );
  const folders = candidates.filter((folder) => basename(folder).includes(filter)).filter(isCase);
  if (folders.length === 0) {
    const inside =
      statSync(join(directory, 'cases'), { throwIfNoEntry: false }) === undefined ? '' : `; try ${join(directory, 'cases')}`;
    const which = filter === '' ? 'no folder with a case.json' : `no folder with a case.json and ${filter} in its name`;
    throw new InvalidArgumentError('FILE', `${which} in ${directory}${inside}`);
  }
  return folders;
}

function readCase(folder: string): OracleInput {
  const names = readdirSync(folder);
  const name = folder.split('/').at(-1) ?? folder;
  return {
    name,
    case: readJson(join(folder, 'case.json')),
    expected: readJson(join(folder, 'expected.json')),
    files: new Map(names.filter((file) => file.endsWith('.xml')).map((file) => [file, readFileSync(join(folder, file), 'utf8')])),
  };
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new InputError('SYNTAX', error instanceof Error ? error.message : String(error), { file, cause: error });
  }
}
