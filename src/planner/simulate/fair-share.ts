/** Flows over shared links, laid out flat: uses of flow f are `first[f]` up to `first[f + 1]`. */
export interface Flows {
  readonly first: Int32Array;
  /** The link of each use. */
  readonly link: Int32Array;
  /** Share of a flow's rate that the link carries. */
  readonly weight: Float64Array;
  /** The most that each flow could take, GB/s. */
  readonly most: Float64Array;
}

/**
 * Max-min fair rates (Bertsekas and Gallager, Data Networks, 6.5.2): all flows grow equally until a link is full or a flow
 * reaches its limit; these stop, the others continue.
 *
 * @param capacity of each link, GB/s
 */
export function fairRates({ first, link, weight, most }: Flows, capacity: Float64Array): Float64Array {
  const count = most.length;
  const rates = new Float64Array(count);
  // Flows that still grow, in their order: most stop early.
  const growing = Int32Array.from(most, (_, flow) => flow);
  let nGrowing = count;
  const left = Float64Array.from(capacity);
  const demand = new Float64Array(capacity.length);
  for (let level = 0; nGrowing > 0;) {
    demand.fill(0);
    let step = Infinity;
    for (let place = 0; place < nGrowing; place++) {
      const flow = growing[place] ?? 0;
      step = Math.min(step, (most[flow] ?? 0) - level);
      for (let use = first[flow] ?? 0; use < (first[flow + 1] ?? 0); use++)
        demand[link[use] ?? 0] = (demand[link[use] ?? 0] ?? 0) + (weight[use] ?? 0);
    }
    for (let number = 0; number < left.length; number++) {
      const wanted = demand[number] ?? 0;
      if (wanted > 0) step = Math.min(step, (left[number] ?? 0) / wanted);
    }
    level += step;
    for (let number = 0; number < left.length; number++) left[number] = (left[number] ?? 0) - step * (demand[number] ?? 0);
    const before = nGrowing;
    nGrowing = 0;
    for (let place = 0; place < before; place++) {
      const flow = growing[place] ?? 0;
      let isFull = level >= (most[flow] ?? 0) * (1 - 1e-9);
      for (let use = first[flow] ?? 0; use < (first[flow + 1] ?? 0) && !isFull; use++)
        isFull = (left[link[use] ?? 0] ?? 0) <= 1e-9 * (capacity[link[use] ?? 0] ?? 0);
      if (isFull) rates[flow] = level;
      else growing[nGrowing++] = flow;
    }
    // Rounding may leave a link slightly below its capacity: it counts as full.
    if (nGrowing === before) {
      for (const flow of growing.subarray(0, nGrowing)) rates[flow] = level;
      break;
    }
  }
  return rates;
}
