/**
 * From the records of a run to tccl's time over the best of its peers. Pure functions, so that any results file can be compared
 * again.
 *
 * @module
 */

/** Below this a cache line's way between the two cores is one inside a shared cache, in ns. */
const nearNs = 120;

/**
 * A JSON line of bench/peers/bench.c or bench/ranks/collective.mjs.
 *
 * @typedef {{
 *   lib: string, cfg: string, coll: string, type: string, ranks: number, bytes: number, inplace: number, calls: number,
 *   link_ns: [number, number], others: [number, number], time_us: number, wrong: number | null,
 * }} TimingRecord
 */

/**
 * The lowest of the medians that a library's tuning had; `noisy` if other processes ran in all of them.
 *
 * @typedef {{ lib: string, cfg: string, us: number, runs: number, noisy: boolean }} Figure
 */

/**
 * @typedef {{
 *   coll: string, type: string, ranks: number, calls: number, state: 'near' | 'far' | 'any', bytes: number,
 *   best: Figure | undefined, peers: Figure[], ours: Record<string, Figure>,
 * }} Comparison
 *   `best` of the peers; `ours` by tccl's API: sync, promise, plain
 */

/**
 * State of the cores, as the host placed them: undefined if it moved one meanwhile, `any` where it makes no difference.
 *
 * @param {Pick<TimingRecord, 'link_ns'>} record
 */
export function stateOf({ link_ns: [before, after] }) {
  if (before === 0 && after === 0) return 'any';
  const ends = [before, after].map((ns) => (ns < nearNs ? 'near' : 'far'));
  return ends[0] === ends[1] ? ends[0] : undefined;
}

/**
 * Comparisons in the order of collective, type, ranks, calls, state and size. Records with wrong results, or during
 * which the cores' state changed, do not count; records taken while other processes ran count only where a tuning has
 * no other.
 *
 * @param {readonly Record<string, any>[]} records others than timings are skipped
 * @returns {Comparison[]}
 */
export function compare(records) {
  /** @type {Map<string, Comparison & { figures: Map<string, Figure & { quiet: number[], loud: number[] }> }>} */
  const comparisons = new Map();
  for (const record of records) {
    if (!isTiming(record) || (record.wrong ?? 0) > 0) continue;
    const state = stateOf(record);
    if (state === undefined) continue;
    const { lib, cfg, coll, type, ranks, calls, bytes } = record;
    const key = [coll, type, ranks, calls, state, bytes].join(' ');
    const comparison = getOrMake(comparisons, key, () => ({
      coll,
      type,
      ranks,
      calls,
      state: /** @type {Comparison['state']} */ (state),
      bytes,
      best: undefined,
      peers: [],
      ours: {},
      figures: new Map(),
    }));
    const figure = getOrMake(comparison.figures, `${lib} ${cfg}`, () => ({
      lib,
      cfg,
      us: 0,
      runs: 0,
      noisy: false,
      quiet: [],
      loud: [],
    }));
    (record.others.some((count) => count > 0) ? figure.loud : figure.quiet).push(record.time_us);
  }
  return [...comparisons.values()]
    .map(({ figures, ...comparison }) => {
      const all = [...figures.values()].map(({ quiet, loud, lib, cfg }) => {
        const counted = quiet.length > 0 ? quiet : loud;
        return { lib, cfg, us: Math.min(...counted), runs: counted.length, noisy: quiet.length === 0 };
      });
      const peers = all.filter(({ lib }) => lib !== 'tccl').sort((a, b) => a.us - b.us);
      const ours = Object.fromEntries(all.filter(({ lib }) => lib === 'tccl').map((figure) => [figure.cfg, figure]));
      return { ...comparison, best: peers[0], peers, ours };
    })
    .sort(inOrder);
}

/**
 * @param {Record<string, any>} record
 * @returns {record is TimingRecord}
 */
function isTiming(record) {
  // Records of suite hosts are compared separately.
  return (
    record['hosts'] === undefined &&
    typeof record['lib'] === 'string' &&
    typeof record['coll'] === 'string' &&
    Array.isArray(record['link_ns'])
  );
}

/** @param {Comparison} a @param {Comparison} b */
function inOrder(a, b) {
  return (
    a.coll.localeCompare(b.coll) ||
    a.type.localeCompare(b.type) ||
    a.ranks - b.ranks ||
    a.calls - b.calls ||
    b.state.localeCompare(a.state) ||
    a.bytes - b.bytes
  );
}

/**
 * @template Value
 * @param {Map<string, Value>} map @param {string} key @param {() => Value} make
 * @returns {Value}
 */
function getOrMake(map, key, make) {
  const value = map.get(key) ?? make();
  map.set(key, value);
  return value;
}
