import { SystemError } from '../../../errors.js';
import { UCS_BUSY, UCS_CANCELED, UCS_IN_PROGRESS, UCS_OK, ucxAdvice, type Ucx } from './library.js';
import { clockMs, setImmediate, setTimeout } from '../../platform/platform.js';

/** Attempts to arm the descriptor, and to end endpoints, before the caller goes on regardless. */
const MOST_ATTEMPTS = 1000;
/** While connections open or close: time for which the event loop polls without a pause, and the pause after that. */
const EAGER_MS = 2;
const PAUSE_MS = 1;

/** Wait in the event loop, of a connection that opens or closes. */
interface LoopWait {
  readonly isOver: () => boolean;
  readonly end: () => void;
  readonly fail: (error: unknown) => void;
}

/** Memory that UCX may use until these requests are complete. */
interface Retired {
  requests: number[];
  readonly then: () => void;
}

let nextEndpoint = 1;

/** A peer's worker, as this one sends to it. All connections with that rank share it. */
export class UcxEndpoint {
  readonly #worker: UcxWorker;
  readonly #handle: number;
  /** Status with which UCX ended it; undefined while it works. */
  #failure: number | undefined;
  users = 0;

  constructor(
    worker: UcxWorker,
    address: Uint8Array,
    readonly id = nextEndpoint++,
  ) {
    this.#worker = worker;
    this.#handle = worker.ucx.openEndpoint(worker.handle, address, id);
  }

  /** Error with which it ended; undefined while it works. */
  get failure(): Error | undefined {
    this.#failure ??= this.#worker.ucx.failures.get(this.id);
    return this.#failure === undefined ? undefined : this.#error(this.#failure);
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined || (this.#worker.ucx.failures.size > 0 && this.failure !== undefined);
  }

  /** Begins to send. Returns the address of the request, or 0 when UCX needs the memory no more. */
  send(address: number, bytes: number, tag: bigint): number {
    if (this.hasFailed) return 0;
    const request = this.#worker.ucx.send(this.#handle, address, bytes, tag);
    if (request >= 0) return request;
    this.fail(request);
    return 0;
  }

  /** Reports that an operation failed. */
  fail(status: number): void {
    this.#failure ??= status;
  }

  /** Returns a request that ends when it is closed; 0 or less if it is. */
  close(): number {
    const request = this.#worker.ucx.closeEndpoint(this.#handle);
    this.#worker.ucx.failures.delete(this.id);
    return request;
  }

  #error(status: number): Error {
    return new SystemError('NETWORK', `the connection of UCX ended: ${this.#worker.ucx.nameOf(status)}; ${ucxAdvice()}`);
  }
}

/**
 * A worker of UCX: the end that other ranks send to, and the progress of everything that this thread sends and receives by
 * UCX. It is open while connections use it.
 */
export class UcxWorker {
  readonly handle: number;
  /** Address that endpoints of other ranks connect to. */
  readonly address: Uint8Array;
  readonly fd: number;
  /** Counts polls that moved something; requests can only be complete after one. */
  epoch = 0;
  /** True after its end; requests and endpoints are gone then. */
  isClosed = false;
  readonly #context: number;
  readonly #endpoints = new Map<string, UcxEndpoint>();
  /** Endpoints that failed while connections still use them. */
  readonly #failed = new Set<UcxEndpoint>();
  readonly #waits = new Set<LoopWait>();
  readonly #retired = new Set<Retired>();
  readonly #mappings = new Set<number>();
  readonly #onClose: () => void;
  #users = 0;
  #isArmed = false;
  #isScheduled = false;
  #movedMs = 0;

