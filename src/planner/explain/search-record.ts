import type { ChannelGraph, GraphId } from '../graph/graph.js';
import { pathTrouble } from '../graph/search-report.js';
import type { SearchEvent, Settings } from '../graph/trace.js';

/** Record of one search, with the figures that answers use. */
export interface SearchRecord {
  readonly graph: GraphId;
  /** Speeds above are not tried: the best path carries no more; GB/s. */
  readonly maxGBps: number;
  /** Total bandwidth of a GPU, GB/s. */
  readonly totalGBps: number;
  /** In the order in which they were tried. */
  readonly speeds: readonly SpeedRecord[];
  readonly stopped: Extract<SearchEvent, { kind: 'stopped' }>['why'] | 'from-file' | 'no-hardware' | undefined;
  readonly duplicated: { readonly from: number; readonly to: number; readonly gbps: number } | undefined;
  /** True if nothing was found, so that NCCL uses the order of the GPUs' numbers. */
  readonly simpleOrder: boolean;
  readonly result: ChannelGraph | undefined;
}

/** All tries at one speed in one pass. */
export interface SpeedRecord {
  readonly pass: 1 | 2;
  readonly bwIntra: number;
  readonly bwInter: number;
  readonly tries: number;
  /** Number of these that ended because no steps were left. */
  readonly outOfSteps: number;
  /** The last one that was better than all before; undefined without one. */
  readonly found: { readonly nChannels: number; readonly gbps: number } | undefined;
  /** Obstacles, most frequent first. */
  readonly obstacles: readonly Obstacle[];
}

export interface Obstacle {
  readonly kind: 'path type' | 'bandwidth' | 'unconnected' | 'port' | 'rail' | 'pair' | 'other';
  readonly times: number;
  /** The most frequent case of the first ones, in words. */
  readonly example: string;
}

/** Records the searches of one node for answers: a few numbers for each speed. */
export class SearchRecorder {
  readonly records: SearchRecord[] = [];
  #speeds: Open[] = [];

  readonly listen = (event: SearchEvent): void => {
    if (event.kind === 'search') {
      this.#speeds = [];
      this.records.push({
        graph: event.graph,
        maxGBps: event.maxGbps,
        totalGBps: event.totalGbps,
        speeds: [],
        stopped: undefined,
        duplicated: undefined,
        simpleOrder: false,
        result: undefined,
      });
      return;
    }
    this.#at(event);
  };

  #at(event: Exclude<SearchEvent, { kind: 'search' }>): void {
    const speed = this.#speeds.at(-1);
    switch (event.kind) {
      case 'attempt':
        if (speed?.isSame(event) === true) speed.tries++;
        else this.#speeds.push(new Open(event));
        return;
      case 'refused-path':
        return speed?.refuse(kindOfPath[event.reason.why], () => `${event.from} to ${event.to}${pathTrouble(event.reason)}`);
      case 'refused-entry':
        return speed?.refuse(
          event.reason === 'bandwidth' ? 'port' : event.reason === 'pair' ? 'pair' : 'other',
          () => `${event.nic} as the way in`,
        );
      case 'refused-exit':
        return speed?.refuse(
          event.reason === 'rail' || event.reason === 'plane' ? 'rail' : event.reason === 'pair' ? 'pair' : 'other',
          () => `in by ${event.entry}, out by ${event.nic}`,
        );
      case 'solution':
        if (speed !== undefined) speed.found = { nChannels: event.nChannels, gbps: event.gbps };
        return;
      case 'ended':
        if (speed !== undefined && event.outcome === 'out of steps') speed.outOfSteps++;
        return;
      case 'relaxed':
      case 'taken':
      case 'released':
        return;
      case 'from-file':
      case 'no-hardware': {
        this.#set({ stopped: event.kind });
        return;
      }
      case 'stopped': {
        this.#set({ stopped: event.why });
        return;
      }
      case 'duplicated': {
        this.#set({ duplicated: { from: event.from, to: event.to, gbps: event.bwIntra } });
        return;
      }
      case 'simple-order': {
        this.#set({ simpleOrder: true });
        return;
      }
      case 'result': {
        this.#set({ result: event.graph, speeds: this.#speeds.map((each) => each.close()) });
        return;
      }
    }
  }

  #set(values: Partial<SearchRecord>): void {
    const last = this.records.pop();
    if (last !== undefined) this.records.push({ ...last, ...values });
  }
}

const kindOfPath = { unconnected: 'unconnected', type: 'path type', bandwidth: 'bandwidth' } as const;

/** Number of refusals of a kind at one speed that are kept as examples. */
const CLOSELY_SEEN = 500;

/** A speed that is still being tried. */
class Open {
  tries = 1;
  outOfSteps = 0;
  found: SpeedRecord['found'];
  readonly #first: Settings & { readonly pass: 1 | 2 };
  readonly #refusals = new Map<Obstacle['kind'], { times: number; readonly examples: Map<string, number> }>();

  constructor(first: Settings & { readonly pass: 1 | 2 }) {
    this.#first = first;
  }

  isSame(other: Settings & { readonly pass: 1 | 2 }): boolean {
    return other.pass === this.#first.pass && other.bwIntra === this.#first.bwIntra && other.bwInter === this.#first.bwInter;
  }

  /** Of millions of refusals only the first are recorded in detail. */
  refuse(kind: Obstacle['kind'], example: () => string): void {
    let refusals = this.#refusals.get(kind);
    if (refusals === undefined) this.#refusals.set(kind, (refusals = { times: 0, examples: new Map() }));
    if (refusals.times++ >= CLOSELY_SEEN) return;
    const text = example();
    refusals.examples.set(text, (refusals.examples.get(text) ?? 0) + 1);
  }

  close(): SpeedRecord {
    const { pass, bwIntra, bwInter } = this.#first;
    const obstacles = [...this.#refusals]
      .map(([kind, { times, examples }]): Obstacle => {
        let example = '';
        let most = 0;
        for (const [text, count] of examples) {
          if (count > most) [most, example] = [count, text];
        }
        return { kind, times, example };
      })
      .sort((a, b) => b.times - a.times);
    return { pass, bwIntra, bwInter, tries: this.tries, outOfSteps: this.outOfSteps, found: this.found, obstacles };
  }
}
