import { inFile, InvalidArgumentError, InvalidUsageError } from '../../errors.js';
import { refuseContradictions } from '../../planner/graph/merge/contradictions.js';
import { parseSize, sweep } from '../../perf/sizes.js';
import { prepareCluster } from '../../planner/plan/cluster.js';
import { curveSizes, forecast, usualSizes } from '../../planner/plan/overview/forecast.js';
import { type Overview, overviewOf } from '../../planner/plan/overview/overview.js';
import { type Plan, planPrepared } from '../../planner/plan/plan.js';
import { isQuickToPredict } from '../../planner/plan/predicted-calls.js';
import type { WindowForecast } from '../../planner/plan/overview/windows.js';
import type { PredictedCollective } from '../../planner/plan/prediction.js';
import type { Finding } from '../../planner/topology/doctor/finding.js';
import { tune, type Tuning } from '../../planner/tuning/tune.js';
import { type ClusterInput, readCluster, rootsOf } from '../cluster-input.js';
import type { ClusterOptions } from '../cluster-options.js';
import { colorsFor, print, printJson, printNotes, writeFile } from '../output.js';
import { overviewLines } from './text.js';

export interface PlanOptions extends ClusterOptions, SizeOptions {
  readonly followNccl?: boolean;
  /** `--split-from`: a cluster, as the argument of `tccl plan`. */
  readonly splitFrom?: string;
  /** `--predict`, `--no-predict`; undefined simulates where that takes little time. */
  readonly predict?: boolean;
  readonly json?: boolean;
  /** `--costs`: csv or json. */
  readonly costs?: string;
  readonly html?: string;
  readonly svg?: string;
}

/** Sizes as the command line gives them. */
interface SizeOptions {
  readonly sizes?: string;
  readonly minbytes?: string;
  readonly maxbytes?: string;
  readonly stepfactor?: string;
}

/** `tccl plan`. */
export async function showPlan(names: readonly string[], options: PlanOptions): Promise<void> {
  // Errors of the command line are reported before a file is read.
  const sizes = sizesOf(options);
  const costs = options.costs === undefined ? undefined : await import('./costs.js');
  const costFormat = costs?.costFormatOf(options.costs ?? '');
  const given = await readCluster(names, options);
  const input = options.splitFrom === undefined ? given : { ...given, title: `${given.title}, split from ${options.splitFrom}` };
  if (options.followNccl !== true) refuseContradictions(input.parameters);
  if (costs !== undefined && costFormat !== undefined) {
    costs.showCosts(input, sizes, costFormat);
    printNotes(input.notes);
    return;
  }
  const parent = await parentOf(options, given);
  const { overview: made, tuning, checked, predicted } = makeOverview(input, sizes, parent);
  const predicts = options.predict ?? isQuickToPredict(made.nRanks, sizes.length);
  const { predictions, ...ofWindows } = predicts ? await predicted() : { predictions: [] };
  const overview = { ...made, ...ofWindows };
  const findings = await checked();

  if (options.svg !== undefined || options.html !== undefined) {
    const curves = forecast(tuning, curveSizes(sizes[0] ?? 1, sizes.at(-1) ?? 1));
    if (options.svg !== undefined) {
      const { overviewSvg } = await import('../../view/choice/charts.js');
      writeFile(options.svg, overviewSvg(overview, curves));
    }
    if (options.html !== undefined) {
      const { overviewHtml } = await import('../../view/page/plan-page.js');
      const { machinePictures } = await import('./machines.js');
      writeFile(options.html, overviewHtml(overview, curves, machinePictures(input), predictions));
    }
  }
  if (options.json === true) {
    printJson({ format: 'tccl plan overview', formatVersion: 1, ...overview, findings, ...(predicts ? { predictions } : {}) });
  } else {
    const { isTTY, columns } = process.stdout;
    const paint = colorsFor(process.stdout);
    print(...overviewLines(overview, predictions, findings, { paint, width: isTTY ? Math.max(60, columns) : 140 }));
  }
  printNotes(
    predicts || options.predict === false
      ? input.notes
      : [
          ...input.notes,
          `${overview.nRanks} ranks at ${sizes.length} sizes are not simulated: --predict does it, which takes a while`,
        ],
  );
}

/**
 * The plan of the communicator that `--split-from` names.
 *
 * @throws InvalidArgumentError where it lacks GPUs of the other
 */
