import type { BlockingLimits, CallLimits, TagOption } from '../algorithms/arguments.js';

/** A value that {@link ObjectCalls.recvAnyObject} received. */
export interface AnyObject<T> {
  /** The value, as the sender's program gave it. */
  readonly value: T;
  /** Rank that sent it. */
  readonly source: number;
  /** Tag that the sender gave it; 0 without one. */
  readonly tag: number;
}

/** Combines the values of lower ranks with that of a higher one. */
export type CombineValues = (lower: unknown, higher: unknown) => unknown;

/** Carries out the calls with objects. Public declarations name it. */
export interface ObjectExchange {
  broadcast(value: unknown, root: number, options?: CallLimits): Promise<unknown>;
  broadcastSync(value: unknown, root: number, options?: BlockingLimits): unknown;
  allGather(value: unknown, options?: CallLimits): Promise<unknown[]>;
  allGatherSync(value: unknown, options?: BlockingLimits): unknown[];
  gather(value: unknown, root: number, options?: CallLimits): Promise<unknown[] | null>;
  gatherSync(value: unknown, root: number, options?: BlockingLimits): unknown[] | null;
  scatter(values: unknown, root: number, options?: CallLimits): Promise<unknown>;
  scatterSync(values: unknown, root: number, options?: BlockingLimits): unknown;
  reduce(value: unknown, combine: CombineValues, root: number, options?: CallLimits): Promise<unknown>;
  reduceSync(value: unknown, combine: CombineValues, root: number, options?: BlockingLimits): unknown;
  allReduce(value: unknown, combine: CombineValues, options?: CallLimits): Promise<unknown>;
  allReduceSync(value: unknown, combine: CombineValues, options?: BlockingLimits): unknown;
  send(value: unknown, peer: number, options?: CallLimits & TagOption): Promise<void>;
  sendSync(value: unknown, peer: number, options?: BlockingLimits & TagOption): void;
  recv(peer: number, options?: CallLimits & TagOption): Promise<unknown>;
  recvSync(peer: number, options?: BlockingLimits & TagOption): unknown;
  recvAny(options?: CallLimits & TagOption): Promise<AnyObject<unknown>>;
  recvAnySync(options?: BlockingLimits & TagOption): AnyObject<unknown>;
  sendRecv(value: unknown, to: number, from: number, options?: CallLimits): Promise<unknown>;
  sendRecvSync(value: unknown, to: number, from: number, options?: BlockingLimits): unknown;
}
