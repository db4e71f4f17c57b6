import { InputError } from '../../errors.js';
import type { TextPlace } from './section.js';
import { parseRasJson, type RasReport, rasText } from './ras.js';

/** A report, and the text that it was read from. */
export interface GivenReport {
  readonly text: string;
  readonly report: RasReport;
}

/**
 * Reads what RAS answered, JSON or text.
 *
 * @throws InputError where it is neither
 */
export function readReport(text: string, place: TextPlace = { file: 0, line: 1 }): GivenReport {
  if (text.trimStart().startsWith('{')) return { text, report: parseRasJson(text, place) };
  const lines = text.split(/\r?\n/).map((line, index) => ({ text: line, place: { ...place, line: place.line + index } }));
  const report = rasText.parse(lines);
  if (report === undefined || !lines.some((line) => /^Job summary|^Communicators\.\.\./.test(line.text)))
    throw new InputError('CONTENT', 'is no report of RAS');
  return { text, report };
}
