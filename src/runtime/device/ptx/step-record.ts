// A record has the work of a kernel: arrays, how many bytes, which flags to wait for and which to post. A kernel that is ordered
// by a stream gets one as its parameter; one that waits for flags executes a list of them in memory, so that a whole
// collective is data.
//
//     0   bytes u64, sources u32, destinations u32, waits u32, posts u32, divisor u32, scaled sources u32
//     32  sources on the wire u32, destinations on the wire u32, flag of lines u32, posts to all members u32
//     48  waits {flag u64, value u64}[8], posts {flag u64, value u64}[8]
//     304 sources u64[64], destinations u64[64], scalars u64[64]

/** The most arrays of a step: one of each rank of a host. A record stays well below 4 KiB, which parameters may have. */
export const MAX_ARRAYS = 64;
/** The most waits or posts: NCCL's number of peers that a direct exchange has. */
const MAX_FLAGS = 8;
/** Size of a record, which begins at a multiple of 16. */
export const RECORD_BYTES = 304 + 3 * 8 * MAX_ARRAYS;

export const fields = {
  bytes: 0,
  nSources: 8,
  nDestinations: 12,
  nWaits: 16,
  nPosts: 20,
  divisor: 24,
  nScaled: 28,
  nWireSources: 32,
  nWireDestinations: 36,
  lineFlag: 40,
  nMulticastPosts: 44,
  waits: 48,
  posts: 176,
  sources: 304,
  destinations: 304 + 8 * MAX_ARRAYS,
  scalars: 304 + 16 * MAX_ARRAYS,
} as const;

/** A counter in the memory of a GPU or of the host, and the value to wait for or to post. */
export interface Flag {
  readonly address: bigint;
  readonly value: bigint;
}

/** One step of a collective, for any kernel. Addresses are the device's. */
export interface Step {
  /** Length of the arrays, whole elements. */
  readonly bytes: number;
  /** Arrays to read, combined in this order. */
  readonly sources: readonly bigint[];
  /** Arrays to write; one may be a source, but arrays must not overlap otherwise. */
  readonly destinations: readonly bigint[];
  /** Counters that must have reached their values before data are read or written. */
  readonly waits?: readonly Flag[];
  /** Counters to set after all data are written. */
  readonly posts?: readonly Flag[];
  /** Of `posts`, the last ones: multicast counters of all members, to which the values are added. */
  readonly nMulticastPosts?: number;
  /** Of `avg`: the number of ranks, where the sum is complete; 1 before. */
  readonly divisor?: number;
  /** Of `premulSum`: the scalars of the first sources, as writeScalar makes them (device/scalar.ts). */
  readonly scalars?: readonly bigint[];
  /** Of the sources and destinations, the last ones: lines with flags, or multicast addresses, as the kernel has them. */
  readonly nWireSources?: number;
  readonly nWireDestinations?: number;
  /** Flag of the lines of this step, unlike that of the lines' last contents. */
  readonly lineFlag?: number;
}

/** Writes a record of RECORD_BYTES bytes. Throws RangeError for more operands than it holds. */
export function writeStep(view: DataView, at: number, step: Step): void {
  const { sources, destinations, waits = [], posts = [], scalars = [] } = step;
  const check = (most: number, tables: Readonly<Record<string, readonly unknown[]>>): void => {
    for (const [name, { length }] of Object.entries(tables))
      if (length > most) throw new RangeError(`a step has at most ${most} ${name}, not ${length}`);
  };
  check(MAX_ARRAYS, { sources, destinations, scalars });
  check(MAX_FLAGS, { waits, posts });
  const word = (field: keyof typeof fields, value: number): void => view.setUint32(at + fields[field], value, true);
  const table = (offset: number, values: readonly bigint[]): void =>
    values.forEach((value, i) => view.setBigUint64(at + offset + 8 * i, value, true));
  view.setBigUint64(at + fields.bytes, BigInt(step.bytes), true);
  word('nSources', sources.length);
  word('nDestinations', destinations.length);
  word('nWaits', waits.length);
  word('nPosts', posts.length);
  word('divisor', step.divisor ?? 1);
  word('nScaled', scalars.length);
  word('nWireSources', step.nWireSources ?? 0);
  word('nWireDestinations', step.nWireDestinations ?? 0);
  word('lineFlag', step.lineFlag ?? 0);
  word('nMulticastPosts', step.nMulticastPosts ?? 0);
  table(fields.sources, sources);
  table(fields.destinations, destinations);
  table(fields.scalars, scalars);
  const flags = (list: readonly Flag[]): bigint[] => list.flatMap(({ address, value }) => [address, value]);
  table(fields.waits, flags(waits));
  table(fields.posts, flags(posts));
}
