/** Names of the tuning model, in NCCL's order. */

/** The collectives with a model in NCCL. Send, receive and calls made of them (all-to-all, gather, scatter) have none. */
export const collectives = ['Broadcast', 'Reduce', 'AllGather', 'ReduceScatter', 'AllReduce'] as const;
/** One of {@link collectives}. */
export type Collective = (typeof collectives)[number];

/** NCCL's algorithms. */
export const algorithms = ['Tree', 'Ring', 'CollNetDirect', 'CollNetChain', 'NVLS', 'NVLSTree', 'PAT'] as const;
/** One of {@link algorithms}. */
export type NcclAlgorithm = (typeof algorithms)[number];

/** NCCL's protocols. */
export const protocols = ['LL', 'LL128', 'Simple'] as const;
/** One of {@link protocols}. */
export type Protocol = (typeof protocols)[number];

/** Algorithms that NCCL has for each collective. */
export const algorithmsOf: Readonly<Record<Collective, readonly NcclAlgorithm[]>> = {
  Broadcast: ['Ring'],
  Reduce: ['Ring'],
  AllGather: ['Ring', 'CollNetDirect', 'NVLS', 'PAT'],
  ReduceScatter: ['Ring', 'CollNetDirect', 'NVLS', 'PAT'],
  AllReduce: ['Tree', 'Ring', 'CollNetDirect', 'CollNetChain', 'NVLS', 'NVLSTree'],
};

/** NCCL's types of elements. */
export const dataTypes = [
  'int8',
  'uint8',
  'int32',
  'uint32',
  'int64',
  'uint64',
  'float16',
  'float32',
  'float64',
  'bfloat16',
  'float8e4m3',
  'float8e5m2',
] as const;
/** One of {@link dataTypes}. */
export type DataTypeName = (typeof dataTypes)[number];

/** Bytes of an element. */
export function elementBytes(dataType: DataTypeName): number {
  return Number(/\d+/.exec(dataType)?.[0] ?? 8) / 8;
}

/** NCCL's reduction operators. */
export const operators = ['sum', 'prod', 'max', 'min', 'avg'] as const;
/** One of {@link operators}. */
export type OperatorName = (typeof operators)[number];

/** One value for each of these names. */
export function byName<const Name extends string, Value>(
  names: readonly Name[],
  valueOf: (name: Name) => Value,
): Record<Name, Value> {
  return Object.fromEntries(names.map((name) => [name, valueOf(name)])) as Record<Name, Value>;
}
