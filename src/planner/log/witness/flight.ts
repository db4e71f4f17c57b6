import type { LogPlace } from '../line.js';

/** A call in a flight recording of PyTorch. */
export interface FlightCall {
  readonly group: string;
  readonly sequence: number;
  /** `all_reduce`, without the backend before it. */
  readonly operation: string;
  /** Shapes and types of what goes in, as text. */
  readonly input: string;
  readonly state: string;
  /** `train.py:120 step`, where the program called. */
  readonly calledAt: string;
}

/** Recording of one rank. */
export interface FlightRecording {
  readonly rank: number;
  readonly calls: readonly FlightCall[];
  /** By group, its ranks, where the recording says. */
  readonly groups: ReadonlyMap<string, readonly number[]>;
  readonly place: LogPlace;
}

type Fields = Readonly<Record<string, unknown>>;

/** True if a value of JSON or a pickle is a recording of PyTorch (TORCH_NCCL_TRACE_BUFFER_SIZE, TORCH_FR_BUFFER_SIZE). */
export function isFlightRecording(value: unknown): value is Fields {
  return isFields(value) && Array.isArray(value['entries']) && ('pg_config' in value || 'version' in value);
}

/** @param name of the file, whose last number is the rank: the recording itself does not say */
export function readFlightRecording(value: Fields, name: string, place: LogPlace): FlightRecording {
  const entries = (value['entries'] as readonly unknown[]).filter(isFields);
  const config = isFields(value['pg_config']) ? value['pg_config'] : {};
  const groups = new Map(
    Object.entries(config).flatMap(([key, group]): [string, number[]][] =>
      isFields(group) ? [[key, ranksOf(group['ranks'])]] : [],
    ),
  );
  const own =
    typeof value['rank'] === 'number'
      ? value['rank']
      : Number(/(\d+)\D*$/.exec(name.replace(/\.(?:json|pickle|pkl|pt|bin|gz)$/, ''))?.[1] ?? -1);
  return { rank: own, groups, place, calls: entries.filter((entry) => entry['is_p2p'] !== true).map(call) };
}

function call(entry: Fields): FlightCall {
  const group = entry['process_group'];
  const frames = Array.isArray(entry['frames']) ? entry['frames'].filter(isFields) : [];
  const frame =
    frames.find(
      (each) =>
        !/torch[/\\](?:distributed|nn|utils|autograd)|c10d/.test(String(each['filename'])) && each['filename'] !== undefined,
    ) ?? frames[0];
  return {
    group: Array.isArray(group) ? textOf(group[0], '0') : textOf(group ?? entry['pg_id'], '0'),
    sequence: Number(entry['collective_seq_id'] ?? entry['seq_id'] ?? -1),
    operation: textOf(entry['profiling_name'], '?').replace(/^\w+:/, '').trim(),
    input:
      `${JSON.stringify(entry['input_sizes'] ?? [])} ${Array.isArray(entry['input_dtypes']) ? entry['input_dtypes'].join(' ') : ''}`.trim(),
    state: textOf(entry['state'], ''),
    calledAt: frame === undefined ? '' : `${String(frame['filename'])}:${String(frame['line'])} ${String(frame['name'])}`,
  };
}

/** `[0, 1]`, as a list or, as PyTorch writes it, as a text. */
function ranksOf(value: unknown): number[] {
  if (Array.isArray(value)) return value.map(Number).filter(Number.isInteger);
  return typeof value === 'string' ? [...value.matchAll(/\d{1,7}/g)].map(([rank]) => Number(rank)) : [];
}

function textOf(value: unknown, otherwise: string): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : otherwise;
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
