import { CommunicatorBook } from './communicator-book.js';
import { type LogLine, type Place, readLine } from './line.js';
import { readMessage, readVersion } from './message.js';
import type { LogModel } from './model.js';
import { ProcessBook } from './processes.js';
import type { Room } from './rank-record.js';
import { TableReader } from './table.js';
import { WarningBook } from './warnings.js';

/** Details of all ranks together: numbers of rings and trees, connections. About 16,384 ranks on 32 channels fit. */
const detailLimit = 64_000_000;

/**
 * Reads a log line by line, of one rank or of many, mixed as they come. Memory grows with ranks and channels, not with the
 * length of the log, and ends at fixed limits; what finds no room is counted.
 *
 *     const reader = new NcclLogReader();
 *     reader.openFile('job.log');
 *     for (const line of text.split('\n')) reader.readLine(line);
 *     const findings = checkLog(reader.finish());
 */
export class NcclLogReader {
  readonly #files: string[] = [];
  readonly #processes = new ProcessBook();
  readonly #room: Room = { left: detailLimit, refused: 0 };
  readonly #communicators = new CommunicatorBook(this.#room);
  readonly #tables = new TableReader();
  readonly #warnings = new WarningBook();
  readonly #cut = new Map<string, { count: number; readonly first: Place }>();
  #line = 0;
  #allLines = 0;
  #ncclLines = 0;
  #version: { readonly text: string; readonly place: Place } | undefined;
  #unfinished: Place | undefined;

  /** Lines from now on are of this file. */
  openFile(name: string): void {
    this.#files.push(name);
    this.#line = 0;
  }

  /** One line, without its end. */
  readLine(text: string): void {
    this.#line++;
    this.#allLines++;
    const place: Place = { file: Math.max(0, this.#files.length - 1), line: this.#line };
    const lines = readLine(text, this.#processes);
    if (lines === undefined) {
      this.#ncclLines++;
      this.#countCut('', place);
      return;
    }
    if (lines.length === 0) {
      this.#readOther(text, place);
      return;
    }
    this.#ncclLines++;
    for (const line of lines) this.#readNccl(line, place);
  }

  /** The last line, where the file does not end with the end of a line: it may be half of one. */
  readUnfinishedLine(text: string): void {
    const before = this.#ncclLines;
    this.readLine(text);
    if (this.#ncclLines > before || this.#processes.isHeadOf(text)) {
      this.#unfinished = { file: Math.max(0, this.#files.length - 1), line: this.#line };
    }
  }

  finish(): LogModel {
    const communicators = this.#communicators.finish();
    return {
      files: this.#files,
      lines: { all: this.#allLines, nccl: this.#ncclLines },
      communicators,
      processes: this.#processes.all,
      warnings: this.#warnings.list(),
      tables: this.#tables.tables,
      cutLines: this.#cut,
      unfinishedLine: this.#unfinished,
      left: { communicators: this.#communicators.refusedCommunicators, details: this.#room.refused, processes: this.#processes.refused },
    };
  }

  #readOther(text: string, place: Place): void {
    this.#tables.read(text, place);
    // `NCCL version` stands alone where NCCL_DEBUG=VERSION wrote it, or a launcher split the line.
    const at = text.indexOf('NCCL version ');
    const version = at < 0 ? undefined : readVersion(text.slice(at));
    if (version !== undefined) this.#version ??= { text: version, place };
    if (this.#processes.isHeadOf(text)) this.#countCut(this.#hostAtHead(text), place);
  }

  #hostAtHead(text: string): string {
    const host = text.slice(0, text.indexOf(':'));
    return host.slice(host.lastIndexOf(' ') + 1);
  }

  #readNccl(line: LogLine, place: Place): void {
    const process = this.#processes.find(line.host, line.pid);
    if (process === undefined) return;
    if (this.#version !== undefined) {
      this.#processes.hear(process, { kind: 'version', version: this.#version.text }, this.#version.place);
      this.#version = undefined;
    }
    if (line.level === 'WARN') {
      const record = this.#communicators.hear(line, process, { kind: 'other' }, place);
      this.#warnings.add(line, record?.rank, place);
      return;
    }
    const event = readMessage(line.message);
    if (line.torn || event.kind === 'cut') this.#countCut(line.host, place);
    if (event.kind === 'returned') this.#warnings.addReturn(line, event, place);
    if (!line.torn && this.#processes.hear(process, event, place)) return;
    this.#communicators.hear(line, process, event, place);
  }

  #countCut(host: string, place: Place): void {
    const known = this.#cut.get(host);
    if (known === undefined) this.#cut.set(host, { count: 1, first: place });
    else known.count++;
  }
}
