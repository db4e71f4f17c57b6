import { counted } from '../../counted.js';
import type { MeasuredTable } from '../../planner/log/job/table.js';
import { curveSizes, forecast } from '../../planner/plan/overview/forecast.js';
import { windowForecast } from '../../planner/plan/overview/windows.js';
import { isQuickToPredict } from '../../planner/plan/predicted-calls.js';
import { predictCall, simulatorOf } from '../../planner/plan/prediction.js';
import { collectivesOfTests } from '../../planner/schedule/schedule.js';
import { wayOf } from '../../planner/plan/diff/cost.js';
import { collectives } from '../../planner/tuning/names.js';
import type { Tuning } from '../../planner/tuning/tune.js';
import { usesWindows } from '../../planner/windows.js';
import { CHART_WIDTH } from '../../view/choice/axis.js';
import { charts, narrowCharts } from '../../view/choice/charts.js';
import { predictionPicture } from '../../view/choice/predictions.js';
import { windowsPicture } from '../../view/choice/windows.js';
import type { Picture } from '../../view/draw/picture.js';
import type { ShownTimes } from '../messages.js';
import type { Planned } from '../planned.js';
import type { StudioState } from '../state.js';

const LEAST_BYTES = 2 ** 10;
const MOST_BYTES = 2 ** 34;

/** Sizes of predictions: 1 KiB to 4 GiB by four. */
const predictedSizes = Array.from({ length: 12 }, (_, step) => 2 ** (10 + 2 * step));

/** Bandwidth and choice as NCCL believes them, and the times of one collective. */
export function shownTimes(
  { source, prepared, plan, tuning }: Planned,
  { collective }: StudioState,
  tables: readonly MeasuredTable[],
  width: number | undefined,
): ShownTimes {
  const { nRanks } = plan.nodes;
  const isQuick = nRanks > 1 && isQuickToPredict(nRanks, predictedSizes.length);
  const simulator = isQuick ? simulatorOf(prepared, source.parameters, plan, tuning) : undefined;
  const measured = tables
    .filter((table) => collectivesOfTests[table.collective ?? ''] === collective)
    .flatMap(({ rows, nRanks: ranks }) =>
      rows.map(({ bytes, timeUs, type }) => ({
        bytes,
        timeUs,
        label: `nccl-tests${ranks === undefined ? '' : `, ${counted(ranks, 'rank')}`}, ${type}`,
      })),
    )
    .filter(({ bytes, timeUs }) => bytes > 0 && timeUs > 0);
  const sizes = [...new Set([...predictedSizes, ...(isQuick ? measured.map(({ bytes }) => bytes) : [])])].sort((a, b) => a - b);
  const modelled = collectives.find((name) => name === collective);
  return {
    view: 'choice',
    believed: beliefPicture(tuning, width),
    windows: usesWindows(source.parameters)
      ? windowsPicture(windowForecast(tuning, curveSizes(LEAST_BYTES, MOST_BYTES)), width)
      : undefined,
    note:
      simulator === undefined
        ? nRanks === 1
          ? 'One rank exchanges nothing.'
          : `${nRanks} ranks are too many to simulate while you look: tccl plan --predict does.`
        : undefined,
    picture: predictionPicture(
      {
        title: collective,
        believed:
          modelled === undefined
            ? []
            : curveSizes(sizes[0] ?? 1, sizes.at(-1) ?? 1).flatMap((bytes) => {
                const choice = wayOf(tuning, modelled, bytes);
                return choice === null ? [] : [{ bytes, choice }];
              }),
        predicted: sizes.flatMap((bytes) =>
          simulator === undefined
            ? []
            : predictCall(simulator, collective, bytes, { environment: source.simulated, onWindows: true }),
        ),
        measured,
      },
      width,
    ),
  };
}

/** Bandwidth that NCCL believes, and its choice, by size. */
export function beliefPicture(tuning: Tuning, width: number = CHART_WIDTH): Picture {
  const draw = width < CHART_WIDTH ? narrowCharts : charts;
  return draw(forecast(tuning, curveSizes(LEAST_BYTES, MOST_BYTES)));
}
