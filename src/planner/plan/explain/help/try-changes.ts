import { counted } from '../../../../counted.js';
import { TcclError } from '../../../../errors.js';
import type { System } from '../../../topology/system.js';
import type { XmlElement } from '../../../topology/xml/tree.js';
import { choose } from '../../../tuning/choose.js';
import type { Collective } from '../../../tuning/names.js';
import { tune } from '../../../tuning/tune.js';
import { type ChangeableCluster, changedCluster } from '../../changed-cluster.js';
import type { PrepareOptions } from '../../cluster.js';
import { comparePlans } from '../../diff/compare.js';
import { formatBytes, formatTime, formatWay } from '../../overview/format.js';
import { type Plan, plan } from '../../plan.js';
import type { Answer, Evidence } from '../answer.js';
import type { Question } from '../question.js';
import { type Change, changesFor } from './changes.js';

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
 * the planner has no clock.
 */
export function* tryChanges(
  input: ChangeableCluster,
  question: Extract<Question, { about: 'help' }>,
): Generator<Progress, void, undefined> {
  const machines = [
    ...new Set(input.cluster.hosts.map(({ machine }) => rootOf(input, machine)).filter((root) => root !== undefined)),
  ];
  const changes = changesFor(machines, input.parameters, input.environment);
  const before = plan(input.cluster, input.parameters, optionsOf(input));
  for (const [index, change] of changes.entries()) {
    yield { done: index + 1, total: changes.length, tried: tryOne(input, question, before, change) };
  }
}

function tryOne(
  input: ChangeableCluster,
  { collective, sizes }: Extract<Question, { about: 'help' }>,
  before: Plan,
  change: Change,
): Tried {
  try {
    const { cluster, parameters } = changedCluster(input, change);
    const after = plan(cluster, parameters, optionsOf(input));
    const [then, now] = [timesOf(after, collective, sizes), timesOf(before, collective, sizes)];
    const times = sizes.map((bytes, index) => ({
      bytes,
      beforeUs: now[index]?.timeUs ?? null,
      afterUs: then[index]?.timeUs ?? null,
      way: formatWay(then[index]),
    }));
    const ratios = times.map(({ beforeUs, afterUs }) =>
      beforeUs === null || afterUs === null || afterUs === 0 ? 1 : beforeUs / afterUs,
    );
    const gain = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
    const { differences } = comparePlans(
      { title: '', plan: before, systems: undefined },
      { title: '', plan: after, systems: undefined },
      [],
    );
    const graphs = differences.filter(({ section, what }) => section === 'graphs' && what.endsWith('of all channels'));
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

function rootOf({ roots }: ChangeableCluster, machine: System | XmlElement): XmlElement | undefined {
  return roots.get(machine) ?? ('gpus' in machine ? undefined : machine);
}

function optionsOf({ graphFile }: ChangeableCluster): { readonly graphFile?: NonNullable<PrepareOptions['graphFile']> } {
  return graphFile === undefined ? {} : { graphFile };
}

function timesOf(made: Plan, collective: Collective, sizes: readonly number[]) {
  const tuning = tune(made, made.parameters);
  return sizes.map((bytes) => choose(tuning, collective, bytes));
}

/** Smallest gain that counts. */
const LEAST_GAIN = 1.005;
/** Number of changes that are described. */
const MOST_TOLD = 6;

/** The changes that gain time, the largest gain first. @param leftOut number of changes that were not tried, for lack of time */
export function answerHelp(
  { collective, sizes }: Extract<Question, { about: 'help' }>,
  tried: readonly Tried[],
  leftOut: number,
): Answer {
  const ranked = tried.filter(({ gain }) => gain >= LEAST_GAIN).sort((a, b) => b.gain - a.gain);
  const without = tried.filter(({ gain, refused }) => gain < LEAST_GAIN && refused === undefined);
  const impossible = tried.flatMap(({ change, refused }) =>
    refused === undefined ? [] : [`${change.what} ${change.after} cannot be: ${refused}.`],
  );
  const slower = without.filter(({ gain }) => gain < 1 / LEAST_GAIN);
  const [best] = ranked;
  return {
    about: 'help',
    title:
      best === undefined
        ? `nothing that was tried makes ${collective} faster`
        : `${best.change.what}: ${best.change.before} -> ${best.change.after}`,
    sentences: [
      `${counted(tried.length, 'single change')} tried for ${collective} of ${sizes.map(formatBytes).join(', ')}; ${ranked.length} would help by NCCL's own model.`,
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
      `No change of time: ${without.length - slower.length} of them${without.some(({ change }) => change.what === 'NCCL_NTHREADS') ? "; NCCL's model knows neither threads nor buffers, so whether these help only a measurement tells" : ''}.`,
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
