import { InputError } from '../../src/errors.js';
import { parametersFromEnvironment } from '../../src/planner/parameters.js';
import { machine } from '../../src/planner/topology/catalogue/machines.js';
import { busFactor } from '../../src/planner/tuning/choose.js';
import { type Generation, generationOf } from '../../src/planner/tuning/constants.js';
import { tune, type Tuning } from '../../src/planner/tuning/tune.js';
import { applyOverrides } from '../../src/planner/plan/overrides.js';
import { sizeTitles } from '../calibration/size-titles.js';
import { formatBytes, formatRate, formatWay } from '../../src/planner/plan/overview/format.js';
import { plan } from '../../src/planner/plan/plan.js';
import { sizeClassOf } from '../../src/planner/simulate/measured-calls.js';
import { COVERAGE_AFTER, COVERAGE_BEFORE, METHOD, MISSES, SIMULATED_AFTER, SIMULATED_BEFORE } from './accuracy-words.js';
import { BLIND } from './blind-tests.js';
import { type EstimateTerms, estimateTerms, estimateTimeUs, measuredParameters } from '../../src/planner/plan/estimate.js';
import { fitParameters, type FitResult } from './fit.js';
import { parsePublishedResults, type PublishedResult } from './published.js';

/** One size of a published result beside both predictions, GB/s of bus bandwidth. */
export interface AccuracyRow {
  readonly bytes: number;
  readonly terms: EstimateTerms;
  /** Bus bandwidth by algorithm bandwidth. */
  readonly busFactor: number;
  readonly measured: number;
  readonly believed: number;
  readonly estimated: number;
}

/** A published result with the predictions for each of its sizes. */
export interface ComparedResult extends PublishedResult {
  readonly generation: Generation;
  readonly rows: readonly AccuracyRow[];
}

/**
 * Predicts each published result anew.
 *
 * @throws InputError for a malformed list, or a result that NCCL cannot carry out
 */
export function compareResults(text: string): ComparedResult[] {
  const tunings = new Map<string, Tuning>();
  const tuningOf = (result: PublishedResult): Tuning => {
    const key = JSON.stringify([result.machine, result.nodes, result.overrides, result.environment]);
    let tuning = tunings.get(key);
    if (tuning === undefined) {
      const { parameters } = parametersFromEnvironment(result.environment);
      const root = applyOverrides(machine(result.machine), result.overrides);
      tuning = tune(plan({ hosts: [{ machine: root, count: result.nodes }] }, parameters), parameters);
      tunings.set(key, tuning);
    }
    return tuning;
  };
  return parsePublishedResults(text).map((result) => {
    const tuning = tuningOf(result);
    const options = { dataType: result.type };
    const rows = result.sizes.map(({ bytes, gbps }) => {
      const terms = estimateTerms(tuning, result.collective, bytes, options);
      if (terms === undefined)
        throw new InputError('CONTENT', `${result.name}: nothing can do this call; look at its environment`);
      const factor = busFactor(result.collective, tuning.input.nRanks);
      const estimated = (bytes / estimateTimeUs(terms, measuredParameters) / 1000) * factor;
      return { bytes, terms, busFactor: factor, measured: gbps, believed: terms.choice.busGBps, estimated };
    });
    return { ...result, generation: generationOf(tuning.input.minCompCap), rows };
  });
}

/**
 * docs/notes/accuracy.md.
 *
 * @param results predictions for docs/notes/published-results.yaml
 * @param simulated table of simulated times: simulatedTable()
 * @param coverage table of measurements inside their intervals: coverageTable()
 */
export function accuracyPage(results: readonly ComparedResult[], simulated: string, coverage: string): string {
  return [
    SIMULATED_BEFORE,
    simulated,
    SIMULATED_AFTER,
    COVERAGE_BEFORE,
    coverage,
    COVERAGE_AFTER,
    BLIND,
    METHOD,
    leaveOneOut(results),
    summary(results),
    MISSES,
    '## All results\n',
    ...results.map(resultSection),
  ].join('\n');
}

/** The results that the parameters come from, as `fitParameters` takes them, by name. */
export function fitResults(results: readonly ComparedResult[]): Map<string, FitResult> {
  return new Map(
    results
      .filter(({ use }) => use === 'fit')
      .map(({ name, rows }) => [
        name,
        rows.map((row) => ({ terms: row.terms, measuredUs: (row.bytes / row.measured / 1000) * row.busFactor })),
      ]),
  );
}

