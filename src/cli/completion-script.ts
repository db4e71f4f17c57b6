import type { Command, Option } from 'commander';

/**
 * Completion scripts, generated from the tree of commands, so that pressing Tab starts no Node. They offer commands, options and
 * values of fixed sets; elsewhere the shell completes files.
 */
export const shells = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

/** A command with its subcommands, options and values. */
interface Node {
  /** Names from the program down to the command, `['tccl', 'topo', 'show']`. */
  readonly path: readonly string[];
  readonly summary: string;
  readonly options: readonly OptionNode[];
  readonly children: readonly Node[];
  /** Values of its first argument, where only some are allowed. */
  readonly choices: readonly string[];
  /** Its arguments are another program's command line. */
  readonly wrapsCommand: boolean;
}

interface OptionNode {
  /** `-n`, `--ranks`. */
  readonly flags: readonly string[];
  readonly description: string;
  readonly takesValue: boolean;
  readonly choices: readonly string[];
}

function readTree(command: Command, above: readonly string[] = []): Node {
  const path = [...above, command.name()];
  const help = command.createHelp();
  const [argument] = command.registeredArguments;
  return {
    path,
    summary: command.summary() || command.description(),
    options: help.visibleOptions(command).map(readOption),
    children: help
      .visibleCommands(command)
      .filter((child) => child.name() !== 'help')
      .map((child) => readTree(child, path)),
    choices: argument?.argChoices ?? [],
    wrapsCommand: argument?.name() === 'command' && argument.variadic,
  };
}

function readOption(option: Option): OptionNode {
  return {
    flags: [option.short, option.long].filter((flag) => flag !== undefined),
    description: option.description,
    takesValue: option.required || option.optional,
    choices: option.argChoices ?? [],
  };
}

/** The node and all below it, parents first. */
function flatten(node: Node): Node[] {
  return [node, ...node.children.flatMap(flatten)];
}

/** The flags that take the next word for their value, short ones first. */
function valueFlags(node: Node): string[] {
  return node.options
    .filter((option) => option.takesValue)
    .flatMap((option) => option.flags)
    .sort((a, b) => a.length - b.length);
}

/** A text as one word of a POSIX shell (and of fish, but for the backslash, which no text here has). */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function bashScript(program: Command): string {
  const tree = readTree(program);
  const nodes = flatten(tree);
  const name = tree.path.join();
  const key = (node: Node) => node.path.join(' ');
  const reply = (words: readonly string[]) => `COMPREPLY=($(compgen -W ${quote(words.join(' '))} -- "$current"))`;

  // Finds the command of the words, skipping options and their values, and the command line that it wraps.
  const steps = [
    ...nodes.slice(1).map((node) => `      ${quote(key(node))}) command=${quote(key(node))} ;;`),
    ...nodes.flatMap((node) => valueFlags(node).map((flag) => `      ${quote(`${key(node)} ${flag}`)}) ((i++)) ;;`)),
    ...nodes
      .filter((node) => node.wrapsCommand)
      .flatMap((node) => [`      ${quote(`${key(node)} -`)}*) ;;`, `      ${quote(`${key(node)} `)}*) wrapped=$i; break ;;`]),
  ];
  const values = nodes.flatMap((node) =>
    node.options
      .filter((option) => option.takesValue)
      .map((option) => {
        const patterns = option.flags.map((flag) => quote(`${key(node)} ${flag}`)).join('|');
        return `    ${patterns}) ${option.choices.length > 0 ? `${reply(option.choices)}; ` : ''}return ;;`;
      }),
  );
  const words = nodes.map((node) => {
    const operands = [...node.children.map((child) => child.path.at(-1) ?? ''), ...node.choices];
    const others = node.wrapsCommand ? 'COMPREPLY=($(compgen -c -- "$current"))' : operands.length > 0 ? reply(operands) : '';
    return `    ${quote(key(node))})
      case $current in
        -*) ${reply(node.options.flatMap((option) => option.flags))} ;;
        *) ${others} ;;
      esac ;;`;
  });
  return `# bash completion for ${name}:  source <(${name} completion bash)
_${name}() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} command=${quote(name)} wrapped i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command \${COMP_WORDS[i]}" in
${steps.join('\n')}
    esac
  done
  if [[ -n $wrapped ]]; then
    if declare -F _command_offset >/dev/null; then _command_offset "$wrapped"; fi
    return
  fi
  case "$command $previous" in
${values.join('\n')}
  esac
  case $command in
${words.join('\n')}
  esac
}
complete -o bashdefault -o default -F _${name} ${name}
`;
}

