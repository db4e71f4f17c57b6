import { counted } from '../../../counted.js';
import { TcclError } from '../../../errors.js';
import { changedCluster, type ChangeableCluster } from '../../plan/changed-cluster.js';
import { prepareCluster } from '../../plan/cluster.js';
import { comparePlans } from '../../plan/diff/compare.js';
import { formatBytes, formatTime, formatWay } from '../../plan/overview/format.js';
import { type Plan, planPrepared } from '../../plan/plan.js';
import { isQuickToPredict } from '../../plan/predicted-calls.js';
import { predictCall, simulatorOf } from '../../plan/prediction.js';
import type { ScheduledCollective } from '../../schedule/schedule.js';
import type { Environment } from '../../simulate/environment.js';
import { choose } from '../../tuning/choose.js';
import { tune } from '../../tuning/tune.js';
import { isModelled } from '../answers/bandwidth.js';
import type { Draft, Evidence } from '../answer.js';
import { rootsOf } from '../counterfactual/apply.js';
import { type Change, changesFor } from './changes.js';

/** Calls that are to become faster. */
export interface HelpQuestion {
  readonly collective: ScheduledCollective;
  /** Bytes. */
  readonly sizes: readonly number[];
}

/** A cluster whose calls are to become faster, with the assumptions of simulations. */
export interface HelpInput extends ChangeableCluster {
  readonly simulated: Environment;
}

/** A change and its result. */
export interface Tried {
  readonly change: Change;
  /** Time before and after by size, µs; null where NCCL would have no candidate. */
  readonly times: readonly {
    readonly bytes: number;
    readonly beforeUs: number | null;
    readonly afterUs: number | null;
    readonly way: string;
  }[];
  /** Speed-up over all sizes (geometric mean); below 1 is slower. */
  readonly gain: number;
  /** First decisions of the plan that differ. */
  readonly because: readonly string[];
  /** Reason why it is impossible. */
  readonly refused?: string;
}

/** Progress of a search for help. */
export interface Progress {
  readonly done: number;
  readonly total: number;
  readonly tried: Tried;
}

/**
 * Plans the cluster anew with each single change. The caller takes one result after the other and may stop at any time, because
 * the planner has no clock. Times are simulated where that takes little time, and for messages between pairs, of which NCCL has
 * no model; others are NCCL's own.
 */
export function* tryChanges(input: HelpInput, question: HelpQuestion): Generator<Progress, void, undefined> {
  const changes = changesFor(rootsOf(input), input.parameters, input.environment);
  const before = planned(input, question);
  for (const [index, change] of changes.entries()) {
    yield { done: index + 1, total: changes.length, tried: tryOne(input, question, before, change) };
  }
}

/** True if the gains of changes are simulated, not NCCL's belief. */
export function simulatesHelp(nRanks: number, { collective, sizes }: HelpQuestion): boolean {
  return !isModelled(collective) || isQuickToPredict(nRanks, 6 * sizes.length);
}

/** A plan, and the time of each size with the way that is taken. */
interface Planned {
  readonly plan: Plan;
  readonly times: readonly { readonly timeUs: number | null; readonly way: string }[];
}

function planned({ cluster, parameters, graphFile, simulated }: HelpInput, question: HelpQuestion): Planned {
  const { collective, sizes } = question;
  const prepared = prepareCluster(cluster, parameters, graphFile === undefined ? {} : { graphFile });
  const plan = planPrepared(prepared, parameters);
  const tuning = tune(plan, parameters);
  if (isModelled(collective) && !simulatesHelp(plan.nodes.nRanks, question)) {
    const choices = sizes.map((bytes) => choose(tuning, collective, bytes));
    return { plan, times: choices.map((choice) => ({ timeUs: choice?.timeUs ?? null, way: formatWay(choice) })) };
  }
  const simulator = simulatorOf(prepared, parameters, plan, tuning);
  const rows = sizes.map((bytes) => predictCall(simulator, collective, bytes, { environment: simulated })[0]);
  return {
    plan,
    times: rows.map((row) => ({ timeUs: row?.timeUs ?? null, way: row?.choice === undefined ? 'pairs' : formatWay(row.choice) })),
  };
}

