/** Kinds of choices that a walk makes; walk.ts describes each. */
export const Choice = { ENTRY: 0, FIRST_GPU: 1, NEXT_GPU: 2, EXIT: 3, CLOSE: 4, HEAD: 5 } as const;
export type Choice = (typeof Choice)[keyof typeof Choice];

/** Order in which a channel tries its next GPUs: best first, next by number only, or the order of the previous channel. */
export const Order = { BEST: 0, BY_NUMBER: 1, REPEAT: 2 } as const;
export type Order = (typeof Order)[keyof typeof Order];

/** An open choice: its kind, its place, and the alternatives left to try. */
export class OpenChoice {
  kind: Choice = Choice.ENTRY;
  /** Position in the channel of the GPU where the choice is made. */
  step = 0;
  gpu = -1;
  /** Position at which the channel leaves the host, or -1. */
  exitStep = -1;
  order: Order = Order.BEST;
  /** GPUs or NICs to try: those from `next` up to `end`. */
  alternatives: Int32Array;
  next = 0;
  end = 0;
  /** The alternative that is being tried, or -1. */
  taken = -1;
  /** True if the channel begins here: after the last alternative, the previous channel is the last one again. */
  opensChannel = false;
  /** FIRST_GPU: the NIC that the channel came in by, or -1. */
  entry = -1;
  /** FIRST_GPU: true if the first alternative has a step limit of its own; `stepsBefore` is that of the others. */
  ownSteps = false;
  stepsBefore = 0;
  /** ENTRY: a head was found. */
  found = false;
  /** Index in the stack's pool where its lists of alternatives begin. */
  poolStart = 0;

  constructor(alternatives: Int32Array) {
    this.alternatives = alternatives;
  }
}

/**
 * The open choices of a walk, the latest on top. Choices and the lists of their alternatives are used again and again:
 * a walk makes millions of them.
 */
export class ChoiceStack {
  readonly #choices: OpenChoice[] = [];
  #depth = 0;
  /** Lists of alternatives, a stack beside that of the choices. */
  #pool: Int32Array;
  #poolEnd = 0;

  /** @param room numbers that the lists of alternatives may hold before they have to grow */
  constructor(room: number) {
    this.#pool = new Int32Array(room);
  }

  /** The latest choice, or undefined when none is open. */
  get top(): OpenChoice | undefined {
    return this.#depth === 0 ? undefined : this.#choices[this.#depth - 1];
  }

  /** A new choice on top, without alternatives yet. */
  open(kind: Choice, step: number, gpu: number, exitStep: number, order: Order): OpenChoice {
    const choice = (this.#choices[this.#depth++] ??= new OpenChoice(this.#pool));
    choice.kind = kind;
    choice.step = step;
    choice.gpu = gpu;
    choice.exitStep = exitStep;
    choice.order = order;
    choice.taken = -1;
    choice.opensChannel = false;
    choice.poolStart = this.#poolEnd;
    return choice;
  }

  /** Takes the top away, with its list. */
  close(choice: OpenChoice): void {
    this.#poolEnd = choice.poolStart;
    this.#depth--;
  }

  /** Gives the top an empty list with room for `count`: numbers are put at `choice.end++`. */
  list(choice: OpenChoice, count: number): Int32Array {
    if (this.#poolEnd + count > this.#pool.length) {
      const larger = new Int32Array(2 * (this.#poolEnd + count));
      larger.set(this.#pool);
      this.#pool = larger;
    }
    choice.alternatives = this.#pool;
    choice.next = this.#poolEnd;
    choice.end = this.#poolEnd;
    this.#poolEnd += count;
    return this.#pool;
  }

  /** Releases the unused room of the top's list. */
  trim(choice: OpenChoice): void {
    this.#poolEnd = choice.end;
  }
}
