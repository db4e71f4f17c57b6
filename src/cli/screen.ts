import { counted } from '../counted.js';
import { printable } from '../printable.js';
import { plain, replaceLines } from './output.js';

/** Columns of a terminal, some of which do not report it. */
const DEFAULT_COLUMNS = 80;
/** Narrower ones get lines of this width, which they fold themselves. */
const LEAST_COLUMNS = 20;

/** Columns of the terminal that stdout is; undefined if it is none: lines then have any length. */
export function screenWidth(): number | undefined {
  return process.stdout.isTTY ? Math.max(LEAST_COLUMNS, process.stdout.columns || DEFAULT_COLUMNS) : undefined;
}

function widthOf(text: string): number {
  return printable(plain(text)).length;
}

/** Spaces that a line may be folded at: none within backquotes, so that a command can be copied. */
const SPACES = / (?=(?:[^`]*`[^`]*`)*[^`]*$)/;

/** Lines of at most `width` characters, folded at spaces; those after the first begin `indent` characters to the right. */
export function folded(line: string, width: number | undefined, indent = 2 + line.search(/\S|$/)): string[] {
  if (width === undefined || widthOf(line) <= width) return [line];
  const lines: string[] = [];
  let current = '';
  const room = Math.max(1, width - indent);
  for (const word of line
    .slice(line.search(/\S/))
    .split(SPACES)
    .flatMap((each) => (widthOf(each) <= room ? [each] : each.split(' ')))
    .flatMap((each) => pieces(each, room))) {
    const next = current === '' ? ' '.repeat(lines.length === 0 ? line.search(/\S/) : indent) + word : `${current} ${word}`;
    if (current === '' || widthOf(next) <= width) current = next;
    else {
      lines.push(current);
      current = ' '.repeat(indent) + word;
    }
  }
  return [...lines, current];
}

/** Parts of a word that is longer than a line; a coloured one stays whole. */
function pieces(word: string, room: number): string[] {
  if (widthOf(word) <= room || plain(word) !== word) return [word];
  return Array.from({ length: Math.ceil(word.length / room) }, (_, i) => word.slice(i * room, (i + 1) * room));
}

/** A table whose last column has sentences. */
interface Table {
  readonly heading: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Columns with text; those with numbers are aligned to the right. */
  readonly texts: readonly number[];
  /** Columns that a narrow terminal lacks, the least important first. */
  readonly spare: readonly number[];
  /** Width from which on the last column is wide enough for its sentences. */
  readonly enough: number;
}

/** Lines of a table, two spaces to the right: on a narrow terminal without spare columns, and the last one folded. */
export function tableLines({ heading, rows, texts, spare, enough }: Table, width: number | undefined): string[] {
  const all = [heading, ...rows];
  const widths = heading.map((_, column) => Math.max(...all.map((cells) => widthOf(cells[column] ?? ''))));
  const last = heading.length - 1;
  const before = (columns: readonly number[]) => columns.reduce((sum, column) => sum + (widths[column] ?? 0) + 2, 2);
  let kept = heading.map((_, column) => column).slice(0, last);
  const needed = Math.min(widths[last] ?? 0, enough);
  for (const column of spare)
    if (width !== undefined && before(kept) + needed > width) kept = kept.filter((each) => each !== column);
  const indent = before(kept);
  const isTight = width !== undefined && width - indent < Math.min(widths[last] ?? 0, LEAST_LAST);
  return all.flatMap((cells) => {
    const padded = kept.map((column) => {
      const cell = cells[column] ?? '';
      const gap = ' '.repeat(Math.max(0, (widths[column] ?? 0) - widthOf(cell)));
      return texts.includes(column) ? cell + gap : gap + cell;
    });
    const head = `  ${padded.join('  ')}`;
    const sentences = cells[last] ?? '';
    // Where the last column would be a word wide, it stands below the others.
    if (isTight) return [head.trimEnd(), `${' '.repeat(BELOW)}${sentences}`].flatMap((line) => folded(line, width, BELOW));
    const [first = '', ...more] = folded(`${' '.repeat(indent)}${sentences}`, width, indent);
    return [`${head}  ${first.slice(indent)}`.trimEnd(), ...more];
  });
}

/** Least width of a last column beside the others, and its place below them. */
const LEAST_LAST = 16;
const BELOW = 4;

/** The first lines, as many as there is room for; the last then says how many more there are. */
export function fitting(lines: readonly string[], room: number, width: number): readonly string[] {
  if (lines.length <= room) return lines;
  const left = `… ${counted(lines.length - room + 1, 'more line')} on a higher terminal`;
  return [...lines.slice(0, room - 1), left.slice(0, width)];
}

/** Lines at the end of a terminal's output that are drawn again in the same place, and when its size changes. */
export class LiveBlock {
  #content: (width: number) => readonly string[] = () => [];
  /** Widths of the lines that stand there. */
  #standing: readonly number[] = [];
  readonly #redraw = (): void => this.#draw();

  constructor() {
    process.stdout.on('resize', this.#redraw);
  }

  /** Replaces the lines by `content`, which gets the width. Longer ones are folded, and the last says what the height lacks. */
  draw(content: (width: number) => readonly string[]): void {
    this.#content = content;
    this.#draw();
  }

  #draw(): void {
    const width = screenWidth() ?? DEFAULT_COLUMNS;
    const rows = process.stdout.rows || 24;
    const all = this.#content(width).flatMap((line) => folded(line, width));
    const room = Math.max(1, rows - 1);
    const lines = fitting(all, room, width);
    // A terminal that became narrower has folded the lines that stood there.
    const height = this.#standing.reduce((sum, each) => sum + Math.max(1, Math.ceil(each / width)), 0);
    replaceLines(Math.min(height, rows - 1), lines);
    this.#standing = lines.map(widthOf);
  }

  /** Leaves the lines as they are: the next output stands below them. */
  end(): void {
    this.#standing = [];
    this.#content = () => [];
    process.stdout.off('resize', this.#redraw);
  }
}
