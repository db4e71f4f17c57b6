import { coverageTable, placeOf, places, placeTitles, spreadsText } from './coverage.js';
import { fitPhysics, type Measurement, startingPhysics } from './fit-physics.js';
import { isLeftOut, type LeftOutCall, type LeftOutFit, leftOuts, predictCards, predictLeftOut } from './left-out.js';
import { listPhysics, type Physics } from '../../src/planner/simulate/physics.js';
import { LEAST_MEASUREMENTS, sizeClassOf } from '../../src/planner/simulate/measured-calls.js';
import { type Generation, generations } from '../../src/planner/tuning/constants.js';
import { believedUs, type MeasuredCall, PCIE } from './measured.js';
import { sizeTitles } from './size-titles.js';

/** Result of the calibration. */
export interface Calibration {
  /** Fitted to all machines. */
  readonly physics: Physics;
  readonly fits: readonly LeftOutFit[];
  /** Every trusted measurement, predicted by each fit that left it out. */
  readonly leftOut: readonly LeftOutCall[];
  /** Boxes of PCIe cards, which no fit uses, predicted by the parameters in use. */
  readonly cards: readonly LeftOutCall[];
}

/** Steps of a fit; after three, errors change by less than a tenth of a percent. */
const ROUNDS = 3;

/** Fits all machines, then all without each. @param say called with the progress */
export function calibrate(
  calls: readonly MeasuredCall[],
  beliefs: readonly Measurement[],
  say: (line: string) => void,
): Calibration {
  const fit = (chosen: readonly MeasuredCall[], title: string) => {
    say(`fitting ${chosen.length} measurements: ${title}`);
    return fitPhysics([...chosen, ...beliefsBeside(chosen, beliefs)], startingPhysics, ROUNDS, (round, error) =>
      say(`  round ${round}: mean error ${(100 * error).toFixed(1)} %`),
    );
  };
  const forFit = calls.filter(({ isForFit }) => isForFit);
  const physics = fit(forFit, 'all machines');
  const fits = leftOuts(forFit).map((left): LeftOutFit => ({
    left,
    physics: fit(
      forFit.filter((call) => !isLeftOut(left, call)),
      `without ${left.by} ${left.name}`,
    ),
  }));
  const trusted = calls.filter(({ fabric, doubt }) => fabric !== PCIE && doubt === undefined);
  return { physics, fits, leftOut: fits.flatMap((each) => predictLeftOut(each, trusted)), cards: predictCards(calls) };
}

/** The beliefs of a fit: those about GPUs of whose small calls on one host it has too few measurements. */
export function beliefsBeside(chosen: readonly MeasuredCall[], beliefs: readonly Measurement[]): Measurement[] {
  const isLike = ({ hosts, bytes, environment }: MeasuredCall) =>
    hosts === 1 && sizeClassOf(bytes) === 'small' && environment.launch === 'queued';
  const weightOf = (generation: Generation) =>
    chosen.reduce((sum, call) => (call.generation === generation && isLike(call) ? sum + call.weight : sum), 0);
  const weights = new Map(generations.map((generation) => [generation, weightOf(generation)]));
  return beliefs.filter(({ generation }) => (weights.get(generation) ?? 0) < LEAST_MEASUREMENTS);
}

