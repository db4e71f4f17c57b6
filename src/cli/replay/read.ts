import { InputError, TcclError } from '../../errors.js';
import { isDatabase, TraceReader } from '../../planner/replay/read-traces.js';
import type { RankTrace } from '../../planner/replay/trace.js';
import { classify } from '../../planner/readers/classify.js';
import { bytesOf, wholeOf } from '../diagnose/bytes.js';
import { filesOf } from '../diagnose/files.js';
import { unpacked } from '../diagnose/unpack.js';
import { progressLine } from '../output.js';
import { readDatabase } from './sqlite.js';

/** Limit of a file: JSON is parsed as one text, whose length JavaScript limits to about as much. */
const FILE_LIMIT = 512 * 2 ** 20;

/**
 * Reads traces from files, folders and archives. A file that cannot be read does not hide the others.
 *
 * @throws InputError where none can be read
 */
export async function readTraces(
  paths: readonly string[],
): Promise<{ readonly traces: readonly RankTrace[]; readonly notes: readonly string[] }> {
  const reader = new TraceReader();
  const refused: { readonly file: string; readonly reason: string }[] = [];
  const progress = progressLine();
  let read = 0;
  for (const { path, refused: reason } of filesOf(paths)) {
    if (reason !== undefined) {
      refused.push({ file: path, reason });
      continue;
    }
    progress.update(path);
    const source = bytesOf(path);
    const title = path === '-' ? 'standard input' : path;
    try {
      for await (const { name, bytes, refused: why } of unpacked(title, source)) {
        try {
          if (why !== undefined) throw new InputError('CONTENT', why);
          if (isDatabase(bytes.head)) await readDatabase(reader, name, path);
          else reader.read(await wholeOf(bytes.all(), FILE_LIMIT, name), name, classify(bytes.head));
          read++;
        } catch (error) {
          refused.push({ file: name, reason: reasonOf(error) });
        }
      }
    } catch (error) {
      refused.push({ file: title, reason: reasonOf(error) });
    } finally {
      if (path !== '-') await source.return(undefined);
    }
  }
  progress.done();
  const [first] = refused;
  if (read === 0 && first !== undefined)
    throw new InputError(
      'CONTENT',
      refused.length === 1 ? first.reason : `${first.reason}; ${refused.length - 1} more are not read`,
      { file: first.file },
    );
  return { traces: reader.finish(), notes: refused.map(({ file, reason }) => `${file} is not read: ${reason}`) };
}

function reasonOf(error: unknown): string {
  if (error instanceof TcclError) return error.message;
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === undefined) throw error;
  return `cannot be read: ${message}`;
}
