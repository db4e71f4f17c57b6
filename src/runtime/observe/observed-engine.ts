import type { EngineCall } from '../algorithms/queued-call.js';
import { decodeCall, type Algorithm, type Call } from '../algorithms/call.js';
import type { Observe, Operation } from '../algorithms/operation.js';
import { DONE } from '../device/kernels/kernels.js';
import type { TcclError } from '../../errors.js';
import type { AlgorithmTable } from '../algorithms/choose-algorithm.js';
import { CompositeEngine } from '../algorithms/composite-engine.js';
import type { Engine } from '../algorithms/engine.js';

/** Listener for each operation of a communicator. */
export interface Observer {
  /** @param number of the communicator's collectives, from 0 */
  began(call: Call, number: number): void;
  /** The running call has made progress. */
  advanced(): void;
  /** The running call has been waiting for a while; called repeatedly. */
  waits(): void;
  ended(): void;
  /**
   * An operation beside the collectives begins. Returns the function to call at its end.
   * @param number of such operations, from 0
   */
  beganBeside(operation: Operation, number: number): (error?: Error) => void;
  /** The ways of data are known. */
  noted?(text: string): void;
  failed(error: TcclError): void;
  closed(): void;
}

/**
 * A composite engine that reports to observers. Communicators that are not observed have a plain one, so observing costs them
 * nothing.
 */
export class ObservedEngine extends CompositeEngine {
  readonly #observers: readonly Observer[];
  #number = 0;
  #besides = 0;
  #seenSteps = 0;

  constructor(table: AlgorithmTable, engines: Readonly<Partial<Record<Algorithm, Engine>>>, observers: readonly Observer[]) {
    super(table, engines);
    this.#observers = observers;
  }

  override readonly observe: Observe = (operation) => {
    const number = this.#besides++;
    const begun = this.#observers.map((observer) => observer.beganBeside(operation, number));
    return (error) => {
      for (const end of begun) end(error);
    };
  };

  override readonly note = (text: string): void => {
    for (const observer of this.#observers) observer.noted?.(text);
  };

  override begin(call: EngineCall, spins: number): number {
    const { code, type, root, count } = call;
    const decoded = decodeCall(code, root, count);
    const seen = { ...decoded, algorithm: this.algorithmOf(decoded.kind, count * type.bytes) };
    const number = this.#number++;
    for (const observer of this.#observers) observer.began(seen, number);
    const status = super.begin(call, spins);
    this.#seenSteps = this.steps;
    return this.#report(status);
  }

  override progress(spins: number): number {
    const status = super.progress(spins);
    if (status !== DONE && this.steps !== this.#seenSteps) {
      this.#seenSteps = this.steps;
      for (const observer of this.#observers) observer.advanced();
    }
    return this.#report(status);
  }

  override check(): void {
    for (const observer of this.#observers) observer.waits();
    super.check();
  }

  override abort(error: TcclError): void {
    for (const observer of this.#observers) observer.failed(error);
    super.abort(error);
  }

  override async close(): Promise<void> {
    await super.close();
    for (const observer of this.#observers) observer.closed();
  }

  #report(status: number): number {
    if (status === DONE) for (const observer of this.#observers) observer.ended();
    return status;
  }
}
