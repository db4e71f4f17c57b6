import { writeFileSync } from 'node:fs';
import type { WriteStream } from 'node:tty';
import pc from 'picocolors';
import { SystemError } from '../errors.js';

/** One line on a terminal that is written over until the work is done. */
export interface ProgressLine {
  /** Shows `text` in place of what was there; longer than the terminal is cut, several lines are not allowed. */
  update(text: string): void;
  /** Wipes the line, so that what is printed next begins at its start. */
  done(): void;
}

/** Moves to the line's start and wipes to its end (ECMA-48: CR, EL). */
const wipe = '\r\u001b[K';

/**
 * A progress line on stderr, so that a table on stdout stays clean. It shows only where stderr is a terminal:
 * a log file gets no trace of it.
 */
export function progressLine(stream: Pick<WriteStream, 'isTTY' | 'columns' | 'write'> = process.stderr): ProgressLine {
  if (!stream.isTTY) return { update() {}, done() {} };
  let shown = '';
  return {
    update(text) {
      // Some terminals don't know how wide they are.
      const line = text.slice(0, (stream.columns > 0 ? stream.columns : 80) - 1);
      if (line === shown) return;
      shown = line;
      stream.write(wipe + line);
    },
    done() {
      if (shown !== '') stream.write(wipe);
      shown = '';
    },
  };
}

/** For an option that can be repeated. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** Examples for the end of a command's help: a line of what it does, and the command. */
export function examples(...pairs: readonly (readonly [purpose: string, command: string])[]): string {
  return `\nExamples:\n${pairs.map(([purpose, command]) => `  # ${purpose}\n  ${command}\n`).join('\n')}`;
}

/**
 * Colours for text that goes to `stream`: real ones on a terminal, unless NO_COLOR or TERM=dumb asks for none. What
 * goes to a file or another program is plain, also where CI or FORCE_COLOR is set.
 */
export function colorsFor(stream: { readonly isTTY?: boolean }): ReturnType<typeof pc.createColors> {
  return pc.createColors(stream.isTTY === true && !process.env['NO_COLOR'] && process.env['TERM'] !== 'dumb');
}

/** Notes go to stderr, so that what a pipe gets is the machine alone. */
export function printNotes(notes: readonly string[]): void {
  const colors = colorsFor(process.stderr);
  for (const note of notes) process.stderr.write(`${colors.yellow('note:')} ${note}\n`);
}

/** Writes a result where the user asked for it. */
export function writeFile(file: string, content: string): void {
  try {
    writeFileSync(file, content);
  } catch (error) {
    throw new SystemError('FILE', `cannot be written: ${(error as Error).message}`, { file, cause: error });
  }
}
