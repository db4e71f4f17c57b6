import { fitText, type Mark, moved, type Picture, textMark, textWidth } from './picture.js';

/** A part of a sheet, below the one before. */
export type Block =
  | { readonly kind: 'head' | 'text' | 'item'; readonly text: string }
  | { readonly kind: 'lines'; readonly lines: readonly string[] }
  | { readonly kind: 'table'; readonly head: readonly string[]; readonly rows: readonly (readonly string[])[] }
  | { readonly kind: 'picture'; readonly picture: Picture };

const MARGIN = 20;
/** Width of text; pictures may be wider. */
const TEXT_WIDTH = 940;
const LINE = 18;
const MOST_CELL = 420;

/**
 * Texts, tables and pictures below each other, as one picture: a view that is more than a drawing is saved like this.
 *
 *     title
 *     head          a line of its own
 *     text          as many lines as it needs
 *     │ a │ b │     a table
 *     [picture]
 */
export function sheet(title: string, blocks: readonly Block[]): Picture {
  const marks: Mark[] = [textMark('title', MARGIN, 34, title)];
  let [width, y] = [TEXT_WIDTH + 2 * MARGIN, 52];
  for (const block of blocks) {
    const made = drawn(block);
    marks.push(...moved(made.marks, MARGIN, y));
    width = Math.max(width, made.width + 2 * MARGIN);
    y += made.height;
  }
  return { title, width: Math.ceil(width), height: Math.ceil(y + MARGIN), marks };
}

type Drawn = Pick<Picture, 'width' | 'height' | 'marks'>;

function drawn(block: Block): Drawn {
  switch (block.kind) {
    case 'head':
      return { width: 0, height: LINE + 14, marks: [textMark('head', 0, LINE + 6, block.text)] };
    case 'text':
      return textLines(wrapped(block.text, TEXT_WIDTH), 0);
    case 'item':
      return textLines(wrapped(block.text, TEXT_WIDTH - 20), 20);
    case 'lines':
      return {
        width: Math.max(0, ...block.lines.map((line) => textWidth(line, 11))),
        height: LINE * block.lines.length,
        marks: block.lines.map((line, index) => textMark('dim', 0, 13 + LINE * index, line)),
      };
    case 'table':
      return table(block.head, block.rows);
    case 'picture':
      return { ...block.picture, height: block.picture.height + 12 };
  }
}

function textLines(lines: readonly string[], indent: number): Drawn {
  return {
    width: 0,
    height: LINE * lines.length,
    marks: lines.map((line, index) => textMark('text', indent, 13 + LINE * index, line)),
  };
}

/** A text in lines of a width; a longer word has a line of its own. */
function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && textWidth(longer, 12) > width) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return [...lines, line];
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): Drawn {
  const widths = head.map((name, column) =>
    Math.min(MOST_CELL, Math.max(textWidth(name, 11), ...rows.map((row) => textWidth(row[column] ?? '', 12)))),
  );
  const x = (column: number) => widths.slice(0, column).reduce((sum, width) => sum + width + 18, 0);
  return {
    width: x(widths.length),
    height: LINE * (rows.length + 1) + 8,
    marks: [
      ...head.map((name, column) => textMark('dim', x(column), 13, name)),
      ...rows.flatMap((row, index) =>
        row.flatMap((cell, column): Mark[] => {
          if (cell === '') return [];
          const shown = fitText(cell, widths[column] ?? 0, 12);
          return [textMark('text', x(column), 13 + LINE * (index + 1), shown, shown === cell ? {} : { tip: cell })];
        }),
      ),
    ],
  };
}