async function parentOf(options: PlanOptions, child: ClusterInput): Promise<Plan | undefined> {
  const { splitFrom } = options;
  if (splitFrom === undefined) return undefined;
  // --nodes is about the other.
  const own: ClusterOptions = Object.fromEntries(Object.entries(options).filter(([name]) => name !== 'nodes'));
  const input = await readCluster([splitFrom], own);
  const hosts = gpusByHost(input);
  for (const { gpus, count } of gpusByHost(child)) {
    const those = hosts.filter((host) => gpus.every((gpu) => host.gpus.includes(gpu)));
    if (those.reduce((sum, host) => sum + host.count, 0) < count)
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `${child.title} cannot be split from ${input.title}${those.length === 0 ? ', whose hosts have other GPUs or have them at other places of their PCI buses' : ', which has fewer such hosts'}: give in --split-from the communicator that it was split from`,
      );
  }
  const { cluster, fileName, parameters, given } = input;
  return inFile(fileName, () => planPrepared(prepareCluster(cluster, parameters, given), parameters));
}

/** GPUs of each host by place and compute capability, with the number of such hosts. */
function gpusByHost({ cluster, machines }: ClusterInput): { readonly gpus: readonly string[]; readonly count: number }[] {
  return cluster.hosts.map(({ machine, count }) => {
    const system = machines.find((each) => each.system === machine)?.system;
    return { gpus: (system?.gpus ?? []).map(({ localId, sm }) => `${localId} ${sm}`), count };
  });
}

/** Simulated times: of all collectives, and of calls on symmetric windows. */
interface Predicted {
  readonly predictions: readonly PredictedCollective[];
  readonly windows?: WindowForecast;
}

/** The plan of a cluster with NCCL's times; `predicted` simulates its calls. */
function makeOverview(
  input: ClusterInput,
  sizes: readonly number[],
  parent: Plan | undefined,
): {
  readonly overview: Overview;
  readonly tuning: Tuning;
  readonly checked: () => Promise<readonly Finding[]>;
  readonly predicted: () => Promise<Predicted>;
} {
  const { title, cluster, fileName, parameters, environment, given, simulated } = input;
  return inFile(fileName, () => {
    const prepared = prepareCluster(cluster, parameters, given);
    const plan = planPrepared(prepared, parameters, parent === undefined ? {} : { parent });
    const tuning = tune(plan, parameters);
    const overview = overviewOf({ title, cluster, plan, prepared, parameters, environment, tuning, sizes });
    return {
      overview,
      tuning,
      checked: async () => {
        const { checkPlan } = await import('../../planner/plan/checks/check-plan.js');
        return checkPlan({ ...input, ...given, roots: rootsOf(input), prepared, plan, tuning });
      },
      predicted: async () => {
        const { predictCollectives, simulatorOf } = await import('../../planner/plan/prediction.js');
        const { predictOnWindows } = await import('../../planner/plan/overview/predict-windows.js');
        const { windows } = overview;
        return inFile(fileName, () => {
          const simulator = simulatorOf(prepared, parameters, plan, tuning);
          return {
            predictions: predictCollectives(simulator, sizes, simulated),
            ...(windows === undefined ? {} : { windows: predictOnWindows(windows, simulator, simulated) }),
          };
        });
      },
    };
  });
}

/** Maximum number of rows. */
const MOST_SIZES = 1000;

/** @throws InvalidArgumentError for an invalid size, InvalidUsageError for options that exclude each other */
export function sizesOf({ sizes, minbytes, maxbytes, stepfactor }: SizeOptions): readonly number[] {
  if (sizes !== undefined) {
    if (minbytes !== undefined || maxbytes !== undefined || stepfactor !== undefined) {
      throw new InvalidUsageError('UNSUPPORTED', '--sizes does not go with -b, -e and -f: they make the list');
    }
    return [...new Set(sizes.split(',').map((size) => positiveSize(size, '--sizes')))].sort((a, b) => a - b);
  }
  if (minbytes === undefined && maxbytes === undefined && stepfactor === undefined) return usualSizes;
  const factor = Number(stepfactor ?? '8');
  if (!Number.isInteger(factor) || factor < 2) {
    throw new InvalidArgumentError('ARGUMENT_RANGE', `--stepfactor '${stepfactor ?? ''}' must be a whole number from 2 on`);
  }
  const least = positiveSize(minbytes ?? '1K', '--minbytes');
  const most = positiveSize(maxbytes ?? '16G', '--maxbytes');
  const made = sweep(least, most, { kind: 'factor', factor });
  if (made.length > MOST_SIZES)
    throw new InvalidArgumentError('ARGUMENT_RANGE', `${made.length} sizes are too many: ${MOST_SIZES} at most`);
  return made;
}

function positiveSize(text: string, flag: string): number {
  const bytes = parseSize(text, flag);
  if (bytes > 0) return bytes;
  throw new InvalidArgumentError('ARGUMENT_RANGE', `${flag} '${text.trim()}' must be a size above 0`);
}
