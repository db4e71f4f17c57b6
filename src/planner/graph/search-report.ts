import { counted } from '../../counted.js';
import { pathTypeNames } from '../topology/types.js';
import { type ChannelGraph, CrossNic, type GraphId, Pattern } from './graph.js';
import type { PathRefusal, SearchEvent, Settings } from './trace.js';

/** The search of one graph in sentences. */
export interface GraphReport {
  readonly id: GraphId;
  readonly sentences: readonly string[];
  /** Of each sentence, the names of the two nodes between which something was in the way; none for most. */
  readonly places: readonly (readonly string[])[];
}

/**
 * Describes searches from their events: tries at each speed, obstacles, solutions and their improvements, relaxed settings.
 *
 *     const report = new SearchReport();
 *     searchHost(local, parameters, { trace: report.listen });
 *     for (const { sentences } of report.graphs) …
 */
export class SearchReport {
  /** One for each graph that was searched, in that order. */
  readonly graphs: GraphReport[] = [];
  #sentences: string[] = [];
  #places: (readonly string[])[] = [];
  #inter = false;
  /** Tries at one speed share a paragraph. */
  #tries: Tries | undefined;

  readonly listen = (event: SearchEvent): void => {
    switch (event.kind) {
      case 'search':
        this.#sentences = [];
        this.#places = [];
        this.graphs.push({ id: event.graph, sentences: this.#sentences, places: this.#places });
        this.#tries = undefined;
        this.#inter = event.inter;
        this.#add(
          `The best path ${event.inter ? 'between a GPU and a NIC' : 'between GPUs'} carries ${gbps(event.maxGbps)}, and a GPU can move ${gbps(event.totalGbps)} in all.`,
        );
        return;
      case 'attempt':
        if (this.#tries?.follows(event) !== true) {
          this.#addTries();
          this.#tries = new Tries(event, this.#inter);
        }
        this.#tries.add(event);
        return;
      case 'refused-path':
        this.#tries?.refuse(
          pathTroubles[event.reason.why],
          `${event.from} to ${event.to}${pathTrouble(event.reason)}`,
          placeOf(event),
        );
        return;
      case 'refused-entry':
        this.#tries?.refuse(entryTroubles[event.reason], event.nic, [event.nic]);
        return;
      case 'refused-exit':
        this.#tries?.refuse(exitTroubles[event.reason], `in by ${event.entry}, out by ${event.nic}`, [event.entry, event.nic]);
        return;
      case 'solution':
        this.#tries?.find(event);
        return;
      case 'ended':
        this.#tries?.end(event.outcome);
        return;
      case 'relaxed':
      case 'taken':
      case 'released':
        return;
      default:
        this.#addTries();
        this.#add(sentenceOf(event, this.#inter));
    }
  };

  #addTries(): void {
    for (const { text, places } of this.#tries?.sentences() ?? []) this.#add(text, places);
    this.#tries = undefined;
  }

  #add(text: string, places: readonly string[] = []): void {
    this.#sentences.push(text);
    this.#places.push(places);
  }
}

/** The link that has too little left, or the ends of the path. */
function placeOf({ from, to, reason }: Extract<SearchEvent, { kind: 'refused-path' }>): readonly string[] {
  return reason.why === 'bandwidth' ? [reason.linkFrom, reason.linkTo] : [from, to];
}

/** The sentence of an event. */
type OwnSentence = Exclude<
  SearchEvent,
  {
    kind:
      | 'search'
      | 'attempt'
      | 'refused-path'
      | 'refused-entry'
      | 'refused-exit'
      | 'solution'
      | 'ended'
      | 'relaxed'
      | 'taken'
      | 'released';
  }
>;

function sentenceOf(event: OwnSentence, inter: boolean): string {
  switch (event.kind) {
    case 'from-file':
      return 'The graph file has it, so nothing was searched.';
    case 'no-hardware':
      return 'NVLS needs an NVSwitch and GPUs of compute capability 9.0, which are not there.';
    case 'stopped':
      return stops[event.why];
    case 'duplicated':
      return `Each channel is fast enough to be split: ${event.from} became ${event.to}, of ${speeds(event.bwIntra, event.bwInter)} each.`;
    case 'simple-order':
      return 'Nothing was found at any speed. NCCL then takes one channel through the GPUs as they are numbered and counts it as 0.1 GB/s.';
    case 'result':
      return resultOf(event.graph, inter);
  }
}

const stops = {
  perfect: 'There cannot be more channels, so the first pass ends.',
  enough: 'All that a GPU can move is in use, so the first pass ends.',
  'out of steps': 'There is a solution and no step is left to look for a better one, so the first pass ends.',
  'nothing left to relax': 'Nothing is left to relax that might be better, so the first pass ends.',
} as const;

const entryTroubles = {
  collnet: 'a NIC cannot reduce, which this graph needs',
  bandwidth: 'the port of a NIC has too little left for another channel to come in',
  pair: 'the second channel of a pair has to come in where the first goes out',
} as const;

const exitTroubles = {
  plane: 'a channel may not go to another plane of the network',
  'other NIC': 'a tree goes out by the NIC that it came in by',
  pair: 'the second channel of a pair has to go out where the first comes in',
  rail: 'a channel may not go to another rail without crossing of NICs',
} as const;

const pathTroubles = {
  unconnected: 'there is no path',
  type: 'a path is farther than allowed',
  bandwidth: 'a link has too little left',
} as const;