/** Launch and rounds fitted without the curve of each result in turn. */
function leaveOneOut(results: readonly ComparedResult[]): string {
  const curves = fitResults(results);
  const all = [...curves.values()];
  // A single size only gives its reach.
  const several = [...curves].filter(([, curve]) => curve.length > 1);
  const rows = [['all', undefined] as const, ...several.map(([name, curve]) => [`without ${name}`, curve] as const)].map(
    ([title, leftOut]) => {
      const { launchUs, rounds } = fitParameters(all, leftOut);
      return `| ${title} | ${launchUs.toFixed(1)} | ${rounds.toFixed(2)} |`;
    },
  );
  return ['| fitted to | launch, µs | rounds |', '|---|--:|--:|', ...rows, ''].join('\n');
}

const classes: readonly { readonly title: string; readonly has: (result: ComparedResult) => boolean }[] = [
  { title: 'A100, one node', has: ({ generation, nodes }) => generation === 'ampere' && nodes === 1 },
  { title: 'A100, 2 or 3 nodes', has: ({ generation, nodes }) => generation === 'ampere' && nodes > 1 },
  { title: 'H100 and H200, one node', has: ({ generation, nodes }) => generation === 'hopper' && nodes === 1 },
  { title: 'H100 and H200, 2 or 4 nodes', has: ({ generation, nodes }) => generation === 'hopper' && nodes > 1 },
  { title: 'Blackwell, one NVLink domain', has: ({ generation }) => generation === 'blackwell' },
];

function summary(results: readonly ComparedResult[]): string {
  const sourced = results.filter(({ source }) => source !== undefined);
  const lines = classes.flatMap(({ title, has }) =>
    (['test', 'fit'] as const).flatMap((use) =>
      (
        [
          [sizeTitles.large, true],
          ['less', false],
        ] as const
      ).flatMap(([sizes, large]) => {
        const rows = sourced
          .filter((result) => result.use === use && has(result))
          .flatMap((result) => result.rows)
          .filter(({ bytes }) => (sizeClassOf(bytes) === 'large') === large);
        if (rows.length === 0) return [];
        const cells = [errorsOf(rows, 'believed'), errorsOf(rows, 'estimated')].flatMap(({ mean, worst }) => [
          `${mean} %`,
          worst,
        ]);
        return [`| ${[title, use, sizes, rows.length, ...cells].join(' | ')} |`];
      }),
    ),
  );
  return [
    '## How far off\n',
    'Mean absolute error and worst error by class of machine. Rows marked *test* show what to expect of a machine that was not',
    'measured; rows marked *fit* gave parameters to the estimate, so its errors there are too small. Results without a source',
    'do not count.\n',
    '| machines | use | sizes | rows | NCCL: mean | worst | estimate: mean | worst |',
    '|---|---|---|--:|--:|--:|--:|--:|',
    ...lines,
    '',
  ].join('\n');
}

function errorsOf(
  rows: readonly AccuracyRow[],
  which: 'believed' | 'estimated',
): { readonly mean: string; readonly worst: string } {
  const errors = rows.map((row) => row[which] / row.measured - 1);
  const mean = errors.reduce((sum, error) => sum + Math.abs(error), 0) / errors.length;
  const worst = errors.reduce((most, error) => (Math.abs(error) > Math.abs(most) ? error : most));
  return { mean: (100 * mean).toFixed(1), worst: percent(worst) };
}

function percent(error: number): string {
  const rounded = Math.round(100 * error);
  return `${rounded > 0 ? '+' : ''}${rounded === 0 ? 0 : rounded} %`;
}

function resultSection(result: ComparedResult): string {
  const { name, use, source, nccl, note, nodes, collective, type, environment, overrides } = result;
  const set = Object.entries(environment).map(([variable, value]) => `\`${variable}=${value}\``);
  const kept = [
    ...(overrides.gpus === undefined ? [] : [`GPUs: ${String(overrides.gpus)}`]),
    ...(overrides.nics === undefined ? [] : [`NICs: ${String(overrides.nics).replaceAll(',', ' ')}`]),
  ];
  const facts = [
    use,
    nodes === 1 ? `\`${result.machine}\`` : `${nodes} x \`${result.machine}\``,
    ...kept,
    collective,
    type,
    `NCCL ${nccl ?? 'of unknown version'}`,
    ...set,
    source === undefined ? 'no source' : `[source](${source})`,
  ].join(', ');
  return [
    `### ${name}\n`,
    `${facts}.${note === undefined ? '' : ` Note: ${note}.`}\n`,
    '| size | | measured | NCCL | error | estimate | error |',
    '|--:|---|--:|--:|--:|--:|--:|',
    ...result.rows.map(
      (row) =>
        `| ${[
          formatBytes(row.bytes),
          formatWay(row.terms.choice),
          row.measured,
          formatRate(row.believed),
          percent(row.believed / row.measured - 1),
          formatRate(row.estimated),
          percent(row.estimated / row.measured - 1),
        ].join(' | ')} |`,
    ),
    '',
  ].join('\n');
}
