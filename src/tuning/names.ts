/** What the tuning model speaks of, by NCCL's names and in NCCL's order: the first of equal candidates wins. */

/** The collectives that NCCL has a model for. Send, receive and what is made of them (all-to-all, gather, scatter) have none. */
export const collectives = ['Broadcast', 'Reduce', 'AllGather', 'ReduceScatter', 'AllReduce'] as const;
export type Collective = (typeof collectives)[number];

export const algorithms = ['Tree', 'Ring', 'CollNetDirect', 'CollNetChain', 'NVLS', 'NVLSTree', 'PAT'] as const;
export type Algorithm = (typeof algorithms)[number];

export const protocols = ['LL', 'LL128', 'Simple'] as const;
export type Protocol = (typeof protocols)[number];

export const dataTypes = [
  'int8', 'uint8', 'int32', 'uint32', 'int64', 'uint64', 'float16', 'float32', 'float64', 'bfloat16', 'float8e4m3', 'float8e5m2',
] as const;
export type DataTypeName = (typeof dataTypes)[number];

export const operators = ['sum', 'prod', 'max', 'min', 'avg'] as const;
export type OperatorName = (typeof operators)[number];

/** One value for each of these names. */
export function byName<const Name extends string, Value>(names: readonly Name[], valueOf: (name: Name) => Value): Record<Name, Value> {
  return Object.fromEntries(names.map((name) => [name, valueOf(name)])) as Record<Name, Value>;
}
