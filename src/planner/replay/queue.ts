/** Entries by time, the earliest first; of equal times, the one that was added first. */
export class TimeQueue<Entry> {
  readonly #heap: { readonly timeUs: number; readonly number: number; readonly entry: Entry }[] = [];
  #added = 0;

  add(timeUs: number, entry: Entry): void {
    const heap = this.#heap;
    heap.push({ timeUs, number: this.#added++, entry });
    for (let at = heap.length - 1; at > 0;) {
      const parent = (at - 1) >> 1;
      if (!this.#isBefore(at, parent)) break;
      this.#swap(at, parent);
      at = parent;
    }
  }

  take(): { readonly timeUs: number; readonly entry: Entry } | undefined {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    heap[0] = last;
    for (let at = 0; ;) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      let least = at;
      if (left < heap.length && this.#isBefore(left, least)) least = left;
      if (right < heap.length && this.#isBefore(right, least)) least = right;
      if (least === at) return first;
      this.#swap(at, least);
      at = least;
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [one, other] = [this.#heap[a], this.#heap[b]];
    if (one === undefined || other === undefined) return false;
    return one.timeUs < other.timeUs || (one.timeUs === other.timeUs && one.number < other.number);
  }

  #swap(a: number, b: number): void {
    const [one, other] = [this.#heap[a], this.#heap[b]];
    if (one === undefined || other === undefined) return;
    this.#heap[a] = other;
    this.#heap[b] = one;
  }
}
