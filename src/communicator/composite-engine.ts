import { algorithms, type Algorithm, type CallDetails, type CallKind } from '../collectives/call.js';
import type { Observe } from '../collectives/operation.js';
import { callKinds } from '../device/kernels/kernels.js';
import type { DataType, NumericArray } from '../device/types.js';
import { InternalError, type TcclError } from '../errors.js';
import type { AlgorithmTable } from './choose-algorithm.js';
import type { Engine } from './engine.js';

/** The ranges of one kind of call, as the way of a call needs them. */
interface Ways {
  readonly upToBytes: readonly number[];
  readonly engines: readonly Engine[];
  /** What goes into a call's code. */
  readonly marks: readonly number[];
}

/**
 * The engine of a communicator: the engines of several algorithms, of which each call takes one by its kind and size.
 * All ranks have the same table, so they choose alike; what differs between ranks, such as where arrays lie, may not
 * matter.
 */
export class CompositeEngine implements Engine {
  readonly blocking: boolean;
  readonly keepsTime: boolean;
  readonly table: AlgorithmTable;
  /** Where the communicator's operations are observed: told of those beside the collectives. */
  readonly observe: Observe | undefined = undefined;
  /** By the code of the kind. */
  readonly #ways: Ways[] = [];
  readonly #engines: readonly Engine[];
  /** Carries out the call under way, or did so with the last one. */
  #current: Engine;

  /**
   * @param table what each call takes
   * @param engines the engine of each algorithm in the table; one may serve several
   */
  constructor(table: AlgorithmTable, engines: Readonly<Partial<Record<Algorithm, Engine>>>) {
    this.table = table;
    for (const [kind, ranges] of Object.entries(table)) {
      const found = ranges.map(({ algorithm }) => {
        const engine = engines[algorithm];
        if (engine === undefined) throw new InternalError('INTERNAL', `there is no engine for ${algorithm}`);
        return engine;
      });
      this.#ways[callKinds[kind as CallKind]] = {
        upToBytes: ranges.map((range) => range.upToBytes),
        engines: found,
        marks: ranges.map((range) => algorithms.indexOf(range.algorithm) << 12),
      };
    }
    this.#engines = [...new Set(Object.values(engines))];
    const [first] = this.#engines;
    if (first === undefined) throw new InternalError('INTERNAL', 'an engine needs an algorithm');
    this.#current = first;
    this.blocking = this.#engines.every((engine) => engine.blocking);
    this.keepsTime = this.#engines.every((engine) => engine.keepsTime === true);
  }

  algorithmOf(kind: CallKind, bytes: number): Algorithm {
    const ranges = this.table[kind];
    const range = ranges.find(({ upToBytes }) => bytes <= upToBytes);
    if (range === undefined) throw new InternalError('INTERNAL', `no algorithm is given for ${kind} of ${bytes} bytes`);
    return range.algorithm;
  }

  begin(
    code: number, type: DataType, root: number, send: NumericArray, recv: NumericArray, count: number, spins: number, details?: CallDetails,
  ): number {
    const ways = this.#ways[code & 15];
    if (ways === undefined) throw new InternalError('INTERNAL', `0x${code.toString(16)} is not the code of a call`);
    const { upToBytes, engines, marks } = ways;
    const bytes = count * type.bytes;
    let range = 0;
    while (bytes > (upToBytes[range] as number)) range++;
    const engine = engines[range] as Engine;
    this.#current = engine;
    return engine.begin(code | (marks[range] as number), type, root, send, recv, count, spins, details);
  }

  progress(spins: number): number {
    return this.#current.progress(spins);
  }

  get steps(): number {
    return this.#current.steps;
  }

  get whenReady(): Engine['whenReady'] {
    return this.#current.whenReady;
  }

  get rest(): Engine['rest'] {
    return this.#current.rest;
  }

  check(): void {
    this.#current.check();
  }

  late(): number[] {
    return this.#current.late();
  }

  abort(error: TcclError): void {
    for (const engine of this.#engines) engine.abort(error);
  }

  async close(): Promise<void> {
    await Promise.all(this.#engines.map((engine) => engine.close()));
  }
}
