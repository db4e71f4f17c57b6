import { closeSync, createWriteStream, existsSync, mkdirSync, openSync } from '#platform/files';
import { dirname, join, resolve } from '#platform/paths';
import { PassThrough, type Readable, type Writable, finished } from '#platform/streams';
import { InternalError, SystemError } from '../../errors.js';
import { EqualErrors } from './equal-errors.js';
import { LinePrefixer, type LinePlace } from './line-prefixer.js';

export type OutputStream = 'stdout' | 'stderr';

/** Destination of the ranks' output. */
export type RankOutput =
  /** Lines of all ranks in one stream, each with the prefix of its rank, or of all ranks that wrote it. */
  | {
      readonly kind: 'merged';
      readonly stdout: Writable;
      readonly stderr: Writable;
      readonly prefix: (ranks: readonly number[], stream: OutputStream) => string;
    }
  /** Directly to the launcher's own output, byte by byte: for a single rank. */
  | { readonly kind: 'inherited' }
  /** stdout and stderr of each rank in a file `rank-N.log` in a directory, which is created if necessary. */
  | { readonly kind: 'files'; readonly directory: string };

/** Takes the output of ranks. */
export interface OutputSinks {
  /** stdout and stderr of a process of this host. */
  stdio(rank: number): 'inherit' | 'pipe' | number;
  /**
   * Writes a rank's output to its destination until `source` closes.
   * @returns resolves when all of it was written
   */
  take(rank: number, stream: OutputStream, source: Readable): Promise<void>;
}

/** Output of all ranks of a job, which the launcher writes. */
export class JobOutput implements OutputSinks {
  readonly #output: RankOutput;
  /** File descriptors by rank. */
  readonly #logs: ReadonlyMap<number, number>;
  readonly #terminal: LinePlace = { isTerminal: true };
  readonly #places = new Map<Writable, LinePlace>();
  readonly #errors = new EqualErrors({ open: (ranks) => this.#linesOf(ranks, 'stderr') });
  /** Called when a destination fails. */
  onUnwritable: (error: NodeJS.ErrnoException) => void = () => undefined;

  /**
   * @param attached the rank that writes to the launcher's own output, if there is one
   * @throws SystemError `FILE` when the directory or its files cannot be made
   */
  constructor(
    output: RankOutput,
    firstRank: number,
    nRanks: number,
    readonly attached?: number,
  ) {
    this.#output = output;
    this.#logs = output.kind === 'files' ? openLogs(output.directory, firstRank, nRanks) : new Map();
  }

  stdio(rank: number): 'inherit' | 'pipe' | number {
    if (rank === this.attached) return 'inherit';
    return this.#logs.get(rank) ?? (this.#output.kind === 'inherited' ? 'inherit' : 'pipe');
  }

  /** True if a rank reads and writes the launcher's own terminal, if that has one. */
  get sharesTerminal(): boolean {
    return this.attached !== undefined || this.#output.kind === 'inherited';
  }

  async take(rank: number, stream: OutputStream, source: Readable): Promise<void> {
    const destination = this.#destination(rank, stream).setMaxListeners(0);
    const lines = this.#output.kind === 'merged' ? this.#linesOf([rank], stream) : new PassThrough();
    const first = this.#gathersErrors && stream === 'stderr' ? this.#errors.watch(rank) : lines;
    // The pipe may be destroyed before its end is read; the last line must be printed nevertheless.
    source.pipe(first, { end: false });
    source.once('close', () => first.end());

    if (first !== lines) first.pipe(lines);
    if (lines instanceof PassThrough) lines.pipe(destination, { end: false });
    destination.once('error', (error: NodeJS.ErrnoException) => {
      // The reader has closed the pipe, as `head` does after ten lines; or the disk is full, which the command reports.
      if (lines instanceof PassThrough) lines.resume();
      this.onUnwritable(error);
    });
    await finished(lines);
  }

  /** True if lines show their ranks, so that equal ones of several ranks can be printed once. */
  get #gathersErrors(): boolean {
    return this.#output.kind === 'merged' && this.#output.prefix([0], 'stderr') !== '';
  }

  /** Lines of some ranks in the merged output. */
  #linesOf(ranks: readonly number[], stream: OutputStream): Writable {
    const output = this.#output;
    if (output.kind !== 'merged') throw new InternalError('INTERNAL', 'lines of ranks are merged only in one stream');
    return new LinePrefixer(output.prefix(ranks, stream), output[stream], this.#placeOf(output[stream]));
  }

  #destination(rank: number, stream: OutputStream): Writable {
    const output = this.#output;
    if (output.kind === 'merged') return output[stream];
    const log = this.#logs.get(rank);
    if (log === undefined) return process[stream];
    return createWriteStream('', { fd: log, autoClose: false });
  }

  /** The place of a stream's lines. A terminal is one place: standard output and errors mostly go to the same. */
  #placeOf(stream: Writable): LinePlace {
    if ((stream as Writable & { readonly isTTY?: boolean }).isTTY === true) return this.#terminal;
    const place = this.#places.get(stream) ?? { isTerminal: false };
    this.#places.set(stream, place);
    return place;
  }

  /** Closes the files. */
  close(): void {
    for (const log of this.#logs.values()) closeSync(log);
  }
}

function openLogs(directory: string, firstRank: number, nRanks: number): Map<number, number> {
  try {
    makeDirectory(directory);
    const ranks = Array.from({ length: nRanks }, (_, i) => firstRank + i);
    return new Map(ranks.map((rank) => [rank, openSync(join(directory, `rank-${rank}.log`), 'w')]));
  } catch (error) {
    throw new SystemError('FILE', `cannot write the ranks' output to ${directory}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/**
 * Creates a directory and its parents. Node's recursive mkdir never returns where a file system such as /proc reports that a
 * directory does not exist instead of refusing.
 */
function makeDirectory(directory: string): void {
  const missing: string[] = [];
  for (let path = resolve(directory); !existsSync(path); path = dirname(path)) missing.push(path);
  for (const path of missing.reverse()) mkdirSync(path);
}
