import { counted } from '../../../counted.js';
import { type ChannelGraph, GraphId } from '../../graph/graph.js';
import { describeMergeEvent } from '../../graph/merge/trace.js';
import { formatBytes, formatWay } from '../../plan/overview/format.js';
import { choose } from '../../tuning/choose.js';
import type { Collective } from '../../tuning/names.js';
import type { Draft, Evidence } from '../answer.js';
import type { Obstacle, SearchRecord, SpeedRecord } from '../search-record.js';
import { type NodeView, nodeViews, searchOf, type Situation } from '../situation.js';
import { rate } from '../format.js';

/** Explains the number of channels: speeds that were tried, obstacles, and changes by the merge. */
export function answerChannels(situation: Situation, expected: number | undefined): Draft {
  const { plan, mergeEvents } = situation;
  const views = nodeViews(situation);
  const counts = mergeEvents.filter((event) => event.kind === 'channels');
  const aligned = mergeEvents.filter((event) => event.kind === 'aligned' && (event.graph === 'ring' || event.graph === 'tree'));
  const wrong = expected !== undefined && expected !== plan.nChannels && expected !== plan.nvls?.nChannels;
  const nvls = plan.nvls === undefined ? '' : `, and ${plan.nvls.nChannels} of their own for NVLink SHARP`;
  return {
    title: counted(plan.nChannels, 'channel'),
    sentences: [
      `${wrong ? `Not ${expected}: there are` : 'There are'} ${counted(plan.nChannels, 'channel')} for rings and trees${nvls}.`,
      ...views.flatMap((view) => ofNode(view, views.length > 1)),
      ...aligned.map(describeMergeEvent),
      ...(counts.length === 0 ? [] : counts.map(describeMergeEvent)),
    ],
    evidence: {
      nChannels: plan.nChannels,
      nvlsChannels: plan.nvls?.nChannels ?? 0,
      nodes: views.map((view) => ({
        name: view.name,
        ring: searchEvidence(searchOf(view, GraphId.RING)),
        tree: searchEvidence(searchOf(view, GraphId.TREE)),
      })),
      steps: counts.map((event) => ({ step: event.step, before: event.before, after: event.after })),
    },
  };
}

/** Gives the channels and threads of a call: small calls take fewer. */
export function answerCallChannels({ plan, tuning }: Situation, collective: Collective, bytes: number): Draft {
  const choice = choose(tuning, collective, bytes);
  const call = `${collective} of ${formatBytes(bytes)}`;
  if (choice === undefined)
    return {
      title: `${call} has no channels`,
      sentences: ['NCCL has nothing to choose from for it.'],
      evidence: { collective, bytes },
    };
  const isNvls = choice.algorithm === 'NVLS' || choice.algorithm === 'NVLSTree';
  const all = isNvls ? (plan.nvls?.nChannels ?? plan.nChannels) : plan.nChannels;
  return {
    title: `${call} takes ${choice.nChannels} of ${counted(all, 'channel')}`,
    sentences: [
      `${call} goes by ${formatWay(choice)} on ${choice.nChannels} of the ${all} channels${isNvls ? ' of NVLink SHARP' : ''}: as many thread blocks of ${choice.nThreads} threads, each on a multiprocessor (SM) of its own.`,
      `A channel works on chunks of ${formatBytes(choice.chunkBytes)}.`,
      choice.nChannels < all
        ? 'NCCL takes fewer channels and threads where each would have too few data.'
        : 'NCCL_MAX_CTAS and NCCL_MAX_NCHANNELS bound the number of channels.',
    ],
    evidence: {
      collective,
      bytes,
      algorithm: choice.algorithm,
      protocol: choice.protocol,
      nChannels: choice.nChannels,
      nThreads: choice.nThreads,
      chunkBytes: choice.chunkBytes,
    },
  };
}

function ofNode(view: NodeView, several: boolean): string[] {
  const ring = searchOf(view, GraphId.RING);
  const tree = searchOf(view, GraphId.TREE);
  const told = ring === undefined ? [] : ofSearch(ring, view.local.inter, 'ring');
  const trees = tree?.result;
  if (trees !== undefined && ring?.result !== undefined && trees.nChannels < ring.result.nChannels) {
    told.push(`Trees have only ${counted(trees.nChannels, 'channel')}, and there are no more than both have.`);
  }
  return several ? told.map((sentence) => `${view.name}: ${sentence}`) : told;
}

