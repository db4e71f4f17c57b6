import type { Command } from 'commander';

export function register(program: Command): void {
  program
    .command('run-host', { hidden: true })
    .description('Starts the ranks of this host for a `tccl run --hosts` on another one, which talks to it through ssh.')
    .action(async () => {
      const { runAgent } = await import('../../runtime/launch/hosts/agent.js');
      process.exit(await runAgent(process.stdin, process.stdout));
    });
}