  /** @throws SystemError `NETWORK` where UCX finds no transport that it can use */
  constructor(
    readonly ucx: Ucx,
    onClose: () => void = () => undefined,
  ) {
    this.#onClose = onClose;
    this.#context = ucx.openContext();
    let handle = 0;
    try {
      handle = ucx.openWorker(this.#context);
      this.address = ucx.addressOf(handle);
      this.fd = ucx.descriptorOf(handle);
      this.handle = handle;
    } catch (error) {
      if (handle !== 0) ucx.closeWorker(handle);
      ucx.closeContext(this.#context);
      throw error;
    }
  }

  /** Adds a user. The worker closes after the last one. */
  use(): void {
    this.#users++;
  }

  leave(): void {
    if (--this.#users === 0) this.close();
  }

  /** Moves data, without waiting. */
  progress(): void {
    this.#isArmed = false;
    if (this.isClosed || this.ucx.progress(this.handle) === 0) return;
    this.epoch++;
    if (this.#retired.size > 0) this.#collect();
  }

  /** Prepares the descriptor for a sleep. The next poll finds anything that arrived before. */
  arm(): void {
    for (let i = 0; i < MOST_ATTEMPTS && !this.#isArmed; i++) {
      const status = this.ucx.arm(this.handle);
      if (status === UCS_OK) this.#isArmed = true;
      else if (status === UCS_BUSY) this.progress();
      else throw new SystemError('NETWORK', `ucp_worker_arm of UCX failed: ${this.ucx.nameOf(status)}`);
    }
  }

  /** Receives a message with this tag. Returns the address of the request. */
  receive(address: number, bytes: number, tag: bigint): number {
    const request = this.ucx.receive(this.handle, address, bytes, tag);
    if (request > 0) return request;
    throw new SystemError('NETWORK', `ucp_tag_recv_nbx of UCX failed: ${this.ucx.nameOf(request)}`);
  }

  /** Registers memory with the network cards. Returns the function that ends it. */
  map(address: number, bytes: number): () => void {
    const mapping = this.ucx.map(this.#context, address, bytes);
    this.#mappings.add(mapping);
    return () => {
      if (this.#mappings.delete(mapping)) this.ucx.unmap(this.#context, mapping);
    };
  }

  /**
   * The endpoint of the worker with this address; connections share it. It stays until one of the two workers closes, because
   * UCX pairs the endpoints of two workers in the order in which they were made.
   */
  endpoint(address: Uint8Array): UcxEndpoint {
    const key = Buffer.from(address).toString('latin1');
    let endpoint = this.#endpoints.get(key);
    if (endpoint?.hasFailed === true) {
      this.#drop(key, endpoint);
      endpoint = undefined;
    }
    if (endpoint === undefined) this.#endpoints.set(key, (endpoint = new UcxEndpoint(this, address)));
    endpoint.users++;
    return endpoint;
  }

  /** A connection no longer uses the endpoint. */
  release(endpoint: UcxEndpoint): void {
    endpoint.users--;
    if (this.#failed.has(endpoint) && endpoint.users === 0) {
      this.#failed.delete(endpoint);
      this.#end(endpoint);
    }
  }

  /** Resolves when `isOver` returns true; until then the event loop polls. */
  until(isOver: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      if (isOver()) {
        resolve();
        return;
      }
      this.#waits.add({ isOver, end: resolve, fail: reject });
      this.#movedMs = clockMs();
      if (!this.#isScheduled) this.#schedule();
    });
  }

  /** Cancels requests and calls `then` when UCX uses their memory no more. */
  retire(requests: readonly number[], then: () => void): void {
    const { ucx } = this;
    const running = requests.filter((request) => {
      if (request === 0 || this.isClosed) return false;
      ucx.cancel(this.handle, request);
      return !this.#isFreed(request);
    });
    if (running.length === 0) then();
    else this.#retired.add({ requests: running, then });
  }

  #isFreed(request: number): boolean {
    if (this.ucx.statusOf(request) === UCS_IN_PROGRESS) return false;
    this.ucx.free(request);
    return true;
  }

  #collect(): void {
    for (const one of this.#retired) {
      one.requests = one.requests.filter((request) => !this.#isFreed(request));
      if (one.requests.length > 0) continue;
      this.#retired.delete(one);
      one.then();
    }
  }

  #drop(key: string, endpoint: UcxEndpoint): void {
    this.#endpoints.delete(key);
    if (endpoint.users > 0) this.#failed.add(endpoint);
    else this.#end(endpoint);
  }

  #end(endpoint: UcxEndpoint): void {
    const request = endpoint.close();
    if (request > 0) this.#retired.add({ requests: [request], then: () => undefined });
  }

  readonly #turn = (): void => {
    this.#isScheduled = false;
    const { epoch } = this;
    this.progress();
    if (this.epoch !== epoch) this.#movedMs = clockMs();
    for (const wait of this.#waits) {
      try {
        if (!wait.isOver()) continue;
        wait.end();
      } catch (error) {
        wait.fail(error);
      }
      this.#waits.delete(wait);
    }
    if (this.#waits.size > 0) this.#schedule();
  };

  #schedule(): void {
    this.#isScheduled = true;
    if (clockMs() - this.#movedMs < EAGER_MS) setImmediate(this.#turn);
    else setTimeout(this.#turn, PAUSE_MS);
  }

  /** Ends everything immediately, without notifying the other side. */
  close(): void {
    if (this.isClosed) return;
    this.#onClose();
    const { ucx } = this;
    for (const endpoint of [...this.#endpoints.values(), ...this.#failed]) {
      this.#end(endpoint);
      endpoint.fail(UCS_CANCELED);
    }
    for (let i = 0; i < MOST_ATTEMPTS && this.#retired.size > 0; i++) {
      this.progress();
      this.#collect();
    }
    ucx.closeWorker(this.handle);
    // No card writes any more. Their memory is still registered in the context.
    for (const { then } of this.#retired) then();
    this.#retired.clear();
    this.isClosed = true;
    // UCX ends the process if a registration outlives its context.
    for (const mapping of this.#mappings) ucx.unmap(this.#context, mapping);
    this.#mappings.clear();
    ucx.closeContext(this.#context);
  }
}

let ofThread: UcxWorker | undefined;

/** Worker of this thread. */
export function workerHere(ucx: Ucx): UcxWorker {
  ofThread ??= new UcxWorker(ucx, () => (ofThread = undefined));
  return ofThread;
}
