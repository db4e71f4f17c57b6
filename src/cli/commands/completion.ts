import { Argument, type Command } from 'commander';
import { examples, printData } from '../output.js';

export function register(program: Command): void {
  program
    .command('completion')
    .summary('print a completion script for your shell')
    .description('Prints a script that teaches your shell to complete the commands, options and values of tccl.')
    .addArgument(new Argument('<shell>', 'your shell').choices(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      examples(
        ['for bash, in ~/.bashrc', 'source <(tccl completion bash)'],
        ['for zsh, in ~/.zshrc after compinit', 'source <(tccl completion zsh)'],
        ['for fish', 'tccl completion fish > ~/.config/fish/completions/tccl.fish'],
      ),
    )
    .action(async (shell: 'bash' | 'zsh' | 'fish') => {
      const { shells } = await import('../completion-script.js');
      printData(shells[shell](program));
    });
}
