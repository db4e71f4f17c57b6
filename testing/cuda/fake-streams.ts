/** Work of a stream, which begins after all before it. */
export interface Operation {
  /** In the order in which all streams were given work. */
  readonly number: number;
  /** Does the work, or a part of it. Returns true when it is done. */
  readonly run: () => boolean;
  /** False while it waits for an event; work after it waits, too. */
  readonly isReady: () => boolean;
  isDone: boolean;
}

export interface Stream {
  readonly operations: Operation[];
  readonly device: number;
  /** Waits for the legacy default stream of its GPU, and that one for it. */
  readonly isBlocking: boolean;
}

/** Times that a process waits for another one's work, of 1 ms each. */
const MOST_PAUSES = 60_000;

/** Streams whose work is done when somebody asks for it, in any order that they allow. */
export class FakeStreams {
  /** The stream 0 of each GPU. */
  readonly #legacy: readonly Stream[];
  readonly #streams: Set<Stream>;
  readonly #random: (below: number) => number;
  readonly #pause: () => void;
  #number = 0;
  /** While true, no work is done. */
  isHalted = false;

  /** @param pause lets other processes go on, where all work waits for theirs */
  constructor(devices: number, random: (below: number) => number, pause: () => void) {
    this.#legacy = Array.from({ length: Math.max(devices, 1) }, (_, device) => ({ operations: [], device, isBlocking: false }));
    this.#streams = new Set(this.#legacy);
    this.#random = random;
    this.#pause = pause;
  }

  legacy(device: number): Stream {
    const stream = this.#legacy[device];
    if (stream === undefined) throw new Error(`there is no GPU ${device}`);
    return stream;
  }

  open(device: number, isBlocking: boolean): Stream {
    const stream = { operations: [], device, isBlocking };
    this.#streams.add(stream);
    return stream;
  }

  /** Ends a stream as soon as its work is done. */
  close(stream: Stream): void {
    if (stream.operations.length === 0) this.#streams.delete(stream);
    else this.queue(stream, () => this.#streams.delete(stream));
  }

  queue(stream: Stream, run: () => boolean, isReady = () => true): Operation {
    const operation = { number: this.#number++, run, isReady, isDone: false };
    stream.operations.push(operation);
    return operation;
  }

  /** Does some of the work of streams that the seed chooses. */
  progress(): void {
    for (let left = this.#random(3); left > 0; left--) this.#step();
  }

  /** Does the work of a stream, or its part up to an operation, and what it waits for. */
  finish(stream: Stream, last = stream.operations.at(-1)): void {
    for (let pauses = 0; last?.isDone === false;) {
      if (this.#step()) pauses = 0;
      else if (pauses++ < MOST_PAUSES) this.#pause();
      else throw new Error('a stream waits for an event of a process that reaches it never, or waits itself');
    }
  }

  /** Does all work of a GPU. */
  finishAll(device: number): void {
    for (const stream of this.#streams) if (stream.device === device) this.finish(stream);
  }

  /** Leaves all work undone. */
  clear(): void {
    for (const { operations } of this.#streams) for (const each of operations.splice(0)) each.isDone = true;
  }

  get hasWork(): boolean {
    return [...this.#streams].some(({ operations }) => operations.length > 0);
  }

  /** Returns false if nothing came to its end: there was nothing to do, or a kernel waits for that of another process. */
  #step(): boolean {
    if (this.isHalted) return false;
    const ready = [...this.#streams].filter((stream) => this.#isReady(stream));
    const operations = ready[this.#random(ready.length)]?.operations;
    const operation = operations?.[0];
    if (operation?.run() !== true) return false;
    // A fault has left all work undone.
    if (operations?.[0] === operation) operations.shift();
    operation.isDone = true;
    return true;
  }

  #isReady(stream: Stream): boolean {
    const [next] = stream.operations;
    if (next?.isReady() !== true) return false;
    const legacy = this.legacy(stream.device);
    if (stream !== legacy && !stream.isBlocking) return true;
    const isBehind = ({ device, isBlocking }: Stream): boolean => isBlocking && device === stream.device;
    const others = stream === legacy ? [...this.#streams].filter(isBehind) : [legacy];
    return others.every(({ operations: [first] }) => first === undefined || first.number > next.number);
  }
}
