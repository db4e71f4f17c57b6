import { inFile, InvalidArgumentError } from '../../errors.js';
import { costTable, costTableCsv, COST_TABLE_VERSION } from '../../planner/plan/cost-table.js';
import { type ClusterInput, rootsOf } from '../cluster-input.js';
import { print, printJson } from '../output.js';

const FORMATS = ['csv', 'json'] as const;

/** The format that `--costs` names. @throws InvalidArgumentError for another one */
export function costFormatOf(text: string): (typeof FORMATS)[number] {
  const found = FORMATS.find((format) => format === text.trim().toLowerCase());
  if (found !== undefined) return found;
  throw new InvalidArgumentError('UNKNOWN_NAME', `--costs '${text}' must be ${FORMATS.join(' or ')}`);
}

/** `tccl plan --costs`: predicted times by collective, size and ranks. */
export function showCosts(input: ClusterInput, sizes: readonly number[], format: (typeof FORMATS)[number]): void {
  const { cluster, parameters, given, fileName, simulated: environment, title } = input;
  const roots = rootsOf(input);
  // Parts of a host are made of its file, not of its graph.
  const hosts = cluster.hosts.map((each) => ({ ...each, machine: roots.get(each.machine) ?? each.machine }));
  const rows = inFile(fileName, () => costTable({ hosts }, parameters, sizes, { ...given, environment }));
  if (format === 'csv') print(...costTableCsv(rows).trimEnd().split('\n'));
  else printJson({ format: 'tccl costs', formatVersion: COST_TABLE_VERSION, title, nccl: parameters.ncclVersion, rows });
}
