import { utf8Text } from './utf8.js';

/** Kinds of files: text is read line by line, all others as a whole. */
export type FileKind = 'text' | 'pickle' | 'json' | 'xml' | 'inspector' | 'trace' | 'watch' | 'binary';

const forms: readonly (readonly [kind: FileKind, form: RegExp])[] = [
  ['xml', /^\s*(?:<\?xml[^>]{0,200}\?>\s*)?(?:<!--[^>]{0,2000}-->\s*)?<(?:system|graphs)\b/],
  // That of lstopo is an output of a tool.
  ['xml', /^\s*<\?xml\b(?![\s\S]{0,2000}<topology\b)/],
  ['inspector', /^\s*\{\s*"header":\s*\{[^{}]{0,400}\},\s*"metadata":/],
  ['watch', /^\s*\{"tcclWatch":/],
  ['trace', /^\s*\[\s*(?:\{"name":|\{"ph":|\{"cat":)/],
];

/** Control characters that texts have: tab, line feed, form feed, carriage return, backspace, escape. */
const textControls: ReadonlySet<number> = new Set([8, 9, 10, 12, 13, 27]);
/** Other control characters of a text at most, as a share. */
const CONTROL_SHARE = 0.02;

/** Text may hold zeros, which a log has where it was emptied while it was written, but not mostly. */
function isText(head: Uint8Array): boolean {
  let zeros = 0;
  let controls = 0;
  for (const byte of head) {
    if (byte === 0) zeros++;
    else if (byte < 32 && !textControls.has(byte)) controls++;
  }
  const rest = head.length - zeros;
  return zeros === 0
    ? controls <= Math.max(1, CONTROL_SHARE * 5 * rest)
    : rest > zeros / 100 && rest > 64 && controls <= CONTROL_SHARE * rest;
}

/** Encoding of a text, by its byte order mark, or by zeros in every other byte. */
export function encodingOf(head: Uint8Array): 'utf8' | 'utf-16le' | 'utf-16be' {
  if (head[0] === 0xff && head[1] === 0xfe) return 'utf-16le';
  if (head[0] === 0xfe && head[1] === 0xff) return 'utf-16be';
  const sample = head.subarray(0, 512);
  const zerosAt = (parity: number) => sample.filter((byte, at) => at % 2 === parity && byte === 0).length;
  const half = sample.length / 2;
  if (half >= 8 && zerosAt(1) > 0.9 * half && zerosAt(0) === 0) return 'utf-16le';
  if (half >= 8 && zerosAt(0) > 0.9 * half && zerosAt(1) === 0) return 'utf-16be';
  return 'utf8';
}

/** Kind of a file, by its first bytes. */
export function classify(head: Uint8Array): FileKind {
  if (head[0] === 0x80 && (head[1] ?? 0) >= 2 && (head[1] ?? 0) <= 5) return 'pickle';
  if (!isText(head)) return 'binary';
  const text = utf8Text(head);
  const known = forms.find(([, form]) => form.test(text));
  if (known !== undefined) return known[0];
  // A record a line is a log; one value is a file of JSON.
  if (/^\s*\{/.test(text) && !/^\s*\{[^\n]{0,60000}\}\s*\n\s*\{/.test(text)) return 'json';
  return 'text';
}

/** True for text whose first character is that of XML. */
export function isXml(text: string): boolean {
  return /^\uFEFF?\s*</.test(text);
}

/** True for the XML of `lstopo`, which is no topology of NCCL. */
export function isHwloc(text: string): boolean {
  return /<topology\b|<object type="/.test(text.slice(0, 2000));
}
