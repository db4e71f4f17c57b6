/** Finds many short texts in a long one in a single pass (Aho-Corasick). Upper and lower case are equal; texts are ASCII. */
export class NeedleFinder {
  /** By character code below 128, its column in the table; 0 for characters of no needle. */
  readonly #columns = new Uint8Array(128);
  readonly #width: number;
  /** By state and column, the next state. */
  readonly #next: Uint16Array;
  /** By state, the needles that end there. */
  readonly #ends: (readonly number[] | undefined)[];

  /** @param needles in lower case */
  constructor(needles: readonly string[]) {
    let width = 1;
    for (const needle of needles) {
      for (let at = 0; at < needle.length; at++) {
        const code = needle.charCodeAt(at);
        if (this.#columns[code] === 0) this.#columns[code] = width++;
      }
    }
    for (let code = 65; code <= 90; code++) this.#columns[code] = this.#columns[code + 32] ?? 0;
    this.#width = width;
    const size = needles.reduce((sum, { length }) => sum + length, 1);
    const next = new Uint16Array(size * width);
    const ends: number[][] = [[]];
    needles.forEach((needle, index) => {
      let state = 0;
      for (let at = 0; at < needle.length; at++) {
        const cell = state * width + (this.#columns[needle.charCodeAt(at)] ?? 0);
        if (next[cell] === 0) next[cell] = ends.push([]) - 1;
        state = next[cell] ?? 0;
      }
      ends[state]?.push(index);
    });
    link(next, ends, width);
    this.#next = next.slice(0, ends.length * width);
    this.#ends = ends.map((list) => (list.length === 0 ? undefined : list));
  }

  /** Calls `found` with the index of each needle at each of its occurrences in the text. */
  find(text: string, found: (needle: number) => void): void {
    // A plain loop over typed arrays: every character of a log passes here.
    const columns = this.#columns;
    const next = this.#next;
    const width = this.#width;
    const ends = this.#ends;
    let state = 0;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      state = code > 127 ? 0 : (next[state * width + (columns[code] as number)] as number);
      if (state !== 0) {
        const list = ends[state];
        if (list !== undefined) for (const needle of list) found(needle);
      }
    }
  }
}

/** Replaces missing transitions by those of the longest suffix that is also a prefix, breadth first. */
function link(next: Uint16Array, ends: number[][], width: number): void {
  const suffix = new Uint16Array(ends.length);
  const queue: number[] = [];
  for (let column = 1; column < width; column++) {
    const child = next[column] ?? 0;
    if (child !== 0) queue.push(child);
  }
  for (let head = 0; head < queue.length; head++) {
    const state = queue[head] ?? 0;
    const behind = suffix[state] ?? 0;
    ends[state]?.push(...(ends[behind] ?? []));
    for (let column = 1; column < width; column++) {
      const cell = state * width + column;
      const follow = next[behind * width + column] ?? 0;
      const child = next[cell] ?? 0;
      if (child === 0) next[cell] = follow;
      else {
        suffix[child] = follow;
        queue.push(child);
      }
    }
  }
}
