import type { LogLine, Place } from './line.js';
import type { LoggedWarning } from './model.js';

/** The most kinds of warnings that are kept, and places of one. */
const kindLimit = 500;
const placeLimit = 50;

interface Growing extends LoggedWarning {
  count: number;
  readonly places: Place[];
  readonly ranks: string[];
}

/** Warnings, those alike together: a fabric that fails writes the same line ten thousand times. */
export class WarningBook {
  readonly #kinds = new Map<string, Growing>();

  /** @param rank undefined or -1 where the line's communicator is not known */
  add(line: LogLine, rank: number | undefined, place: Place): void {
    const key = `${line.source?.replace(/:\d+$/, '') ?? ''} ${alike(line.message)}`;
    let known = this.#kinds.get(key);
    if (known === undefined) {
      if (this.#kinds.size >= kindLimit) return;
      this.#kinds.set(key, known = { text: line.message, source: line.source, count: 0, places: [], ranks: [] });
    }
    known.count++;
    if (known.places.length < placeLimit) known.places.push(place);
    const who = rank === undefined || rank < 0 ? `${line.host}:${line.pid}` : `rank ${rank}`;
    if (known.ranks.length < placeLimit && !known.ranks.includes(who)) known.ranks.push(who);
  }

  /** A function that gave an error back: told only where nothing else tells of an error. */
  addReturn(line: LogLine, { where, result }: { readonly where: string; readonly result: number }, place: Place): void {
    // 7 is ncclInProgress, which is no error.
    if (result === 0 || result === 7) return;
    this.add({ ...line, source: 'returned', message: `${where.replace(/:\d+$/, '')} gave back ${resultName(result)}` }, undefined, place);
  }

  list(): LoggedWarning[] {
    return [...this.#kinds.values()];
  }
}

const results = ['ncclSuccess', 'ncclUnhandledCudaError', 'ncclSystemError', 'ncclInternalError', 'ncclInvalidArgument', 'ncclInvalidUsage', 'ncclRemoteError', 'ncclInProgress', 'ncclTimeout'];

function resultName(result: number): string {
  return results[result] ?? `error ${result}`;
}

/** The text without what differs from one line to the next: addresses, numbers. */
function alike(text: string): string {
  return text.replaceAll(/0x[0-9a-f]+|\d+/gi, '#').slice(0, 300);
}
