import { renameSync, writeFileSync } from '#platform/files';
import type { Board } from '../device/board.js';
import { hostname, wallClockMs } from '../platform/platform.js';
import { warnNow } from '../warn.js';
import { fileNamed } from './append-file.js';
import { flightRecording } from './flight-recording.js';

/** Files that SIGUSR2 writes: one hook serves all. */
const files = new Set<RecordingFile>();

function writeAll(): void {
  for (const file of files) file.write();
}

/** The file of a rank's last calls (TCCL_RECORD): written after a failure and at SIGUSR2, each time as a whole. */
export class RecordingFile {
  readonly #board: Board;
  readonly #path: string;

  /** @param pattern file name in which `%r` stands for the rank, `%h` for the host, `%p` for the process */
  constructor(pattern: string, rank: number, board: Board) {
    this.#board = board;
    this.#path = fileNamed(pattern, { '%r': String(rank), '%p': String(process.pid) });
    if (files.size === 0) process.on('SIGUSR2', writeAll);
    files.add(this);
  }

  /** A failure is a warning: calls do not fail because their record cannot be written. */
  write(): void {
    const recording = flightRecording(this.#board.bytes(), hostname(), wallClockMs());
    if (recording === undefined) return;
    try {
      // Readers of a folder never see a part of it.
      writeFileSync(`${this.#path}.part`, JSON.stringify(recording));
      renameSync(`${this.#path}.part`, this.#path);
    } catch (error) {
      warnNow(`the record of calls (TCCL_RECORD) cannot be written: ${(error as Error).message}`);
    }
  }

  close(): void {
    files.delete(this);
    if (files.size === 0) process.removeListener('SIGUSR2', writeAll);
  }
}
