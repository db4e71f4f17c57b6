/** A place in the input: the file, by its position among those given, and the line, 1-based. */
export interface TextPlace {
  readonly file: number;
  readonly line: number;
}

/** A line of a tool's output, with its place. */
export interface ToolLine {
  readonly text: string;
  readonly place: TextPlace;
}

/** Output of a tool among other lines, and the way to read it. A reader gives facts; it finds no faults. */
export interface ToolFormat<Name extends string, Facts> {
  readonly name: Name;
  /** Commands whose output it reads, as people type them. */
  readonly commands: readonly string[];
  /** Lower-case texts, one of which is in the first line. */
  readonly needles: readonly string[];
  /** The first line of an output. */
  readonly begins: RegExp;
  /** The line with which another output of the same tool begins, where one output has several first lines. */
  readonly restarts?: RegExp;
  /** Lines that belong to an output; others are skipped. */
  readonly holds: RegExp;
  /** So many other lines in a row end an output; default {@link PATIENCE}. */
  readonly patience?: number;
  /** Undefined where the lines turn out to be none of the tool's. */
  readonly parse: (lines: readonly ToolLine[]) => Facts | undefined;
}

/** Lines of other programs after which an output is over. */
export const PATIENCE = 40;

/** The facts of one output. */
export interface ToolOutput<Name extends string, Facts> {
  readonly tool: Name;
  /** The host that a heading of the file names, or ''. */
  readonly host: string;
  readonly facts: Facts;
  readonly place: TextPlace;
}

/** Text without the controls that colour it on a terminal. */
export function plainText(text: string): string {
  return text.includes('\u001b') ? text.replaceAll(/\u001b\[[\d;]*m/g, '') : text;
}

/** `1.5G`, `64M`, `512Mi`, `65536` (of `unit` bytes), `unlimited` (Infinity); undefined for other words. */
export function bytesIn(text: string, unit = 1): number | undefined {
  if (/^unlimited$/i.test(text)) return Infinity;
  const [, number, prefix = ''] = /^(\d+(?:\.\d+)?) ?([KMGTP]?)(?:i?B|i)?$/i.exec(text) ?? [];
  if (number === undefined) return undefined;
  const power = ' KMGTP'.indexOf(prefix.toUpperCase() || ' ');
  return Number(number) * (power <= 0 ? unit : 1024 ** power);
}
