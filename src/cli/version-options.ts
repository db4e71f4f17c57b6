import type { Command } from 'commander';
import { InvalidUsageError } from '../errors.js';
import { ncclInTorch } from '../planner/versions/torch.js';
import { defaultVersion, isCompared, ncclVersion } from '../planner/versions/version.js';

/** The version of NCCL that a command plans for. */
export interface VersionOptions {
  /** `--nccl`: the version of NCCL that is planned for. */
  readonly nccl?: string;
  /** `--torch`: the release of PyTorch whose NCCL is planned for. */
  readonly torch?: string;
}

/** Help text of `--nccl`. */
export const NCCL_HELP = 'version of NCCL to plan for, as 2.26.2 (default: 2.30.7; tccl nccl versions)';
/** Help text of `--torch`. */
export const TORCH_HELP = 'the NCCL that a release of PyTorch brings, as 2.7';

/** Gives a command {@link VersionOptions}. */
export function withVersionOptions(command: Command): Command {
  return command.option('--nccl <version>', NCCL_HELP).option('--torch <release>', TORCH_HELP);
}

/**
 * The version of NCCL that `--nccl` or `--torch` asks for.
 *
 * @throws InvalidArgumentError for an unknown one, InvalidUsageError for both
 */
export function versionOf({ nccl, torch }: VersionOptions): string {
  if (nccl !== undefined && torch !== undefined)
    throw new InvalidUsageError('UNSUPPORTED', '--nccl and --torch both say which NCCL: give one of them');
  if (torch !== undefined) return ncclVersion(ncclInTorch(torch));
  return nccl === undefined ? defaultVersion : ncclVersion(nccl);
}

/** The note on a version whose plans are not compared with recorded answers. */
export function versionNotes(version: string): string[] {
  if (isCompared(version)) return [];
  return [`NCCL ${version}: its decisions are read from its source, not compared with recorded answers`];
}
