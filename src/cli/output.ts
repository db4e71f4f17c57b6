import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import type { WriteStream } from 'node:tty';
import { inspect } from 'node:util';
import { SystemError } from '../errors.js';
import { printable, printableJson } from '../printable.js';

/** One line on a terminal that is overwritten until the work is done. */
interface ProgressLine {
  /** Replaces the line by `text`, cut to the width of the terminal; it must be one line. */
  update(text: string): void;
  /** Clears the line, so that the next output begins at its start. */
  done(): void;
}

/** Moves to the line's start and erases to its end (ECMA-48: CR, EL). */
const WIPE = '\r\u001b[K';

/** A progress line on stderr, only where stderr is a terminal. */
export function progressLine(stream: Pick<WriteStream, 'isTTY' | 'columns' | 'write'> = process.stderr): ProgressLine {
  if (!stream.isTTY) return { update() {}, done() {} };
  let shown = '';
  return {
    update(text) {
      // Some terminals do not report their width.
      const line = printable(text).slice(0, (stream.columns > 0 ? stream.columns : 80) - 1);
      if (line === shown) return;
      shown = line;
      stream.write(WIPE + line);
    },
    done() {
      if (shown !== '') stream.write(WIPE);
      shown = '';
    },
  };
}

/** For an option that can be repeated. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** Examples for the end of a command's help: a description, and the command. */
export function examples(...pairs: readonly (readonly [purpose: string, command: string])[]): string {
  return `\nExamples:\n${pairs.map(([purpose, command]) => `  # ${purpose}\n  ${command}\n`).join('\n')}`;
}

/** Placeholder for ESC in our own coloured text. It is random, so files cannot contain it. */
const MARK = `\ufdd0${randomBytes(12).toString('hex')}`;
const marks = new RegExp(`${MARK}(\\d+)m`, 'g');

const styles = ['bold', 'dim', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan'] as const;
export type Colors = Readonly<Record<(typeof styles)[number], (text: string) => string>>;

/**
 * Colours for text that goes to `stream` by way of {@link print} or {@link shown}: real ones on a terminal, unless NO_COLOR
 * or TERM=dumb asks for none. What goes to a file or another program is plain, also where CI or FORCE_COLOR is set.
 */
export function colorsFor(stream: { readonly isTTY?: boolean }): Colors {
  const colored = stream.isTTY === true && !process.env['NO_COLOR'] && process.env['TERM'] !== 'dumb';
  return Object.fromEntries(
    styles.map((style) => {
      const [open, close] = inspect.colors[style] ?? [0, 0];
      return [style, (text: string) => (colored && text !== '' ? `${MARK}${open}m${text}${MARK}${close}m` : text)];
    }),
  ) as Colors;
}

/** Text without our own colours. */
export function plain(text: string): string {
  return text.replace(marks, '');
}

/** One line of output: our own colours, and no other control characters, which names from files may contain. */
export function shown(line: string): string {
  return printable(line).replace(marks, '\u001b[$1m');
}

/** Prints lines on stdout. All text of the commands goes this way, or that of {@link printJson} or {@link printData}. */
export function print(...lines: readonly string[]): void {
  process.stdout.write(lines.map((line) => `${shown(line)}\n`).join(''));
}

/** Replaces the last `height` lines on the terminal. */
export function replaceLines(height: number, lines: readonly string[]): void {
  const up = height === 0 ? '' : `\u001b[${height}A`;
  process.stdout.write(`${up}\r\u001b[J${lines.map((line) => `${shown(line)}\n`).join('')}`);
}

/** Prints a value as JSON: on one line, or indented. */
export function printJson(value: unknown, indent?: number): void {
  process.stdout.write(`${printableJson(value, indent)}\n`);
}

/** Prints the text of a file; a pipe gets it unchanged. */
export function printData(text: string): void {
  process.stdout.write(process.stdout.isTTY ? text.split('\n').map(printable).join('\n') : text);
}

/** Prints an error as one line on stderr, after the name of the command. */
export function complain(command: string, text: string): void {
  process.stderr.write(`${shown(`${colorsFor(process.stderr).red(`${command}:`)} ${text}`)}\n`);
}

/** Prints notes on stderr, so that a pipe gets only the result. */
export function printNotes(notes: readonly string[]): void {
  const colors = colorsFor(process.stderr);
  for (const note of notes) process.stderr.write(`${shown(`${colors.yellow('note:')} ${note}`)}\n`);
}

/** Writes a result where the user asked for it. */
export function writeFile(file: string, content: string | Uint8Array): void {
  try {
    writeFileSync(file, content);
  } catch (error) {
    throw fileError(error, file, 'written');
  }
}

/** The error of a file that cannot be read or written. */
export function fileError(error: unknown, file: string, done: 'read' | 'written'): SystemError {
  return new SystemError('FILE', fileProblem(error, done), { file, cause: error });
}

/** The same as a sentence about the file. */
export function fileProblem(error: unknown, done: 'read' | 'written'): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === 'EISDIR' ? 'is a folder: name a file in it' : `cannot be ${done}: ${message}`;
}
