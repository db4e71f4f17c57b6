import {
  type EstimateParameters,
  type EstimateTerms,
  estimateTimeUs,
  measuredParameters,
  type ReachName,
} from '../../src/planner/plan/estimate.js';

/** A published result as the fit sees it: its calls, and the time that each took. */
export type FitResult = readonly { readonly terms: EstimateTerms; readonly measuredUs: number }[];

/**
 * The parameters of the estimate from published results. Each reach is what the largest call over such links needs; launch
 * and rounds make the least sum of squared errors (of logarithms), all results weighing the same.
 *
 * @param leftOut a result whose curve launch and rounds are not to follow; its largest call still gives its reach
 */
export function fitParameters(results: readonly FitResult[], leftOut?: FitResult): EstimateParameters {
  const curves = results.filter((result) => result !== leftOut);
  const cost = (launchUs: number, rounds: number) => {
    const parameters = withReach(results, launchUs, rounds);
    return curves.reduce(
      (sum, calls) =>
        sum +
        calls.reduce((part, { terms, measuredUs }) => part + Math.log(estimateTimeUs(terms, parameters) / measuredUs) ** 2, 0) /
          calls.length,
      0,
    );
  };
  let [launchUs, rounds] = [10, 1];
  let least = cost(launchUs, rounds);
  for (let step = 0.3; step > 1e-4;) {
    const neighbours = [
      [1 + step, 1],
      [1 / (1 + step), 1],
      [1, 1 + step],
      [1, 1 / (1 + step)],
    ] as const;
    const better = neighbours.map(([a, b]) => [launchUs * a, rounds * b] as const).find(([a, b]) => cost(a, b) < least);
    if (better === undefined) {
      step *= 0.6;
      continue;
    }
    [launchUs, rounds] = better;
    least = cost(launchUs, rounds);
  }
  return withReach(results, launchUs, rounds);
}

/** Each reach such that the largest call over these links takes as long as it was measured to. */
export function withReach(results: readonly FitResult[], launchUs: number, rounds: number): EstimateParameters {
  const reach: Record<ReachName, number> = { ...measuredParameters.reach };
  const largest = new Map<ReachName, number>();
  for (const { terms, measuredUs } of results.flat()) {
    const { reach: name, bytes, latencyUs, believedGBps, roundBytes } = terms;
    if (name === undefined || bytes < (largest.get(name) ?? 0)) continue;
    largest.set(name, bytes);
    reach[name] = (bytes + rounds * roundBytes) / (measuredUs - launchUs - latencyUs) / believedGBps / 1000;
  }
  return { launchUs, rounds, reach };
}
