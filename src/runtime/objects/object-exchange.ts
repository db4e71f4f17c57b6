/** Carries out the calls with objects. Public declarations name it, so it imports nothing. */
export interface ObjectExchange {
  broadcast(value: unknown, root: number): Promise<unknown>;
  broadcastSync(value: unknown, root: number): unknown;
  allGather(value: unknown): Promise<unknown[]>;
  allGatherSync(value: unknown): unknown[];
  gather(value: unknown, root: number): Promise<unknown[] | null>;
  gatherSync(value: unknown, root: number): unknown[] | null;
  scatter(values: unknown, root: number): Promise<unknown>;
  scatterSync(values: unknown, root: number): unknown;
  send(value: unknown, peer: number): Promise<void>;
  sendSync(value: unknown, peer: number): void;
  recv(peer: number): Promise<unknown>;
  recvSync(peer: number): unknown;
}
