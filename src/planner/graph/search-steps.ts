import { counted } from '../../counted.js';
import type { GraphId } from './graph.js';
import { describe, improvements, pathTrouble, speeds } from './search-report.js';
import type { SearchEvent } from './trace.js';

/** The first steps of the search of one graph. */
export interface GraphSteps {
  readonly id: GraphId;
  readonly lines: string[];
  /** Number of lines that were left out. */
  more: number;
}

/**
 * Writes down searches one step at a time: the settings of each try, the paths that a channel takes and gives back, with what
 * their links have left, and what was in the way.
 *
 *     try 1 at 48 GB/s (all channels alike, GPUs up to NVL, NICs up to PIX), 256 steps
 *       + NET/0-0 to GPU/0-1b000  48 GB/s   left: NET/0-0 to NIC/0-18000 2, …
 *       - …                                 given back
 *       x GPU/0-1b000 to NET/0-1 is PXN, allowed was PIX
 *       = 1 channel of 48 GB/s: the first solution
 */
export class SearchSteps {
  readonly graphs: GraphSteps[] = [];
  readonly #most: number;
  #inter = false;
  #tries = 0;

  /** @param most lines of a graph */
  constructor(most: number) {
    this.#most = most;
  }

  readonly listen = (event: SearchEvent): void => {
    if (event.kind === 'search') {
      this.#inter = event.inter;
      this.#tries = 0;
      this.graphs.push({ id: event.graph, lines: [], more: 0 });
      return;
    }
    const graph = this.graphs.at(-1);
    if (graph === undefined || event.kind === 'relaxed' || event.kind === 'result') return;
    if (event.kind === 'attempt') this.#tries++;
    if (graph.lines.length < this.#most) graph.lines.push(this.#lineOf(event));
    else graph.more++;
  };

  #lineOf(event: Exclude<SearchEvent, { kind: 'search' | 'relaxed' | 'result' }>): string {
    switch (event.kind) {
      case 'from-file':
        return 'the graph file has it';
      case 'no-hardware':
        return 'there is no NVSwitch, or no GPU of compute capability 9.0';
      case 'attempt': {
        const speed = speeds(event.bwIntra, this.#inter ? event.bwInter : event.bwIntra);
        return `try ${this.#tries} at ${speed} ${describe(event, this.#inter)}, ${counted(event.steps, 'step')}`;
      }
      case 'taken':
      case 'released': {
        const left = event.left().map(({ from, to, gbps }) => `${from} to ${to} ${Number(gbps.toFixed(3))}`);
        const sign = event.kind === 'taken' ? '+' : '-';
        return `  ${sign} ${event.from} to ${event.to}  ${Number(event.gbps.toFixed(3))} GB/s   left: ${left.join(', ')}`;
      }
      case 'refused-path':
        return `  x ${event.from} to ${event.to}${pathTrouble(event.reason)}`;
      case 'refused-entry':
        return `  x in by ${event.nic}: ${event.reason}`;
      case 'refused-exit':
        return `  x in by ${event.entry}, out by ${event.nic}: ${event.reason}`;
      case 'solution':
        return `  = ${counted(event.nChannels, 'channel')} of ${Number(event.gbps.toFixed(3))} GB/s: ${improvements[event.better]}`;
      case 'ended':
        return `  ${event.outcome}, ${counted(Math.max(0, event.stepsLeft), 'step')} left`;
      case 'stopped':
        return `first pass ends: ${event.why}`;
      case 'duplicated':
        return `copied: ${event.from} become ${counted(event.to, 'channel')}, of ${speeds(event.bwIntra, event.bwInter)} each`;
      case 'simple-order':
        return 'nothing was found: one channel through the GPUs as they are numbered';
    }
  }
}
