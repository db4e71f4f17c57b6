import { TcclError } from '../errors.js';
import type { Excerpt } from './messages.js';

/** Characters that are shown before and behind the place of an error. */
const AROUND = 60;

/** The place of an error in its file, if the error names one and the text has it. */
export function excerptAt(error: unknown, texts: ReadonlyMap<string, string>): Excerpt | undefined {
  if (!(error instanceof TcclError) || error.file === undefined || error.line === undefined) return undefined;
  const { line, column = 1 } = error;
  const text = texts.get(error.file)?.split('\n', line)[line - 1]?.replace(/\r$/, '');
  if (text === undefined) return undefined;
  const at = Math.min(text.length, Math.max(0, column - 1));
  const first = Math.max(0, at - AROUND);
  return {
    line,
    before: `${first > 0 ? '…' : ''}${text.slice(first, at)}`,
    // An error at the end of a line marks the room behind it.
    marked: text.slice(at, at + 1) || ' ',
    after: `${text.slice(at + 1, at + AROUND)}${at + AROUND < text.length ? '…' : ''}`,
  };
}
