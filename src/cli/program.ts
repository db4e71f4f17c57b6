import { Command, CommanderError, Help } from 'commander';
import { version } from '../version.js';
import { reportFailure } from './exit-code.js';
import { TcclError } from '../errors.js';
import { complain, examples, printJson } from './output.js';

/** A command is a file in commands/ that registers itself; its action imports its code. */
interface CommandModule {
  register(program: Command): void;
}

/**
 * The commands by name, in the order of `tccl --help`. Only the requested one is loaded; none for the version; all of them for
 * the help, for a misspelt name, and for the completion script.
 */
const commands: Readonly<Record<string, () => Promise<CommandModule>>> = {
  run: () => import('./commands/run.js'),
  aggregator: () => import('./commands/aggregator.js'),
  perf: () => import('./commands/perf.js'),
  tune: () => import('./commands/tune.js'),
  topo: () => import('./commands/topo.js'),
  plan: () => import('./commands/plan.js'),
  graph: () => import('./commands/graph.js'),
  explain: () => import('./commands/explain.js'),
  diff: () => import('./commands/diff.js'),
  trace: () => import('./commands/trace.js'),
  replay: () => import('./commands/replay.js'),
  expect: () => import('./commands/expect.js'),
  tuner: () => import('./commands/tuner.js'),
  upgrade: () => import('./commands/upgrade.js'),
  nccl: () => import('./commands/nccl.js'),
  log: () => import('./commands/log.js'),
  diagnose: () => import('./commands/diagnose.js'),
  watch: () => import('./commands/watch.js'),
  inspect: () => import('./commands/inspect.js'),
  studio: () => import('./commands/studio.js'),
  'run-host': () => import('./commands/run-host.js'),
  completion: () => import('./commands/completion.js'),
};

/**
 * Runs the `tccl` command and returns its exit code: 0 success, 1 failure, 2 wrong usage; `tccl run` has those of its ranks.
 *
 * @param argv as `process.argv`: the command's arguments begin at 2
 */
export async function runCommand(argv: readonly string[]): Promise<number> {
  const program = new Command('tccl')
    .description('Collective communication for TypeScript, and a planner that knows what NCCL will do')
    .version(version, '-V, --version')
    .enablePositionalOptions()
    .addHelpText(
      'after',
      examples(
        ['four ranks of a Node program', 'tccl run -n 4 node job.js'],
        ['what an all-reduce takes between two ranks', 'tccl perf all_reduce --ranks 2 -b 8 -e 16M -f 8'],
        ['what NCCL would do on two machines, and why', 'tccl plan dgx-h100 --nodes 2; tccl explain dgx-h100 --nodes 2'],
        ['what the log of a job says', 'tccl log job.log'],
      ),
    )
    .configureHelp({ formatItem: helpItem, minWidthToWrap: 20 })
    .configureOutput({
      outputError: (message) => complain('tccl', `${oneLine(message)}${exampleAfter(message, program, argv.slice(2))}`),
    })
    .exitOverride();

  for (const load of commandsFor(argv[2] ?? '')) (await load()).register(program);

  try {
    await program.parseAsync(argv);
    return Number(process.exitCode ?? 0);
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode !== 0 && wantsJson(argv)) printFailure(error.message.replace(/^error: /, ''), 'ARGUMENT');
      return error.exitCode === 0 ? 0 : 2;
    }
    if (error instanceof TcclError && wantsJson(argv)) printFailure(error.message, error.code, error.file, error.line);
    return reportFailure(error);
  }
}

/** Narrowest room for descriptions beside the names that they are of; in less, they are below these. */
const BESIDE_COLUMNS = 30;
const BELOW_INDENT = '      ';

/** An option, argument or command with its description, in help. */
function helpItem(term: string, termColumns: number, description: string, help: Help): string {
  const columns = help.helpWidth ?? 80;
  if (description === '' || columns - termColumns - 4 >= BESIDE_COLUMNS)
    return Help.prototype.formatItem.call(help, term, termColumns, description, help);
  const text = help.boxWrap(description, columns - BELOW_INDENT.length);
  return `  ${term}\n${text.replaceAll(/^/gm, BELOW_INDENT)}`;
}

/** True where the output is JSON; programs that `tccl run` starts have options of their own. */
function wantsJson(argv: readonly string[]): boolean {
  return argv.includes('--json') && argv[2] !== 'run' && argv[2] !== 'run-host';
}

/** Prints an error as JSON, because the reader of `--json` parses stdout also after a failure. */
function printFailure(message: string, code: string, file?: string, line?: number): void {
  printJson({ error: { code, message, ...(file === undefined ? {} : { file }), ...(line === undefined ? {} : { line }) } });
}

/** The commands that a first word needs. */
function commandsFor(word: string): (() => Promise<CommandModule>)[] {
  if (word === '--version' || word === '-V') return [];
  const asked = word === 'completion' ? undefined : commands[word];
  return asked === undefined ? Object.values(commands) : [asked];
}

/** The first example in the help of the command whose argument or option is missing. */
function exampleAfter(message: string, program: Command, words: readonly string[]): string {
  if (!/missing required argument|required option/.test(message)) return '';
  let command = program;
  for (const word of words) command = command.commands.find((each) => each.name() === word) ?? command;
  let help = '';
  command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
  const [, example] = /\nExamples:\n *#.*\n *(tccl .*)\n/.exec(help) ?? [];
  return example === undefined ? '' : `, as in: ${example}`;
}

/** Commander's `error: unknown command 'rum'`, and its `(Did you mean run?)` on a second line, in one line of ours. */
function oneLine(message: string): string {
  return message
    .trimEnd()
    .replace(/^error: /, '')
    .replaceAll('\n', ' ');
}
