import { plainText, type ToolLine } from './section.js';

/** The matrix `NVLinkBandwidth` of hwloc. */
export interface NvlinkSpeeds {
  /** GPUs by the names that the system gives them (`nvml0`); undefined for a port of an NVSwitch, or a CPU. */
  readonly ends: readonly NvlinkEnd[];
  /** MB/s in one direction, all NVLinks of a pair together, by position in {@link ends}. */
  readonly mbps: readonly (readonly number[])[];
}

export interface NvlinkEnd {
  readonly kind: 'gpu' | 'switch' | 'cpu';
  readonly name: string;
}

const NAME = 'NVLinkBandwidth';
const matrixHead = /^\s*Relative bandwidth matrix \(name NVLinkBandwidth\b/;

/** Lines of a matrix in the text of lstopo. */
export const matrixLine =
  /^\s*(?:Relative \w+ matrix \(|index\s)|^\s*(?:nvml\d+|cuda\d+|[0-9a-f]{4}:[0-9a-f:.]{7}|Package:\d+)(?:\s+\d+)+\s*$/;

/** The matrix of `lstopo -v` and `lstopo --distances`. */
export function linksOfText(lines: readonly ToolLine[]): NvlinkSpeeds | undefined {
  const start = lines.findIndex(({ text }) => matrixHead.test(text));
  if (start < 0) return undefined;
  const wordsOf = ({ text }: ToolLine) => plainText(text).trim().split(/\s+/);
  const [heading, ...rows] = lines.slice(start + 1).map(wordsOf);
  const [index, ...names] = heading ?? [];
  if (index !== 'index') return undefined;
  return checked(
    names.map(endNamed),
    names.map((name, row) => (rows[row]?.[0] === name ? rows[row].slice(1).map(Number) : [])),
  );
}

/** The matrix of the XML; `nameOf` gives the name of the object with an index of hwloc, or undefined. */
export function linksOfXml(lines: readonly ToolLine[], nameOf: (index: string) => string | undefined): NvlinkSpeeds | undefined {
  const start = lines.findIndex(({ text }) => /<distances2/.test(text) && text.includes(`name="${NAME}"`));
  if (start < 0) return undefined;
  const indexes: string[] = [];
  const values: number[] = [];
  for (const { text } of lines.slice(start)) {
    for (const [, kind, words = ''] of text.matchAll(/<(indexes|u64values)\b[^>]*>([^<]*)</g))
      for (const word of words.trim().split(/\s+/))
        if (kind === 'indexes') indexes.push(word);
        else values.push(Number(word));
    if (text.includes('</distances2')) break;
  }
  // `OSDev:332`, or `332` where all are of one type.
  const ends = indexes.map((index) => endNamed(nameOf(index.replace(/^.*:/, '')) ?? index));
  return checked(
    ends,
    ends.map((_, row) => values.slice(row * ends.length, (row + 1) * ends.length)),
  );
}

function endNamed(name: string): NvlinkEnd {
  if (/^(?:nvml|cuda)\d+$/.test(name)) return { kind: 'gpu', name };
  return { kind: /^Package\b/.test(name) ? 'cpu' : 'switch', name };
}

/** Undefined for a matrix that is cut off. */
function checked(ends: readonly NvlinkEnd[], mbps: readonly (readonly number[])[]): NvlinkSpeeds | undefined {
  const isWhole = ends.length > 1 && mbps.every((row) => row.length === ends.length && row.every((value) => value >= 0));
  return isWhole ? { ends, mbps } : undefined;
}
