import { checkLog } from '../../../../src/planner/log/verdict/check-log.js';
import type { LogFinding } from '../../../../src/planner/log/checks/finding.js';
import type { LogModel } from '../../../../src/planner/log/job/model.js';
import { NcclLogReader } from '../../../../src/planner/log/job/read-log.js';

/** A log of one file that ends with a line's end. */
export function readLines(lines: readonly string[]): LogModel {
  const reader = new NcclLogReader();
  reader.openFile('job.log');
  for (const line of lines) reader.readLine(line);
  return reader.finish();
}

export function findingsOf(lines: readonly string[]): LogFinding[] {
  return checkLog(readLines(lines));
}

/** `code severity` of each. */
export function codes(findings: readonly LogFinding[]): string[] {
  return findings.map(({ code, severity }) => `${code} ${severity}`);
}

/** Files of one job, by name, that end with a line's end. */
export function readFiles(files: Readonly<Record<string, string>>): LogModel {
  const reader = new NcclLogReader();
  for (const [name, text] of Object.entries(files)) {
    reader.openFile(name);
    for (const line of text.replace(/\n$/, '').split('\n')) reader.readLine(line);
  }
  return reader.finish();
}
