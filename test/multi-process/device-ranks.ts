import { spawnSync } from 'node:child_process';
import { repository, resultsOf } from './dawn.js';

/** Starts a program of ranks, each of which prints a line of JSON. Returns their values in the order of ranks. */
export function started(words: readonly string[], env: NodeJS.ProcessEnv = process.env): readonly unknown[] {
  return resultsOf(spawnSync(process.execPath, words, { cwd: repository, env, encoding: 'utf8' }));
}

/** Words that start a rank's command as ranks. */
export function ranksOf(nRanks: number, command: readonly string[]): readonly string[] {
  return ['dist/cli/main.js', 'run', '-n', String(nRanks), '--', ...command];
}

export const forEach = <T>(nRanks: number, of: (rank: number) => T): readonly T[] =>
  Array.from({ length: nRanks }, (_, rank) => of(rank));
