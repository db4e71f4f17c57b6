import { type AnyMachineOutput, type AnyToolOutput, machineFormats, toolFormats } from './formats.js';
import { PATIENCE, plainText, type TextPlace, type ToolFormat, type ToolLine } from './section.js';

type Formats = readonly ToolFormat<string, unknown>[];

interface OpenSection {
  readonly format: number;
  readonly lines: ToolLine[];
  /** Lines in a row that were none of the output. */
  others: number;
}

/** Lines of one output, and characters of a line, that are kept. */
const LINE_LIMIT = 50_000;
const LENGTH_LIMIT = 4000;
const OUTPUT_LIMIT = 20_000;

/** First line of the files that `tccl diagnose --collect` writes: host and command. */
const heading = /^# tccl: host (\S{1,255}), command (.{1,200})$/;

/** By number: the texts that the first line of each format has, and at the end those of the heading. */
export const sectionNeedles = needlesOf(toolFormats);
const machineNeedles = needlesOf(machineFormats);

function needlesOf(formats: Formats): readonly (readonly string[])[] {
  return [...formats.map(({ needles }) => needles), ['# tccl: host ']];
}

/** The outputs about a machine among lines. */
export function machineOutputs(lines: readonly ToolLine[]): readonly AnyMachineOutput[] {
  const sections = new ToolSections<AnyMachineOutput>(machineFormats);
  sections.openFile();
  for (const { text, place } of lines) {
    const lower = text.toLowerCase();
    const candidates = machineNeedles.flatMap((needles, format) =>
      needles.some((needle) => lower.includes(needle)) ? [format] : [],
    );
    sections.read(text, place, candidates);
  }
  return sections.finish();
}

/** Cuts a text in outputs of tools: each begins with a first line of its tool, and ends where another one begins. */
export class ToolSections<Output = AnyToolOutput> {
  readonly #formats: Formats;
  readonly #outputs: Output[] = [];
  #open: OpenSection | undefined;
  #host = '';

  constructor(formats: Formats = toolFormats) {
    this.#formats = formats;
  }

  openFile(): void {
    this.#close();
    this.#host = '';
  }

  /** True while all lines matter. */
  get isOpen(): boolean {
    return this.#open !== undefined;
  }

  /** @param candidates numbers of the formats that {@link sectionNeedles} found in the line */
  read(text: string, place: TextPlace, candidates: readonly number[]): void {
    if (candidates.length > 0) {
      const plain = plainText(text);
      const format = candidates.find((index) => this.#formats[index]?.begins.test(plain) === true);
      if (format !== undefined && (format !== this.#open?.format || this.#formats[format]?.restarts?.test(plain) === true)) {
        this.#close();
        this.#open = { format, lines: [], others: 0 };
      } else if (candidates.includes(this.#formats.length)) {
        const [, host] = heading.exec(plain) ?? [];
        if (host !== undefined) {
          this.#close();
          this.#host = host;
        }
      }
    }
    const open = this.#open;
    if (open === undefined) return;
    const { holds, patience = PATIENCE } = this.#formats[open.format] as ToolFormat<string, unknown>;
    if (!holds.test(plainText(text))) {
      if (++open.others > patience) this.#close();
      return;
    }
    open.others = 0;
    // A copy: a slice would keep the whole piece of the file in memory.
    open.lines.push({ text: ` ${text.slice(0, LENGTH_LIMIT)}`.slice(1), place });
    if (open.lines.length >= LINE_LIMIT) this.#close();
  }

  finish(): readonly Output[] {
    this.#close();
    return this.#outputs;
  }

  #close(): void {
    const open = this.#open;
    this.#open = undefined;
    const [first] = open?.lines ?? [];
    const format = open === undefined ? undefined : this.#formats[open.format];
    if (open === undefined || first === undefined || format === undefined || this.#outputs.length >= OUTPUT_LIMIT) return;
    const facts = format.parse(open.lines);
    if (facts !== undefined) this.#outputs.push({ tool: format.name, facts, host: this.#host, place: first.place } as Output);
  }
}