function tryOne(input: HelpInput, question: HelpQuestion, before: Planned, change: Change): Tried {
  const { collective, sizes } = question;
  try {
    const after = planned({ ...input, ...changedCluster(input, change), roots: new Map() }, question);
    const times = sizes.map((bytes, index) => ({
      bytes,
      beforeUs: before.times[index]?.timeUs ?? null,
      afterUs: after.times[index]?.timeUs ?? null,
      way: after.times[index]?.way ?? '',
    }));
    const ratios = times.map(({ beforeUs, afterUs }) =>
      beforeUs === null || afterUs === null || afterUs === 0 ? 1 : beforeUs / afterUs,
    );
    const gain = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
    const { differences } = comparePlans(
      { title: '', plan: before.plan, systems: undefined },
      { title: '', plan: after.plan, systems: undefined },
      [],
    );
    const graphs = differences.filter(
      ({ section, what }) =>
        (section === 'graphs' && what.endsWith('of all channels')) || (!isModelled(collective) && section === 'channels'),
    );
    const way = times.at(-1)?.way ?? '';
    const model = differences.filter(({ section, what }) => section === 'tuning' && what === `${collective} ${way}`);
    const telling =
      [...graphs, ...model].length > 0 ? [...graphs, ...model] : differences.filter(({ section }) => section !== 'parameters');
    return { change, times, gain, because: telling.slice(0, 3).map(({ what, a, b }) => `${what} ${a} -> ${b}`) };
  } catch (error) {
    if (!(error instanceof TcclError)) throw error;
    return { change, times: [], gain: 1, because: [], refused: error.message };
  }
}

/** Smallest gain that counts. */
const LEAST_GAIN = 1.005;
/** Number of changes that are described. */
const MOST_TOLD = 6;

/** The changes that gain time, the largest gain first. @param leftOut number of changes that were not tried, for lack of time */
export function answerHelp(
  { collective, sizes }: HelpQuestion,
  tried: readonly Tried[],
  leftOut: number,
  isSimulated: boolean,
): Draft {
  const ranked = tried.filter(({ gain }) => gain >= LEAST_GAIN).sort((a, b) => b.gain - a.gain);
  const without = tried.filter(({ gain, refused }) => gain < LEAST_GAIN && refused === undefined);
  const impossible = tried.flatMap(({ change, refused }) =>
    refused === undefined ? [] : [`${change.what} ${change.after} cannot be: ${refused}.`],
  );
  const slower = without.filter(({ gain }) => gain < 1 / LEAST_GAIN);
  const [best] = ranked;
  return {
    title:
      best === undefined
        ? `nothing that was tried makes ${collective} faster`
        : `${best.change.what}: ${best.change.before} -> ${best.change.after}`,
    sentences: [
      `${counted(tried.length, 'single change')} tried for ${collective} of ${sizes.map(formatBytes).join(', ')}; ${ranked.length} would help by ${isSimulated ? 'the simulation' : "NCCL's own model"}.`,
      ...ranked.slice(0, MOST_TOLD).map(sentence),
      ...(ranked.length > MOST_TOLD ? [`${ranked.length - MOST_TOLD} more gain less.`] : []),
      ...(slower.length === 0
        ? []
        : [
            `Slower: ${slower
              .slice(0, MOST_TOLD)
              .map(({ change }) => `${change.what} ${change.after}`)
              .join(', ')}.`,
          ]),
      `No change of time: ${without.length - slower.length} of them${!isSimulated && without.some(({ change }) => change.what === 'NCCL_NTHREADS') ? "; NCCL's model knows neither threads nor buffers, so whether these help only a measurement tells" : ''}.`,
      ...impossible.slice(0, 2),
      ...(leftOut === 0 ? [] : [`${counted(leftOut, 'change')} not tried, for lack of time.`]),
    ],
    evidence: {
      collective,
      sizes,
      leftOut,
      tried: tried.map((each): Evidence => ({
        kind: each.change.kind,
        what: each.change.what,
        before: each.change.before,
        after: each.change.after,
        gain: each.gain,
        times: each.times.map((row) => ({ ...row })),
        because: each.because,
        refused: each.refused ?? null,
      })),
    },
  };
}

function sentence({ change, times, gain, because }: Tried, place: number): string {
  const rows = times.flatMap(({ bytes, beforeUs, afterUs, way }) =>
    beforeUs === null || afterUs === null
      ? []
      : [`${formatBytes(bytes)} ${formatTime(beforeUs)} -> ${formatTime(afterUs)} (${way})`],
  );
  return `${place + 1}. ${change.what}: ${change.before} -> ${change.after}: ${gain.toFixed(2)} times as fast. ${rows.join(', ')}.${because.length === 0 ? '' : ` Because ${because.join('; ').replace(/\.$/, '')}.`}${change.caution === undefined ? '' : ` ${change.caution}`}`;
}