function zshScript(program: Command): string {
  const tree = readTree(program);
  const name = tree.path.join();
  const functionOf = (node: Node) => `_${node.path.join('_').replaceAll('-', '_')}`;
  /** In an option's specification brackets end the description, and a colon ends each part. */
  const plain = (text: string) => text.replace(/[[\]:\\]/g, (special) => `\\${special}`).replaceAll('\n', ' ');

  const functions = flatten(tree).map((node) => {
    const specs = node.options.flatMap((option) =>
      option.flags.map((flag) => {
        const others = option.flags.length > 1 ? `(${option.flags.join(' ')})` : '';
        const action = option.choices.length > 0 ? `(${option.choices.join(' ')})` : '_files';
        return quote(`${others}${flag}[${plain(option.description)}]${option.takesValue ? `:value:${action}` : ''}`);
      }),
    );
    const operands =
      node.children.length > 0
        ? [`'1: :->command'`, `'*:: :->rest'`]
        : [
            node.wrapsCommand
              ? `'*:: :_normal'`
              : node.choices.length > 0
                ? quote(`1: :(${node.choices.join(' ')})`)
                : `'*: :_files'`,
          ];
    const children = node.children.map((child) => `      ${quote(`${child.path.at(-1) ?? ''}:${plain(child.summary)}`)}`);
    const dispatch = node.children.map((child) => `      ${child.path.at(-1) ?? ''}) ${functionOf(child)} ;;`);
    return `${functionOf(node)}() {
  local context state state_descr line
  typeset -A opt_args
  _arguments -C -s -S${node.wrapsCommand ? " -A '-*'" : ''} \\
    ${[...specs, ...operands].join(' \\\n    ')}
${
  node.children.length === 0
    ? ''
    : `  case $state in
    command)
      local -a commands=(
${children.join('\n')}
      )
      _describe command commands ;;
    rest) case $line[1] in
${dispatch.join('\n')}
    esac ;;
  esac
`
}}
`;
  });
  return `#compdef ${name}
# zsh completion for ${name}:  source <(${name} completion zsh)
${functions.join('\n')}
if [[ $funcstack[1] = _${name} ]]; then _${name} "$@"; else compdef _${name} ${name}; fi
`;
}

function fishScript(program: Command): string {
  const tree = readTree(program);
  const [name] = tree.path;
  const lines = flatten(tree).flatMap((node) => {
    const below = node.path.slice(1);
    const here = below.map((word) => `__fish_seen_subcommand_from ${word}`).join('; and ');
    const children = node.children.map((child) => child.path.at(-1) ?? '');
    const noneYet = children.length > 0 ? `not __fish_seen_subcommand_from ${children.join(' ')}` : '';
    const condition = [here, noneYet].filter((part) => part !== '').join('; and ');
    const start = `complete -c ${name ?? ''}${condition === '' ? '' : ` -n ${quote(condition)}`}`;
    return [
      ...node.children.map((child) => `${start} -f -a ${child.path.at(-1) ?? ''} -d ${quote(child.summary)}`),
      ...(node.choices.length > 0 ? [`${start} -f -a ${quote(node.choices.join(' '))}`] : []),
      ...(node.wrapsCommand
        ? [`${start} -a '(__fish_complete_subcommand --fcs-skip=${node.path.length} ${valueFlags(node).join(' ')})'`]
        : []),
      ...node.options.map((option) => {
        const flags = option.flags.map((flag) =>
          flag.startsWith('--') ? `-l ${flag.slice(2)}` : flag.length === 2 ? `-s ${flag.slice(1)}` : `-o ${flag.slice(1)}`,
        );
        const value = option.choices.length > 0 ? ` -x -a ${quote(option.choices.join(' '))}` : option.takesValue ? ' -r' : '';
        return `${start} ${flags.join(' ')}${value} -d ${quote(option.description)}`;
      }),
    ];
  });
  return `# fish completion for ${name ?? ''}:  ${name ?? ''} completion fish | source\n${lines.join('\n')}\n`;
}
