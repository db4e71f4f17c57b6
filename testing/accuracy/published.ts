import { type Collective, collectives, type DataTypeName, dataTypes } from '../../src/planner/tuning/names.js';
import type { Overrides } from '../../src/planner/plan/overrides.js';
import { YamlReader } from '../../src/planner/plan/yaml-reader.js';

/** A published measurement. */
export interface PublishedResult {
  readonly name: string;
  /** True if parameters of the estimate come from it. */
  readonly use: 'fit' | 'test';
  /** The machine of the catalogue that comes nearest. */
  readonly machine: string;
  readonly nodes: number;
  /** Network between the nodes; `unknown` if the source does not tell. */
  readonly fabric: string;
  readonly overrides: Overrides;
  /** Variables of NCCL that the run set. */
  readonly environment: Readonly<Record<string, string>>;
  readonly collective: Collective;
  readonly type: DataTypeName;
  /** NCCL's version; undefined if the source lacks it. */
  readonly nccl: string | undefined;
  /** GPUs that each thread launched on; 1 if the source does not tell. */
  readonly gpusPerThread: number;
  /** Its address; undefined for figures that came without one. */
  readonly source: string | undefined;
  readonly note: string | undefined;
  /** The source has a round figure in words, not a row of a table. */
  readonly isRound: boolean;
  readonly sizes: readonly { readonly label: string; readonly bytes: number; readonly gbps: number }[];
}

/**
 * Reads docs/notes/published-results.yaml, whose head describes its fields.
 *
 * @throws InputError with the line of a field or value that does not belong there
 */
export function parsePublishedResults(text: string): PublishedResult[] {
  return YamlReader.parse(text, 'the list of published results').items().map(readResult);
}

function readResult(item: YamlReader): PublishedResult {
  const fields = item.fields([
    'name',
    'use',
    'machine',
    'nodes',
    'fabric',
    'overrides',
    'environment',
    'collective',
    'type',
    'nccl',
    'gpusPerThread',
    'source',
    'note',
    'round',
    'gbps',
  ]);
  const { name, use, machine, gbps } = fields;
  if (name === undefined || use === undefined || machine === undefined || gbps === undefined) {
    throw item.wrongAt('a published result needs a name, use, machine and gbps');
  }
  return {
    name: name.text('a name'),
    use: oneOf(use, ['fit', 'test']),
    machine: machine.text('a machine of the catalogue'),
    nodes: fields.nodes?.integer(1, 10_000) ?? 1,
    fabric: fields.fabric?.text('a network') ?? 'unknown',
    overrides: fields.overrides === undefined ? {} : readOverrides(fields.overrides),
    environment: Object.fromEntries(
      fields.environment?.entries().map(([variable, value]) => [variable, value.text('a value')]) ?? [],
    ),
    collective: fields.collective === undefined ? 'AllReduce' : oneOf(fields.collective, collectives),
    type: fields.type === undefined ? 'float32' : oneOf(fields.type, dataTypes),
    nccl: fields.nccl?.text('a version'),
    gpusPerThread: fields.gpusPerThread?.integer(1, 64) ?? 1,
    source: fields.source?.text('an address'),
    note: fields.note?.text('a note'),
    isRound: fields.round?.flag() ?? false,
    sizes: gbps.entries().map(([label, value]) => ({ label, bytes: readSize(label, value), gbps: readRate(value) })),
  };
}

function oneOf<const Name extends string>(value: YamlReader, names: readonly Name[]): Name {
  const text = value.text(`one of ${names.join(', ')}`);
  const found = names.find((name) => name === text);
  if (found === undefined) throw value.wrong(`one of ${names.join(', ')}`);
  return found;
}

function readOverrides(value: YamlReader): Overrides {
  const { gpus, nics } = value.fields(['gpus', 'nics']);
  return {
    ...(gpus === undefined ? {} : { gpus: gpus.integer(1, 72) }),
    ...(nics === undefined
      ? {}
      : { nics: nics.kind === 'list' ? nics.items().map((nic) => nic.text('a NIC')) : nics.integer(0, 72) }),
  };
}

const units: Readonly<Record<string, number>> = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 };

function readSize(label: string, value: YamlReader): number {
  const [, digits, unit = ''] = /^(\d+)([KMG]?)$/.exec(label) ?? [];
  if (digits === undefined) throw value.wrongAt(`${label} is no size; write 8K, 32M, 1G or bytes`);
  return Number(digits) * (units[unit] ?? 1);
}

function readRate(value: YamlReader): number {
  const rate = Number(value.text('a bandwidth in GB/s'));
  if (!(rate > 0 && rate < Infinity)) throw value.wrong('a bandwidth in GB/s, above 0');
  return rate;
}
