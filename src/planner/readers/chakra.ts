import { InputError } from '../../errors.js';
import { type Fields, isFields, textOf } from './json.js';
import { type FieldValue, delimitedMessages, type Message, messageOf, numbersOf } from './protobuf.js';
import { utf8Text } from './utf8.js';

/** A node of an execution trace of Chakra (MLCommons, `schema/protobuf/et_def.proto`). */
export interface ChakraNode {
  readonly id: number;
  readonly name: string;
  readonly kind: 'compute' | 'send' | 'receive' | 'collective' | 'other';
  /** Nodes that must be done before. Feeders take data dependencies: those of control are PyTorch's tree of calls. */
  readonly after: readonly number[];
  /** 0 where the trace has none. */
  readonly durationUs: number;
  /** `comm_type`, `comm_size`, `pg_name`, `is_cpu_op` and others. */
  readonly attributes: ReadonlyMap<string, number | string>;
}

const kinds = ['other', 'other', 'other', 'other', 'compute', 'send', 'receive', 'collective'] as const;

/** Types of collectives in the order of Chakra's numbers. */
export const chakraCollectives = [
  ...['all_reduce', 'reduce', 'all_gather', 'gather', 'scatter', 'broadcast', 'all_to_all', 'reduce_scatter'],
  ...['reduce_scatter', 'barrier'],
] as const;

/** True for bytes that begin as an execution trace in protocol buffers does: a header, then a node. */
export function isChakra(bytes: Uint8Array): boolean {
  try {
    const [header, node] = firstTwo(delimitedMessages(bytes));
    if (header === undefined || node === undefined) return false;
    const fields = messageOf(node);
    return messageOf(header).every(([field]) => field <= 2) && fields.every(([field]) => field <= 10) && fields.some(isType);
  } catch {
    return false;
  }
}

function isType([field, value]: Message[number]): boolean {
  return field === 3 && typeof value === 'number' && value < kinds.length;
}

function firstTwo<T>(all: Generator<T>): T[] {
  const found: T[] = [];
  for (const each of all) if (found.push(each) === 2) break;
  return found;
}

/** @throws InputError for a file that ends within a node */
export function readChakra(bytes: Uint8Array): ChakraNode[] {
  const nodes: ChakraNode[] = [];
  let isHeader = true;
  for (const each of delimitedMessages(bytes)) {
    if (!isHeader) nodes.push(nodeOf(messageOf(each)));
    isHeader = false;
  }
  return nodes;
}

/** True for the JSON that Chakra's feeder reads: a list `workload_graph`. */
export function isChakraJson(value: unknown): value is Fields {
  return isFields(value) && Array.isArray(value['workload_graph']);
}

/** @throws InputError for a node without a number */
export function readChakraJson(value: Fields): ChakraNode[] {
  return (value['workload_graph'] as readonly unknown[]).filter(isFields).map((node, place) => {
    const id = Number(node['Id'] ?? node['id']);
    if (!Number.isFinite(id)) throw new InputError('CONTENT', `node ${place} of workload_graph has no Id`);
    const attributes = new Map<string, number | string>();
    for (const [name, given] of Object.entries(node))
      if (typeof given === 'number' || typeof given === 'string') attributes.set(name, given);
      else if (typeof given === 'boolean') attributes.set(name, given ? 1 : 0);
    return {
      ...{ id, name: textOf(node['Name'] ?? node['name']), attributes },
      kind: kinds[Number(node['NodeType'] ?? node['type'])] ?? 'other',
      after: listOf(node['data_deps']),
      durationUs: Number(node['runtime'] ?? node['duration_micros'] ?? 0) || 0,
    };
  });
}

function nodeOf(message: Message): ChakraNode {
  const numberAt = (field: number) => {
    const value = valueAt(message, field);
    return typeof value === 'number' ? value : 0;
  };
  const name = valueAt(message, 2);
  return {
    id: numberAt(1),
    name: name instanceof Uint8Array ? utf8Text(name) : '',
    kind: kinds[numberAt(3)] ?? 'other',
    after: numbersOf(message, 5),
    durationUs: numberAt(7),
    attributes: new Map(
      message.flatMap(([field, value]) => (field === 10 && value instanceof Uint8Array ? attributeOf(value) : [])),
    ),
  };
}

/** Name and value of an attribute: a number or a text, none for lists. */
function attributeOf(bytes: Uint8Array): [string, number | string][] {
  const message = messageOf(bytes);
  const name = valueAt(message, 1);
  const given = message.find(([field]) => field > 2);
  if (!(name instanceof Uint8Array) || given === undefined) return [];
  const [field, value] = given;
  if (typeof value === 'number') return [[utf8Text(name), value]];
  return field === TEXT_FIELD ? [[utf8Text(name), utf8Text(value)]] : [];
}

/** Field of an attribute that holds a text. */
export const TEXT_FIELD = 29;

function valueAt(message: Message, field: number): FieldValue | undefined {
  return message.find(([number]) => number === field)?.[1];
}

function listOf(value: unknown): number[] {
  return Array.isArray(value) ? value.map(Number).filter(Number.isFinite) : [];
}
