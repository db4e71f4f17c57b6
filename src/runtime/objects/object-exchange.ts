import type { BlockingLimits, CallLimits } from '../algorithms/arguments.js';

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
  send(value: unknown, peer: number, options?: CallLimits): Promise<void>;
  sendSync(value: unknown, peer: number, options?: BlockingLimits): void;
  recv(peer: number, options?: CallLimits): Promise<unknown>;
  recvSync(peer: number, options?: BlockingLimits): unknown;
}