/** Text of why a path cannot be taken, behind the names of its ends. */
export function pathTrouble(reason: PathRefusal): string {
  switch (reason.why) {
    case 'unconnected':
      return '';
    case 'type':
      return ` is ${pathTypeNames[reason.type]}${reason.back ? ' on the way back' : ''}, allowed was ${pathTypeNames[reason.allowed]}`;
    case 'bandwidth':
      return ` needs ${gbps(reason.needed)} from ${reason.linkFrom} to ${reason.linkTo}, where ${gbps(reason.left)} was left`;
  }
}

function resultOf(graph: ChannelGraph, inter: boolean): string {
  if (graph.nChannels === 0) return 'Result: no channel.';
  const count = counted(graph.nChannels, 'channel');
  const nics = inter ? `, NICs ${pathTypeNames[graph.typeInter]}` : '';
  return `Result: ${count} of ${speeds(graph.bwIntra, inter ? graph.bwInter : graph.bwIntra)}, GPUs at most ${pathTypeNames[graph.typeIntra]} apart${nics}.`;
}

/** Tries at the same speed, and their outcomes. */
class Tries {
  readonly #first: Settings & { readonly pass: 1 | 2 };
  #last: Settings;
  #count = 0;
  #outOfSteps = 0;
  /** Examples of each kind of obstacle, and their counts. */
  readonly #troubles = new Map<string, Map<string, { readonly places: readonly string[]; count: number }>>();
  /** The last improvement of each try that had one. */
  readonly #found: string[] = [];
  #improved: string | undefined;

  readonly #inter: boolean;

  constructor(first: Settings & { readonly pass: 1 | 2 }, inter: boolean) {
    this.#inter = inter;
    this.#first = first;
    this.#last = first;
  }

  /** True if a try belongs with these. */
  follows(settings: Settings & { readonly pass: 1 | 2 }): boolean {
    return (
      settings.pass === this.#first.pass && settings.bwIntra === this.#first.bwIntra && settings.bwInter === this.#first.bwInter
    );
  }

  add(settings: Settings): void {
    this.#last = settings;
    this.#count++;
  }

  refuse(trouble: string, example: string, places: readonly string[]): void {
    let examples = this.#troubles.get(trouble);
    if (examples === undefined)
      this.#troubles.set(trouble, (examples = new Map<string, { places: readonly string[]; count: number }>()));
    const known = examples.get(example);
    if (known === undefined) examples.set(example, { places, count: 1 });
    else known.count++;
  }

  find({ nChannels, gbps: speed, better }: Extract<SearchEvent, { kind: 'solution' }>): void {
    this.#improved = `${nChannels} × ${gbps(speed)} with ${describe(this.#last, this.#inter)}: ${improvements[better]}`;
  }

  end(outcome: 'perfect' | 'all tried' | 'out of steps'): void {
    if (outcome === 'out of steps') this.#outOfSteps++;
    if (this.#improved !== undefined) this.#found.push(this.#improved);
    this.#improved = undefined;
  }

  sentences(): { readonly text: string; readonly places: readonly string[] }[] {
    const speed = speeds(this.#first.bwIntra, this.#inter ? this.#first.bwInter : this.#first.bwIntra);
    const tries =
      this.#count === 1
        ? `one try, ${describe(this.#first, this.#inter)}`
        : `${this.#count} tries, from ${describe(this.#first, this.#inter)} to ${describe(this.#last, this.#inter)}`;
    const steps = this.#outOfSteps > 0 ? `; ${this.#count === 1 ? 'it' : this.#outOfSteps} ran out of steps` : '';
    const sentences: { text: string; places: readonly string[] }[] = [];
    const add = (text: string, places: readonly string[] = []) => sentences.push({ text, places });
    add(`${this.#first.pass === 1 ? 'At' : 'Second pass, as many channels at'} ${speed}: ${tries}${steps}.`);
    for (const found of this.#found) add(`  Found ${found}.`);
    if (this.#found.length === 0) add('  Nothing better was found.');
    for (const [trouble, examples] of this.#troubles) {
      const [[example, { count, places }] = ['', { count: 0, places: [] }]] = [...examples].sort(
        (a, b) => b[1].count - a[1].count,
      );
      let all = 0;
      for (const each of examples.values()) all += each.count;
      const most = examples.size === 1 ? example : `${times(count)} ${example}`;
      add(`  In the way, ${times(all)}: ${trouble} (${most}).`, places);
    }
    return sentences;
  }
}

/** Texts of what made a solution better than the best before it. */
export const improvements = {
  first: 'the first solution',
  bandwidth: 'more bandwidth than before',
  hops: 'as much over fewer hops',
  heads: 'one more head',
} as const;

/** Text of the settings of a try, without its speed. */
export function describe(settings: Settings, inter: boolean): string {
  const parts = [
    settings.sameChannels ? 'all channels alike' : 'channels may differ',
    `GPUs up to ${pathTypeNames[settings.typeIntra]}`,
  ];
  if (inter) parts.push(`NICs up to ${pathTypeNames[settings.typeInter]}`);
  if (settings.pattern === Pattern.TREE) parts.unshift('plain trees');
  if (settings.crossNic === CrossNic.PAIRED) parts.push('NICs in pairs');
  if (settings.crossNic === CrossNic.ALLOWED) parts.push('any two NICs');
  return `(${parts.join(', ')})`;
}

/** Text of the speed of a channel. */
export function speeds(bwIntra: number, bwInter: number): string {
  return bwIntra === bwInter ? gbps(bwIntra) : `${gbps(bwIntra)} within and ${gbps(bwInter)} out of the host`;
}

function gbps(value: number): string {
  return `${Number(value.toFixed(3))} GB/s`;
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
