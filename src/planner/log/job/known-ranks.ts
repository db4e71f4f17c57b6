import { rankOfFile } from '../deaths/stream.js';
import { excerpt } from '../lines/excerpt.js';
import type { LogPlace } from '../lines/line.js';

/** Ranks of a job apart from lines of NCCL: from marks of lines, names of files and the words of launchers. */
export interface KnownRanks {
  /** Lower bound of the number of ranks; 0 where nothing names one. */
  readonly count: number;
  /** The last line of each rank that has lines of its own. */
  readonly last: ReadonlyMap<number, { readonly text: string; readonly place: LogPlace }>;
}

const RANK_LIMIT = 100_000;
const TEXT_LENGTH = 120;
const markForm = /^\s{0,2}(?:\[(?:rank|Rank |RANK |default)?(\d{1,6})\](?:<std(?:err|out)>)?:? ?|(\d{1,6}): {1,2}(?=\D))/;
/** torchrun: `global_ranks=[8, 9]`, `global_world_sizes=[16, 16]`; programs: `WORLD_SIZE=16`, `world size: 16`. */
const sizeForm = /\b(?:global_world_sizes=\[|world[_ -]?size['"]?\s?(?:[=:]|is|of)\s?['"]?)(\d{1,6})\b/i;

/** Collects {@link KnownRanks} from lines that are not NCCL's. */
export class RankTracker {
  readonly #last = new Map<number, { text: string; place: LogPlace }>();
  #count = 0;
  #fileRank: number | undefined;
  /** The last line of a file that belongs to one rank. */
  #line: { text: string; place: LogPlace } | undefined;

  openFile(name: string): void {
    this.#closeFile();
    this.#fileRank = rankOfFile(name);
  }

  read(text: string, place: LogPlace): void {
    if (this.#fileRank !== undefined) {
      if (text.trim() !== '') this.#line = { text, place };
    } else {
      const match = markForm.exec(text);
      if (match !== null && match[0].length < text.length)
        this.#keep(Number(match[1] ?? match[2]), text.slice(match[0].length), place);
    }
    if (text.includes('orld') || text.includes('ORLD')) {
      const size = Number(sizeForm.exec(text)?.[1] ?? 0);
      if (size <= RANK_LIMIT) this.#count = Math.max(this.#count, size);
    }
  }

  finish(): KnownRanks {
    this.#closeFile();
    for (const rank of this.#last.keys()) this.#count = Math.max(this.#count, rank + 1);
    return { count: this.#count, last: this.#last };
  }

  #closeFile(): void {
    if (this.#fileRank !== undefined && this.#line !== undefined) this.#keep(this.#fileRank, this.#line.text, this.#line.place);
    this.#fileRank = undefined;
    this.#line = undefined;
  }

  #keep(rank: number, text: string, place: LogPlace): void {
    if (rank >= RANK_LIMIT) return;
    this.#last.set(rank, { text: excerpt(text, TEXT_LENGTH), place });
  }
}
