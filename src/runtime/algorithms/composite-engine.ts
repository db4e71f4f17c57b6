import type { EngineCall } from './queued-call.js';
import { algorithmBits, kindOf, type Algorithm, type Call, type CallKind } from './call.js';
import type { WakeSources } from '../progress/parking.js';
import type { Activity } from './activity.js';
import type { Observe } from './operation.js';
import { callKinds } from '../device/kernels/kernels.js';
import { InternalError, type TcclError } from '../../errors.js';
import { algorithmFor, type AlgorithmTable } from './choose-algorithm.js';
import type { Engine } from './engine.js';

/** A range of sizes of one kind of call, for the fast path. */
interface Range {
  readonly upToBytes: number;
  readonly engine: Engine;
  /** Bits to add to a call's code. */
  readonly mark: number;
  /** The range of larger calls; undefined for the last. */
  readonly next: Range | undefined;
}

/**
 * The engine of a communicator: the engines of several algorithms, one of which carries out each call, by kind and size. All
 * ranks have the same table, so they make the same choice; properties that differ between ranks, such as where arrays lie,
 * must not matter.
 */
export class CompositeEngine implements Engine {
  readonly blocking: boolean;
  readonly keepsTime: boolean;
  readonly table: AlgorithmTable;
  /** Observer of operations beside the collectives, if the communicator is observed. */
  readonly observe: Observe | undefined = undefined;
  /** Writes a line about the ways of data to the log, if the communicator is observed. */
  readonly note: ((text: string) => void) | undefined = undefined;
  /** First range of each kind, by the kind's code. */
  readonly #ranges: Range[] = [];
  readonly #engines: readonly Engine[];
  /** Engine of the running call, or of the last one. */
  #current: Engine;

  /**
   * @param table algorithms by kind and size of call
   * @param engines the engine of each algorithm in the table; one engine may serve several
   */
  constructor(table: AlgorithmTable, engines: Readonly<Partial<Record<Algorithm, Engine>>>) {
    this.table = table;
    for (const [kind, ranges] of Object.entries(table)) {
      const first = ranges.reduceRight<Range | undefined>((next, { algorithm, upToBytes }) => {
        const engine = engines[algorithm];
        if (engine === undefined) throw new InternalError('INTERNAL', `there is no engine for ${algorithm}`);
        return { upToBytes, engine, mark: algorithmBits(algorithm), next };
      }, undefined);
      if (first !== undefined) this.#ranges[callKinds[kind as CallKind]] = first;
    }
    this.#engines = [...new Set(Object.values(engines))];
    const [first] = this.#engines;
    if (first === undefined) throw new InternalError('INTERNAL', 'an engine needs an algorithm');
    this.#current = first;
    this.blocking = this.#engines.every((engine) => engine.blocking);
    this.keepsTime = this.#engines.every((engine) => engine.keepsTime === true);
  }

  algorithmOf(kind: CallKind, bytes: number): Algorithm {
    return algorithmFor(this.table[kind], bytes);
  }

  begin(call: EngineCall, spins: number): number {
    const bytes = call.count * call.type.bytes;
    let range = this.#ranges[kindOf(call.code)] as Range;
    while (bytes > range.upToBytes) range = range.next as Range;
    const { engine } = range;
    this.#current = engine;
    return engine.begin(call, spins, range.mark);
  }

  progress(spins: number): number {
    return this.#current.progress(spins);
  }

  get steps(): number {
    return this.#current.steps;
  }

  get polled(): boolean {
    return this.#current.polled;
  }

  get parkAfterMs(): number {
    return this.#current.parkAfterMs;
  }

  wakeOn(sources: WakeSources): void {
    this.#current.wakeOn(sources);
  }

  get rest(): Engine['rest'] {
    return this.#current.rest;
  }

  check(): void {
    this.#current.check();
  }

  late(limitMs: number): number[] {
    return this.#current.late(limitMs);
  }

  lateBeyondRanks(limitMs: number): string | undefined {
    return this.#current.lateBeyondRanks?.(limitMs);
  }

  reportWait(limitMs: number, activity: Activity): readonly number[] | undefined {
    return this.#current.reportWait(limitMs, activity);
  }

  forwardReport(report: readonly number[]): void {
    for (const engine of this.#engines) engine.forwardReport(report);
  }

  underWay(): Call | undefined {
    return this.#current.underWay();
  }

  doing(rank: number): string | undefined {
    return this.#current.doing(rank);
  }

  abort(error: TcclError): void {
    for (const engine of this.#engines) engine.abort(error);
  }

  async close(): Promise<void> {
    await Promise.all(this.#engines.map((engine) => engine.close()));
  }
}