/** The search of one graph in a few sentences. */
export function ofSearch(record: SearchRecord, inter: boolean, name: string): string[] {
  const { result } = record;
  if (result === undefined) return [];
  if (record.stopped === 'from-file')
    return [`The graph file gives ${counted(result.nChannels, `${name} channel`)}, so nothing was searched.`];
  if (record.simpleOrder) {
    return [
      `No ${name} was found at any speed, so NCCL takes one channel through the GPUs as they are numbered and counts it as 0.1 GB/s.`,
      ...obstacleOf(record.speeds.at(-1)),
    ];
  }
  if (result.nChannels === 0) return [`The search found no ${name} channel.`, ...obstacleOf(record.speeds.at(-1))];
  const searched = record.duplicated?.from ?? result.nChannels;
  const first = record.speeds.find(({ found }) => found !== undefined);
  const sentences = [`The search found ${counted(searched, `${name} channel`)} of ${speedsOf(result, inter, record)}.`];
  const fastest = record.speeds[0];
  if (fastest !== undefined) {
    sentences.push(
      `It began at ${rate(fastest.bwIntra)}: the best path ${inter ? 'between a GPU and a NIC' : 'between GPUs'} carries ${rate(record.maxGBps)}, and a GPU moves ${rate(record.totalGBps)} in all.`,
    );
  }
  const refused = record.speeds.filter((speed) => speed.pass === 1 && speed.found === undefined && speed !== first);
  for (const speed of refused.slice(0, 2)) {
    sentences.push(
      `At ${rate(speed.bwIntra)} ${counted(speed.tries, 'try', 'tries')} brought nothing better${speed.outOfSteps > 0 ? ` (${speed.outOfSteps} ran out of steps)` : ''}${mostly(speed.obstacles)}.`,
    );
  }
  if (refused.length > 2)
    sentences.push(`Nor did ${counted(refused.length - 2, 'slower speed')}, down to ${rate(refused.at(-1)?.bwIntra ?? 0)}.`);
  if (record.stopped !== undefined) sentences.push(stops(record, searched));
  if (first !== undefined && record.stopped !== 'perfect' && record.stopped !== 'enough')
    sentences.push(...obstacleOf(lastWithSolution(record)));
  if (record.duplicated !== undefined) {
    sentences.push(
      `Channels of 25 GB/s and more are split, so ${record.duplicated.from} became ${record.duplicated.to} of ${rate(record.duplicated.gbps)}.`,
    );
  }
  return sentences;
}

function lastWithSolution(record: SearchRecord): SpeedRecord | undefined {
  return record.speeds.filter(({ pass, found }) => pass === 1 && found !== undefined).at(-1);
}

function speedsOf(result: ChannelGraph, inter: boolean, { duplicated }: SearchRecord): string {
  const parts = duplicated === undefined ? 1 : Math.ceil(duplicated.to / duplicated.from);
  const within = rate(result.bwIntra * parts);
  return inter && result.bwInter !== result.bwIntra
    ? `${within} within and ${rate(result.bwInter * parts)} out of the host each`
    : `${within} each`;
}

function stops({ stopped, totalGBps, result }: SearchRecord, searched: number): string {
  switch (stopped) {
    case 'perfect':
      return `More are not allowed, so it stopped there.`;
    case 'enough':
      return `It stopped because ${counted(searched, 'channel')} take all that a GPU can move, ${rate(totalGBps)}.`;
    case 'out of steps':
      return 'It stopped because its steps were spent: there may be a better solution that NCCL does not find.';
    case 'nothing left to relax':
      return `Nothing slower or farther would give more than ${rate(searched * (result?.bwInter ?? 0))} in all.`;
    case 'from-file':
    case 'no-hardware':
    case undefined:
      return 'Nothing was searched.';
  }
}

function obstacleOf(speed: SpeedRecord | undefined): string[] {
  const [obstacle] = speed?.obstacles ?? [];
  return speed === undefined || obstacle === undefined
    ? []
    : [
        `Another channel of ${rate(speed.bwInter)} failed, ${counted(obstacle.times, 'time')}, because ${troubles[obstacle.kind]}: ${obstacle.example}.`,
      ];
}

function mostly(obstacles: readonly Obstacle[]): string {
  const [obstacle] = obstacles;
  return obstacle === undefined ? '' : `, mostly because ${troubles[obstacle.kind]} (${obstacle.example})`;
}

const troubles: Readonly<Record<Obstacle['kind'], string>> = {
  'path type': 'a path is farther than allowed',
  bandwidth: 'a link has too little left',
  unconnected: 'there is no path',
  port: 'the port of a NIC has too little left',
  rail: 'a channel may not change its rail',
  pair: 'the second channel of a pair has to go the way of the first backwards',
  other: 'a NIC does not fit',
};

export function searchEvidence(record: SearchRecord | undefined): Evidence {
  if (record?.result === undefined) return null;
  const { nChannels, bwIntra, bwInter } = record.result;
  return {
    nChannels,
    bwIntra,
    bwInter,
    bestPathGBps: record.maxGBps,
    gpuTotalGBps: record.totalGBps,
    stopped: record.stopped ?? null,
    duplicated: record.duplicated === undefined ? null : { ...record.duplicated },
    speeds: record.speeds.map((speed) => ({
      pass: speed.pass,
      bwIntra: speed.bwIntra,
      bwInter: speed.bwInter,
      tries: speed.tries,
      outOfSteps: speed.outOfSteps,
      found: speed.found === undefined ? null : { ...speed.found },
      obstacles: speed.obstacles.map((obstacle) => ({ ...obstacle })),
    })),
  };
}