/** The tables of the calibration in Markdown: errors by class and size, by machine, and parameters. */
export function calibrationTables({ physics, fits, leftOut: all, cards }: Calibration): string {
  const leftBy = (by: LeftOutCall['left']['by']) => all.filter(({ left }) => left.by === by);
  const [leftOut, leftOutFabric] = [leftBy('machine'), leftBy('fabric')];
  const without = new Map(fits.flatMap(({ left, physics: own }) => (left.by === 'machine' ? [[left.name, own] as const] : [])));
  const machines = [...without.keys()];
  const fabrics = [...new Set(leftOutFabric.map(({ call }) => call.fabric))];
  const head = ['| | size | rows | error | 10 % to 90 % | NCCL’s belief |', '|---|---|--:|--:|--:|--:|'];
  const classes = places.flatMap((place) => Object.entries(sizeTitles).map(([size, title]) => ({ place, size, title })));
  const lines = (chosen: readonly LeftOutCall[], of = '') =>
    classes.flatMap(({ place, size, title }) => {
      const rows = chosen.filter(({ call }) => placeOf(call) === place && sizeClassOf(call.bytes) === size);
      if (rows.length === 0) return [];
      const ratios = rows.map(({ call, predictedUs }) => predictedUs / call.timeUs).sort((a, b) => a - b);
      const error = meanOf(ratios.map((ratio) => Math.abs(ratio - 1)));
      const believed = rows.flatMap(({ call }) => {
        const time = believedUs(call);
        return time === undefined ? [] : [Math.abs(time / call.timeUs - 1)];
      });
      const belief =
        believed.length === 0 ? 'none' : `${percent(meanOf(believed))}${meanOf(believed) < error ? ' **better**' : ''}`;
      return [
        `| ${of}${placeTitles[place]} | ${title} | ${rows.length} | ${percent(error)} | ${signed(quantile(ratios, 0.1) - 1)} to ${signed(quantile(ratios, 0.9) - 1)} | ${belief} |`,
      ];
    });
  return [
    '### Errors by class of machine and size',
    '',
    ...head,
    ...lines(leftOut),
    '',
    '### Errors by machine',
    '',
    ...head,
    ...machines.flatMap((machine) =>
      lines(
        leftOut.filter(({ call }) => call.machine === machine),
        `${machine}; `,
      ),
    ),
    '',
    '### Errors by fabric',
    '',
    ...head,
    ...fabrics.flatMap((fabric) =>
      lines(
        leftOutFabric.filter(({ call }) => call.fabric === fabric),
        `${fabric}; `,
      ),
    ),
    '',
    '### Measurements inside their intervals',
    '',
    coverageTable([...all, ...cards]),
    '',
    'The intervals that follow (interval.ts):',
    '',
    '```ts',
    spreadsText([...all, ...cards]).trimEnd(),
    '```',
    '',
    '### Parameters',
    '',
    `| parameter | | all | ${machines.map((machine) => `without ${machine}`).join(' | ')} | plausible | what it is |`,
    `|---|---|--:|${machines.map(() => '--:|').join('')}--:|---|`,
    ...listPhysics(physics).flatMap(({ name, value, parameter }, index) => {
      if (name.endsWith('.volta')) return [];
      const others = machines.map((machine) => format(listPhysics(without.get(machine) ?? physics)[index]?.value ?? 0));
      return [
        `| ${[`\`${name}\``, parameter.unit === 'us' ? 'µs' : parameter.unit === 'ratio' ? '' : parameter.unit, format(value), ...others, `${parameter.least} to ${parameter.most}`, parameter.meaning].join(' | ')} |`,
      ];
    }),
    '',
  ].join('\n');
}

/** Machine, fabric, hosts, ranks, generation, collective, bytes, way, measured and predicted µs, separated by commas. */
export function leftOutRow({ call, predictedUs }: LeftOutCall): string {
  const { machine, fabric, hosts, simulator, generation, collective, bytes, timeUs } = call;
  const { choice, protocol = '' } = simulator.simulate(collective, bytes, { dataType: call.type }) ?? {};
  const way = `${choice?.algorithm ?? 'pairs'} ${protocol}`;
  return [machine, fabric, hosts, simulator.nRanks, generation, collective, bytes, way, timeUs, predictedUs.toFixed(2)].join(',');
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.round(part * (sorted.length - 1))] ?? 0;
}

function percent(error: number): string {
  return `${(100 * error).toFixed(1)} %`;
}

function signed(error: number): string {
  return `${error < 0 ? '' : '+'}${(100 * error).toFixed(0)} %`;
}

function format(value: number): string {
  return value.toPrecision(3);
}
