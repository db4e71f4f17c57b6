import { choose, type GivenWay, mostChannels } from '../../tuning/choose.js';
import { type Collective, collectives } from '../../tuning/names.js';
import { predict } from '../../tuning/predict.js';
import { describeReason } from '../../tuning/reasons.js';
import type { Tuning } from '../../tuning/tune.js';
import { formatBytes } from '../overview/format.js';
import type { PlacedRow, TableFinding } from './read-table.js';
import { algorithmWords, collectiveWords, protocolWords } from './row.js';

/** A table's choice for a call. */
interface TableOutcome {
  /** The row that decides; undefined where none does. */
  readonly row: PlacedRow | undefined;
  /** Undefined where NCCL has no candidate. */
  readonly way: GivenWay | undefined;
}

/** A call of one operation on buffers that are not registered, as nccl-tests makes it. */
export function outcomeOf(rows: readonly PlacedRow[], tuning: Tuning, collective: Collective, bytes: number): TableOutcome {
  const candidates = predict(tuning, collective, bytes);
  const row = rows.find(
    (each) =>
      fits(each, tuning, collective, bytes) &&
      candidates.some(
        ({ algorithm, protocol, timeUs }) => timeUs !== null && algorithm === each.algorithm && protocol === each.protocol,
      ),
  );
  if (row !== undefined) {
    const { algorithm, protocol, nChannels } = row;
    return { row, way: { algorithm, protocol, ...channels(nChannels) } };
  }
  const own = choose(tuning, collective, bytes);
  return { row, way: own && { algorithm: own.algorithm, protocol: own.protocol, nChannels: 1 } };
}

/** 0 leaves it to NCCL; without a number the plugin requests one. */
function channels(asked: number): { nChannels?: number } {
  if (asked === 0) return {};
  return { nChannels: asked < 0 ? 1 : asked };
}

function fits(row: PlacedRow, tuning: Tuning, collective: Collective, bytes: number): boolean {
  return row.collective === collective && isOfCluster(row, tuning) && bytes >= row.minBytes && bytes <= row.maxBytes;
}

function isOfCluster({ nNodes, nRanks, nOperations, registered }: PlacedRow, { input }: Tuning): boolean {
  const isAny = (asked: number, value: number) => asked === -1 || asked === value;
  return isAny(nNodes, input.nNodes) && isAny(nRanks, input.nRanks) && isAny(nOperations, 1) && isAny(registered, 0);
}

/** Findings about a table's effect on a cluster; {@link readTunerTable} finds faults of its text. */
export function checkTunerTable(rows: readonly PlacedRow[], tuning: Tuning): TableFinding[] {
  const { input } = tuning;
  const findings: TableFinding[] = [];
  const add = (severity: TableFinding['severity'], message: string, line?: number) => findings.push({ severity, message, line });
  for (const row of rows) {
    if (row.maxBytes < row.minBytes) continue;
    if (!isOfCluster(row, tuning)) {
      add('info', `not for this cluster (${input.nNodes} nodes, ${input.nRanks} ranks) or not for ordinary calls`, row.line);
      continue;
    }
    channelFindings(row, tuning, (severity, message) => add(severity, message, row.line));
    const way = `${algorithmWords[row.algorithm]} with ${protocolWords[row.protocol]}`;
    const bytes = Math.min(Math.max(1, row.minBytes), 2 ** 40);
    const candidate = predict(tuning, row.collective, bytes).find(
      ({ algorithm, protocol }) => algorithm === row.algorithm && protocol === row.protocol,
    );
    const [reason] = candidate?.timeUs === null ? candidate.reasons : [];
    if (candidate?.timeUs === null)
      add(
        'warning',
        `${collectiveWords[row.collective]} cannot use ${way} here, so the row decides nothing${reason === undefined ? '' : `: ${describeReason(reason)}`}`,
        row.line,
      );
  }
  for (const collective of collectives) coverFindings(collective, rows, tuning, add);
  return findings;
}

function channelFindings(
  { nChannels, algorithm }: PlacedRow,
  tuning: Tuning,
  add: (severity: TableFinding['severity'], message: string) => void,
): void {
  const most = mostChannels(tuning, algorithm);
  if (nChannels === -1) add('warning', 'channels -1 is one channel with this plugin; 0 leaves the number to NCCL');
  else if (nChannels < 0) add('error', `channels ${nChannels} is no number of channels; 0 leaves it to NCCL`);
  else if (most > 0 && nChannels > most) add('warning', `channels ${nChannels}: the communicator has ${most}`);
}

/** Finds rows that never decide because earlier ones match all their sizes, and sizes without a row. */
function coverFindings(
  collective: Collective,
  rows: readonly PlacedRow[],
  tuning: Tuning,
  add: (severity: TableFinding['severity'], message: string, line?: number) => void,
): void {
  if (choose(tuning, collective, 2 ** 20) === undefined) return;
  /** Sizes without a row so far, ascending. */
  let free: (readonly [from: number, to: number])[] = [[1, Infinity]];
  for (const row of rows) {
    const { minBytes, maxBytes } = row;
    if (row.collective !== collective || maxBytes < minBytes || !isOfCluster(row, tuning)) continue;
    const bytes = Math.min(Math.max(1, minBytes), 2 ** 40);
    const isAble = predict(tuning, collective, bytes).some(
      ({ algorithm, protocol, timeUs }) => timeUs !== null && algorithm === row.algorithm && protocol === row.protocol,
    );
    if (!isAble) continue;
    if (!free.some(([from, to]) => from <= maxBytes && to >= minBytes)) {
      add('warning', 'earlier rows take all its sizes: it never decides', row.line);
      continue;
    }
    free = free.flatMap(([from, to]) =>
      (
        [
          [from, Math.min(to, minBytes - 1)],
          [Math.max(from, maxBytes + 1), to],
        ] as const
      ).filter(([first, last]) => first <= last && first < Infinity),
    );
  }
  for (const [from, to] of free.filter(([first]) => first < LAST_BYTES)) {
    const which = to >= LAST_BYTES ? `sizes from ${formatBytes(from)} on` : `sizes from ${from} to ${to} bytes`;
    add(
      'warning',
      `${collectiveWords[collective]}: no row takes ${from === 1 && to >= LAST_BYTES ? 'any size' : which}; such calls run on one channel`,
    );
  }
}

/** Calls are smaller. */
const LAST_BYTES = 2 ** 44;
