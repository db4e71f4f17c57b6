import { fitPhysics, type Measurement, predictMeasured, startingPhysics } from './fit-physics.js';
import { listPhysics, type Physics } from '../../src/planner/simulate/physics.js';
import { believedUs, type MeasuredCall } from './measured.js';

/** A measured call, what was predicted for it by a fit without its machine, and what NCCL believes. */
export interface PredictedCall {
  readonly call: MeasuredCall;
  readonly predictedUs: number;
  readonly believedUs: number | undefined;
}

/** Result of the calibration. */
export interface Calibration {
  /** Fitted to all machines. */
  readonly physics: Physics;
  /** Fitted without one machine each. */
  readonly without: ReadonlyMap<string, Physics>;
  /** Every trusted measurement, predicted without its machine. */
  readonly leftOut: readonly PredictedCall[];
  /** Every trusted measurement between hosts, predicted without all machines of its fabric. */
  readonly leftOutFabric: readonly PredictedCall[];
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
    return fitPhysics([...chosen, ...beliefs], startingPhysics, ROUNDS, (round, error) =>
      say(`  round ${round}: mean error ${(100 * error).toFixed(1)} %`),
    );
  };
  const forFit = calls.filter(({ isForFit }) => isForFit);
  const physics = fit(forFit, 'all machines');
  const fitsWithout = (property: 'machine' | 'fabric') =>
    new Map(
      [...new Set(forFit.filter(({ hosts }) => property === 'machine' || hosts > 1).map((call) => call[property]))].map(
        (left) => [
          left,
          fit(
            forFit.filter((call) => call[property] !== left),
            `without ${left}`,
          ),
        ],
      ),
    );
  const trusted = calls.filter(({ doubt }) => doubt === undefined);
  const predicted = (chosen: readonly MeasuredCall[], physicsOf: (call: MeasuredCall) => Physics | undefined) =>
    chosen.flatMap((call): PredictedCall[] => {
      const predictedUs = predictMeasured(call, physicsOf(call) ?? physics);
      return predictedUs === undefined ? [] : [{ call, predictedUs, believedUs: believedUs(call) }];
    });
  const [without, withoutFabric] = [fitsWithout('machine'), fitsWithout('fabric')];
  return {
    physics,
    without,
    leftOut: predicted(trusted, ({ machine }) => without.get(machine)),
    leftOutFabric: predicted(
      trusted.filter(({ hosts }) => hosts > 1),
      ({ fabric }) => withoutFabric.get(fabric),
    ),
  };
}

const sizeClasses = [
  { title: '128 MiB and more', has: (bytes: number) => bytes >= 2 ** 27 },
  { title: '1 to 128 MiB', has: (bytes: number) => bytes >= 2 ** 20 && bytes < 2 ** 27 },
  { title: 'below 1 MiB', has: (bytes: number) => bytes < 2 ** 20 },
] as const;

const callClasses = [
  {
    title: 'one node: all-reduce, all-gather, reduce-scatter',
    has: ({ hosts }: MeasuredCall, pairs: boolean) => hosts === 1 && !pairs,
  },
  { title: 'one node: all-to-all, send and receive', has: ({ hosts }: MeasuredCall, pairs: boolean) => hosts === 1 && pairs },
  {
    title: '2 to 10 nodes: all-reduce, all-gather, reduce-scatter',
    has: ({ hosts }: MeasuredCall, pairs: boolean) => hosts > 1 && !pairs,
  },
  { title: '2 to 10 nodes: all-to-all, send and receive', has: ({ hosts }: MeasuredCall, pairs: boolean) => hosts > 1 && pairs },
] as const;

/** The tables of the calibration in Markdown: errors by class and size, by machine, and parameters. */
export function calibrationTables({ physics, without, leftOut, leftOutFabric }: Calibration): string {
  const machines = [...without.keys()];
  const fabrics = [...new Set(leftOutFabric.map(({ call }) => call.fabric))];
  const head = ['| | size | rows | error | 10 % to 90 % | NCCL’s belief |', '|---|---|--:|--:|--:|--:|'];
  const lines = (chosen: readonly PredictedCall[], title: string, has: (call: MeasuredCall, pairs: boolean) => boolean) =>
    sizeClasses.flatMap((size) => {
      const rows = chosen.filter(({ call }) => has(call, isPairs(call)) && size.has(call.bytes));
      if (rows.length === 0) return [];
      const ratios = rows.map(({ call, predictedUs }) => predictedUs / call.timeUs).sort((a, b) => a - b);
      const error = meanOf(ratios.map((ratio) => Math.abs(ratio - 1)));
      const believed = rows.flatMap(({ call, believedUs: time }) =>
        time === undefined ? [] : [Math.abs(time / call.timeUs - 1)],
      );
      const belief =
        believed.length === 0 ? 'none' : `${percent(meanOf(believed))}${meanOf(believed) < error ? ' **better**' : ''}`;
      return [
        `| ${title} | ${size.title} | ${rows.length} | ${percent(error)} | ${signed(quantile(ratios, 0.1) - 1)} to ${signed(quantile(ratios, 0.9) - 1)} | ${belief} |`,
      ];
    });
  return [
    '### Errors by class of machine and size',
    '',
    ...head,
    ...callClasses.flatMap(({ title, has }) => lines(leftOut, title, has)),
    '',
    '### Errors by machine',
    '',
    ...head,
    ...machines.flatMap((machine) =>
      callClasses.flatMap(({ title, has }) =>
        lines(
          leftOut.filter(({ call }) => call.machine === machine),
          `${machine}; ${title}`,
          has,
        ),
      ),
    ),
    '',
    '### Errors by fabric',
    '',
    ...head,
    ...fabrics.flatMap((fabric) =>
      callClasses.flatMap(({ title, has }) =>
        lines(
          leftOutFabric.filter(({ call }) => call.fabric === fabric),
          `${fabric}; ${title}`,
          has,
        ),
      ),
    ),
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
export function leftOutRow({ call, predictedUs }: PredictedCall): string {
  const { machine, fabric, hosts, simulator, generation, collective, bytes, timeUs } = call;
  const { choice, protocol = '' } = simulator.simulate(collective, bytes, { dataType: call.type }) ?? {};
  const way = `${choice?.algorithm ?? 'pairs'} ${protocol}`;
  return [machine, fabric, hosts, simulator.nRanks, generation, collective, bytes, way, timeUs, predictedUs.toFixed(2)].join(',');
}

function isPairs({ collective }: MeasuredCall): boolean {
  return collective === 'AllToAll' || collective === 'SendRecv';
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
