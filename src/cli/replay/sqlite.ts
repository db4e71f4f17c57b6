import { InputError } from '../../errors.js';
import type { Database } from '../../planner/readers/nsight.js';
import type { TraceReader } from '../../planner/replay/read-traces.js';

/** The part of node:sqlite that is used; the types of Node.js 20 lack it. */
interface Sqlite {
  readonly DatabaseSync: new (
    path: string,
    options: { readonly readOnly: boolean },
  ) => {
    prepare(query: string): { all(): Record<string, unknown>[]; iterate?(): Iterable<Record<string, unknown>> };
    close(): void;
  };
}

/**
 * Reads a database in place: those of long runs are larger than memory.
 *
 * @param path the file on the disk, which has this name unless it is in an archive
 * @throws InputError in an archive, and where this version of Node.js has no SQLite
 */
export async function readDatabase(reader: TraceReader, name: string, path: string): Promise<void> {
  if (name !== path) throw new InputError('CONTENT', 'a database within an archive or the standard input: give the file itself');
  const { DatabaseSync } = await sqlite();
  const connection = new DatabaseSync(path, { readOnly: true });
  try {
    reader.readDatabase(databaseOf(connection), name);
  } finally {
    connection.close();
  }
}

function databaseOf(connection: InstanceType<Sqlite['DatabaseSync']>): Database {
  const rows = (query: string) => {
    const statement = connection.prepare(query);
    return statement.iterate?.() ?? statement.all();
  };
  return {
    rows,
    columns: (table) => [...rows(`SELECT name FROM pragma_table_info('${table}')`)].map(({ name }) => String(name)),
  };
}

async function sqlite(): Promise<Sqlite> {
  // A name in a variable, because the types of Node.js 20 lack the module.
  const name = 'node:sqlite';
  try {
    return (await import(name)) as Sqlite;
  } catch (cause) {
    throw new InputError(
      'CONTENT',
      `a database, which Node.js reads from 22.13 on, and this is ${process.versions.node}: run tccl with a newer Node.js, or give the profile of PyTorch`,
      { cause },
    );
  }
}
