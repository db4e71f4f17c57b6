import { counted } from '../../../counted.js';
import { didYouMean } from '../../../suggest.js';
import {
  algorithmWords,
  collectiveWords,
  LEAST_FIELDS,
  MOST_CHARACTERS,
  LAST_C_PLUGIN,
  MOST_FIELDS,
  protocolWords,
  type TunerRow,
} from './row.js';

/** A row with its line, from 1. */
export interface PlacedRow extends TunerRow {
  readonly line: number;
}

/** A fault of a table. */
export interface TableFinding {
  /** From 1; undefined for a fault without a line. */
  readonly line: number | undefined;
  /** `error`: the plugin reads something else than intended. */
  readonly severity: 'error' | 'warning' | 'info';
  readonly message: string;
}

/**
 * Reads a table as the plugin does, and reports where this differs from the intended meaning. Rows that it ignores are left out.
 */
export function readTunerTable(text: string): {
  readonly rows: readonly PlacedRow[];
  readonly findings: readonly TableFinding[];
} {
  const rows: PlacedRow[] = [];
  const findings: TableFinding[] = [];
  for (const [index, whole] of text.split('\n').entries()) {
    const line = index + 1;
    const wrong = (message: string) => findings.push({ line, severity: 'error', message });
    if (whole === '' || whole.startsWith('#')) {
      if (whole.length > MOST_CHARACTERS && whole.slice(MOST_CHARACTERS).includes(','))
        wrong(`a comment of ${whole.length} characters: the plugin reads what follows the first ${MOST_CHARACTERS} as a row`);
      continue;
    }
    const content = whole.replace(/\r$/, '');
    if (content.trim() === '') continue;
    if (content.length > MOST_CHARACTERS)
      wrong(`longer than ${MOST_CHARACTERS} characters: the plugin breaks it in two, up to NCCL ${LAST_C_PLUGIN}`);
    const fields = content.split(',').map((field) => field.trim());
    const filled = fields.filter((field) => field !== '');
    if (filled.length < LEAST_FIELDS) {
      wrong(`ignored: ${counted(filled.length, 'field')}, and ${LEAST_FIELDS} are needed (colltype,minbytes,…,nNodes,nRanks)`);
      continue;
    }
    if (filled.length < fields.length)
      wrong(
        `an empty field: the plugin skips it, so that the next ones move up (up to NCCL ${LAST_C_PLUGIN}; later it counts as 0)`,
      );
    if (filled.length > MOST_FIELDS)
      wrong(`${filled.length} fields: the plugin reads ${MOST_FIELDS} (up to NCCL ${LAST_C_PLUGIN}; later it ignores the row)`);
    rows.push({ line, ...rowOf(filled, wrong) });
  }
  return { rows, findings };
}

function rowOf(fields: readonly string[], wrong: (message: string) => void): TunerRow {
  const word = <Name extends string>(index: number, what: string, words: Readonly<Record<Name, string>>, otherwise: Name) => {
    const field = fields[index] ?? '';
    const known = (Object.entries(words) as [Name, string][]).find(([, each]) => each === field);
    if (known !== undefined) return known[0];
    const guess = didYouMean(field.toLowerCase().replaceAll(/[^a-z0-9]/g, ''), Object.values(words));
    const all = Object.values<string>(words).join(', ');
    wrong(`${what} '${field}' is none of ${all}${guess}: the plugin takes ${words[otherwise]}`);
    return otherwise;
  };
  const whole = (index: number, what: string, otherwise: number, isSize = false) => {
    const field = fields[index];
    if (field === undefined) return otherwise;
    const [digits] = /^[+-]?\d+/.exec(field) ?? [];
    const value = digits === undefined ? 0 : Number(digits);
    if (digits !== field) wrong(`${what} '${field}' is not a whole number: the plugin reads ${value}`);
    else if (isSize && value < 0) wrong(`${what} ${field}: the plugin reads a size of about 16 EiB`);
    return isSize && value < 0 ? Infinity : value;
  };
  const row: TunerRow = {
    collective: word(0, 'collective', collectiveWords, 'AllReduce'),
    minBytes: whole(1, 'minbytes', 0, true),
    maxBytes: whole(2, 'maxbytes', 0, true),
    algorithm: word(3, 'algorithm', algorithmWords, 'Ring'),
    protocol: word(4, 'protocol', protocolWords, 'Simple'),
    nChannels: whole(5, 'channels', -1),
    nNodes: whole(6, 'nNodes', -1),
    nRanks: whole(7, 'nRanks', -1),
    nOperations: whole(8, 'numPipeOps', -1),
    registered: whole(9, 'regBuff', -1),
  };
  if (row.maxBytes < row.minBytes) wrong(`maxbytes ${row.maxBytes} is less than minbytes ${row.minBytes}: it fits no call`);
  return row;
}
