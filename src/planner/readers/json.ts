import { InputError } from '../../errors.js';

/** Limit of nesting: deeper values are no recordings, and would exhaust the stack of later code. */
const MOST_DEPTH = 200;

/**
 * Parses untrusted JSON.
 *
 * @throws InputError where it is no JSON, or nested too deeply
 */
export function parseJson(text: string): unknown {
  if (isDeep(text)) throw new InputError('TOO_LARGE', `is no recording: it is nested deeper than ${MOST_DEPTH}`);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InputError('SYNTAX', `is no JSON: ${(error as Error).message}`);
  }
}

/** A value of JSON with names. */
export type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A text; empty for anything else. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** A text, or a number as one. */
export function wordOf(value: unknown, otherwise = ''): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : otherwise;
}

function isDeep(text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const letter = text[at];
    if (letter === '"') at = endOfString(text, at);
    else if (letter === '[' || letter === '{') depth++;
    else if (letter === ']' || letter === '}') depth--;
    if (depth > MOST_DEPTH) return true;
  }
  return false;
}

/** Place of the quotation mark that ends a string. */
function endOfString(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === '"') return at;
    if (text[at] === '\\') at++;
  }
  return text.length;
}
