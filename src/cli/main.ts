#!/usr/bin/env node
import { Command, CommanderError } from 'commander';
import pc from 'picocolors';
import { describeError, TcclError } from '../errors.js';
import { version } from '../version.js';
import { register as registerOracle } from './commands/oracle.js';

/**
 * The `tccl` command. Each subcommand is a file in commands/ that registers itself; what it needs it imports in its
 * action, so that starting one command never loads another.
 *
 * Exit codes: 0 fine, 1 failed, 2 wrong use.
 */
async function main(argv: readonly string[]): Promise<number> {
  const program = new Command('tccl')
    .description('Collective communication for TypeScript, and a planner that knows what NCCL will do')
    .version(version, '-V, --version')
    .showSuggestionAfterError()
    .exitOverride();
  registerOracle(program);

  try {
    await program.parseAsync(argv);
    return Number(process.exitCode ?? 0);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    process.stderr.write(`${pc.red('tccl:')} ${describeError(error)}\n`);
    if (!(error instanceof TcclError)) throw error;
    return error.ncclResult === 4 || error.ncclResult === 5 ? 2 : 1;
  }
}

process.exitCode = await main(process.argv);
