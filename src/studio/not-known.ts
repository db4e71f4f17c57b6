import { InputError } from '../errors.js';
import type { NamedText } from './source.js';

/** Characters that are shown of a file that is not known. */
const SHOWN_CHARACTERS = 60;

/** Lines that `tccl watch` prints, as text and as JSON. */
const watchOutput =
  /^(?:\d\d:\d\d:\d\d job \d+ \(.*\): (?:unknown|healthy|suspect|stuck|dead)\b|\{"time":"[^"]{1,40}","(?:job":\d+,"source"|source":|followed":|ended":))/m;

/** A file that is none of those that the page reads. */
export function notKnown(file: NamedText | undefined): InputError {
  const first = file?.text.trim().split('\n', 1)[0] ?? '';
  const beginning = first === '' ? 'it is empty' : `it begins with ${JSON.stringify(first.slice(0, SHOWN_CHARACTERS))}`;
  return new InputError(
    'CONTENT',
    `is none of: topology (XML, as NCCL_TOPO_DUMP_FILE writes it), cluster file (YAML with machines:), log of NCCL (NCCL_DEBUG=INFO), output of nccl-tests, recording of tccl watch, traces of calls, another file that tccl diagnose reads; ${beginning}`,
    { file: file?.name ?? '' },
  );
}

/**
 * Refuses the output of `tccl watch`, which has its conclusions, but not the counts of ranks.
 *
 * @throws InputError
 */
export function refuseWatchOutput(file: NamedText | undefined): void {
  if (file === undefined || !watchOutput.test(file.text.slice(0, 65_536))) return;
  throw new InputError(
    'CONTENT',
    'is the output of tccl watch, which says what it found but not the counts of each rank: open the file that tccl watch --record FILE writes, or look at the job with tccl studio --watch',
    { file: file.name },
  );
}
