import type { Command } from 'commander';
import { InvalidArgumentError, InvalidUsageError } from '../errors.js';
import { counted } from '../counted.js';
import type { Parameters } from '../planner/parameters.js';
import { isRubin } from '../planner/topology/bandwidths.js';
import { uncomparedRules } from '../planner/versions/certainty.js';
import { rulesOf } from '../planner/versions/rules.js';
import { ncclInTorch } from '../planner/versions/torch.js';
import { coveredVersions, defaultVersion, isCompared, ncclVersion, notCovered } from '../planner/versions/version.js';

/** The version of NCCL that a command plans for. */
export interface VersionOptions {
  /** `--nccl`: the version of NCCL that is planned for. */
  readonly nccl?: string;
  /** `--torch`: the release of PyTorch whose NCCL is planned for. */
  readonly torch?: string;
}

/** Help text of `--nccl`. */
export const NCCL_HELP = 'version of NCCL to plan for, as 2.26.2 or torch==2.7 (default: 2.30.7; tccl nccl versions)';
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
    throw new InvalidUsageError('UNSUPPORTED', '--nccl and --torch both select the version of NCCL: give one of them');
  if (torch !== undefined) return ncclOfTorch(torch);
  return nccl === undefined ? defaultVersion : namedVersion(nccl);
}

/**
 * A version from a user's text: `2.26.2`, or `torch==2.7` for the NCCL of a release of PyTorch.
 *
 * @throws InvalidArgumentError for an unknown one
 */
export function namedVersion(text: string): string {
  const [, torch] = /^\s*(?:py)?torch(?:==|[ =:-])?(\d.{0,40})$/i.exec(text) ?? [];
  return torch === undefined ? ncclVersion(text) : ncclOfTorch(torch);
}

function ncclOfTorch(torch: string): string {
  const version = ncclInTorch(torch);
  if (coveredVersions.includes(version)) return version;
  throw new InvalidArgumentError('UNKNOWN_NAME', `PyTorch ${torch} brings NCCL ${version}, which ${notCovered(version)}`);
}

/** The note on a machine with GPUs that are newer than the version of NCCL. */
export function newGpuNotes(title: string, gpus: readonly { readonly sm: number }[], parameters: Parameters): string[] {
  const sm = Math.max(...gpus.map((gpu) => gpu.sm));
  const { newestGpu, rubinNvLinkGBps, pipelineModel } = rulesOf(parameters);
  const version = `NCCL ${parameters.ncclVersion}`;
  if (gpus.some((gpu) => isRubin(gpu.sm)))
    return [
      rubinNvLinkGBps === 'as blackwell'
        ? `${title}: ${version} does not know Rubin and plans for it as for Blackwell; 2.32.3 is the first that does`
        : pipelineModel
          ? `${title}: times of Rubin are those of ${version}'s model of it, with Blackwell's limits of LL and LL128: Rubin's own are not public`
          : `${title}: times of Rubin are those of Blackwell's model; NCCL 2.32.6 is the first with a model of its own`,
    ];
  if (sm <= newestGpu) return [];
  const capability = (value: number) => (value / 10).toFixed(1);
  return [
    `${title}: NCCL ${parameters.ncclVersion} is older than GPUs of compute capability ${capability(sm)}; it plans for them as for ${capability(newestGpu)} and has no kernels made for them`,
  ];
}

/** The note on a version whose plans are not compared with recorded answers. */
export function versionNotes(version: string, withWindows = false): string[] {
  const { length } = uncomparedRules(version, withWindows);
  if (isCompared(version) && length === 0) return [];
  const certainty =
    length === 0
      ? 'its decisions are read from its source; each is compared with recorded answers of a release that has it'
      : `${counted(length, 'rule')} ${length === 1 ? 'is' : 'are'} read from source, not compared with recorded answers (tccl nccl versions)`;
  return [`NCCL ${version}: ${certainty}`];
}
