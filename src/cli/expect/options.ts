import type { Results } from '../../planner/expect/measured.js';
import { isPlanned } from '../../planner/parameters.js';
import { coveredVersions, nearestVersions } from '../../planner/versions/version.js';
import type { ClusterOptions } from '../cluster-options.js';

/** Options of `tccl expect`, as commander gives them. */
export interface ExpectOptions extends ClusterOptions {
  readonly collective?: string;
  readonly seconds: string;
  readonly json?: boolean;
  /** Thresholds, or results against them. */
  readonly gate?: boolean;
  /** Health check to write thresholds for. */
  readonly for?: string;
  /** Sizes of thresholds: `1G,16G`. */
  readonly sizes?: string;
}

/** The version of NCCL and the variables of the run; options override them. */
export function clusterOptionsOf(
  results: readonly Results[],
  options: ExpectOptions,
): { readonly clusterOptions: ClusterOptions; readonly notes: readonly string[] } {
  const notes: string[] = [];
  const variables = Object.entries(results[0]?.variables ?? {}).filter(([variable]) => isPlanned(variable));
  const env = [...variables.map(([variable, value]) => `${variable}=${value}`), ...(options.env ?? [])];
  const measured = results[0]?.run.nccl;
  let version: string | undefined;
  if (options.nccl === undefined && options.torch === undefined && measured !== undefined) {
    const { older, newer } = nearestVersions(measured);
    version = coveredVersions.includes(measured) ? measured : (older ?? newer);
    if (version !== undefined && version !== measured)
      notes.push(`the results are of NCCL ${measured}, which is not covered: expected is what ${version} does`);
  }
  return {
    clusterOptions: { ...options, ...(env.length === 0 ? {} : { env }), ...(version === undefined ? {} : { nccl: version }) },
    notes,
  };
}
