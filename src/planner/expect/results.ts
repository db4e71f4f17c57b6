import { InputError } from '../../errors.js';
import { didYouMean } from '../../suggest.js';
import { type MeasuredRow, type MeasuredTable, TableReader } from '../log/job/table.js';
import { JsonReader } from '../json-reader.js';
import { collectivesOfTests, type ScheduledCollective } from '../schedule/schedule.js';
import type { DataTypeName } from '../tuning/names.js';
import { type ResultRow, type Results, typesByName } from './measured.js';
import { readReplay } from './replay-results.js';
import { readTorchResults } from './torch-results.js';

/**
 * Reads the output of nccl-tests, also among other lines, or its JSON (`-J FILE`), and tables of benchmarks of PyTorch.
 *
 * @param collective name in nccl-tests, for tables without one
 * @throws InputError with the line or field: no table, an incomplete row, an unknown collective
 */
export function readResults(text: string, collective?: string): Results[] {
  const named = collective === undefined ? undefined : collectiveNamed(collective, '--collective');
  if (/^\s*\[\s*\{/.test(text)) return readReplay(new JsonReader(parsed(text), 'the replay'), named);
  const results = /^\s*\{/.test(text) ? readJson(text, named) : [...readText(text, named), ...readTorchResults(text, named)];
  if (results.every(({ rows }) => rows.length === 0)) refuseCopies(text);
  if (results.every(({ rows }) => rows.length === 0))
    throw new InputError(
      'CONTENT',
      'there is no table of nccl-tests in it: give what all_reduce_perf and the like print, or write with -J',
    );
  return results.filter(({ rows }) => rows.length > 0);
}

/** @throws InputError for a name that is no simulated program of nccl-tests */
export function collectiveNamed(name: string, where: string): ScheduledCollective {
  const program = name.replace(/^.*\//, '').replace(/_perf.*$/, '');
  const found = Object.hasOwn(collectivesOfTests, program) ? collectivesOfTests[program] : undefined;
  if (found !== undefined) return found;
  const names = Object.keys(collectivesOfTests);
  throw new InputError(
    'CONTENT',
    `${where} ${name} is no collective that is simulated${didYouMean(program, names) || `; these are: ${names.join(', ')}`}`,
  );
}

function readText(text: string, named: ScheduledCollective | undefined): Results[] {
  const reader = new TableReader();
  text.split(/\r?\n/).forEach((line, index) => reader.read(line, { file: 0, line: index + 1 }));
  if (reader.broken !== undefined)
    throw new InputError(
      'CONTENT',
      'this row is not whole: nccl-tests prints size, count, type, then redop and root, then time, algbw, busbw and #wrong twice',
      { line: reader.broken.line },
    );
  const nccl = /NCCL version (\d+\.\d+\.\d+)/.exec(text)?.[1];
  return reader.tables.map((table) => {
    const [first] = table.rows;
    if (table.run.isCpuTime)
      throw new InputError('CONTENT', 'the table has the times that a CPU needs to queue calls: run without -C', {
        line: first?.place.line ?? 1,
      });
    return {
      collective: named ?? collectiveOf(table),
      nRanks: table.nRanks,
      hosts: table.hosts,
      run: { ...table.run, nccl: table.run.nccl ?? nccl },
      variables: {},
      rows: rowsOf(table.rows),
    };
  });
}

/** @throws InputError for the output of a benchmark of copies between pairs of GPUs */
function refuseCopies(text: string): void {
  const [, tool] =
    /^\s*"?(nvbandwidth|nvloom)(?:_cli)?\b/m.exec(text) ??
    (/^[\s>]*memcpy (?:CE|SM) .*bandwidth \(GB\/s\)/m.test(text) ? ['', 'nvbandwidth'] : []);
  if (tool !== undefined)
    throw new InputError(
      'CONTENT',
      `this is the output of ${tool}, which measures copies and no collective: tccl diagnose FILE names slow GPUs and pairs, tccl expect CLUSTER --gate FILE compares the links`,
    );
}

/** Rows of a table with a size, and the names of types that the planner has. */
export function rowsOf(rows: readonly MeasuredRow[]): ResultRow[] {
  return rows
    .filter(({ bytes }) => bytes > 0)
    .map(({ bytes, type, timeUs, place }) => ({
      bytes,
      type: typesByName[type] ?? (type as DataTypeName),
      timeUs,
      place: `line ${place.line}`,
    }));
}

/** Older programs do not print their name; only in an all-reduce does the bus carry more than the size. */
export function isAllReduceByFigures({ rows }: MeasuredTable): boolean {
  return rows.some(({ busGBps, bytes, timeUs }) => busGBps > (1.05 * bytes) / timeUs / 1000);
}

function collectiveOf(table: MeasuredTable): ScheduledCollective {
  const { collective, isNamed, rows } = table;
  if (isNamed && collective !== undefined) return collectiveNamed(collective, 'the program');
  if (isAllReduceByFigures(table)) return 'AllReduce';
  throw new InputError('CONTENT', 'the table does not say what was measured: add --collective all_gather, or another', {
    line: rows[0]?.place.line ?? 1,
  });
}

/** The JSON of nccl-tests: in some versions the devices are beside the configuration, in others in it. */
function readJson(text: string, named: ScheduledCollective | undefined): Results[] {
  const file = new JsonReader(parsed(text), 'the results');
  const config = file.optional('config');
  const devices = (config?.optional('devices') ?? file.optional('devices'))?.items() ?? [];
  const texts = (name: string) => [...new Set(devices.flatMap((device) => device.optional(name)?.text() ?? []))];
  const program = file.field('args').items()[0]?.text() ?? '';
  const code = file.optional('nccl_version')?.integer(0);
  const version =
    code === undefined ? undefined : `${Math.floor(code / 10_000)}.${Math.floor((code % 10_000) / 100)}.${code % 100}`;
  const gpusPerThread = config?.optional('ngpus')?.integer(1) ?? 1;
  const perProcess = (config?.optional('nthreads')?.integer(1) ?? 1) * gpusPerThread;
  return [
    {
      collective: named ?? collectiveNamed(program, 'the program'),
      // The list has only the first device of each process.
      nRanks: devices.length === 0 ? undefined : devices.length * perProcess,
      hosts: texts('hostname'),
      run: {
        nccl: version,
        nProcesses: devices.length,
        gpusPerThread,
        gpus: texts('device_info'),
        isGraph: (config?.optional('graph')?.integer(0) ?? 0) > 0,
        isCpuTime: false,
      },
      variables: Object.fromEntries(
        (file.optional('env')?.items() ?? []).flatMap((entry) => {
          const [, name, value = ''] = /^(NCCL_[A-Z0-9_]+)=(.*)$/.exec(entry.text()) ?? [];
          return name === undefined ? [] : [[name, value]];
        }),
      ),
      rows: file
        .field('results')
        .items()
        .flatMap((row, index) => readRow(row, `results[${index}]`)),
    },
  ];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InputError('SYNTAX', `the JSON is not whole: ${(error as Error).message}`, { cause: error });
  }
}

function readRow(row: JsonReader, place: string): ResultRow[] {
  const bytes = row.field('size').integer(0);
  const type = row.field('type').text();
  const times = (['out_of_place', 'in_place'] as const).flatMap((kind) => {
    const body = row.optional(kind);
    if (body === undefined) return [];
    if (body.optional('cpu_time') !== undefined)
      throw body.field('cpu_time').wrong('left out: it is what a CPU needs to queue a call (run without -C)');
    return [body.field('time').number()];
  });
  if (times.length === 0) throw row.field('out_of_place').wrong('an object with a time');
  const timeUs = Math.min(...times);
  return bytes === 0 || !(timeUs > 0) ? [] : [{ bytes, type: typesByName[type] ?? (type as DataTypeName), timeUs, place }];
}
