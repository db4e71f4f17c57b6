import type { Bootstrap } from '../bootstrap/bootstrap.js';
import { loadLibc, type Libc } from '../device/libc.js';
import { MAX_LOCAL_RANKS, memoryFilePath, Segment } from '../device/segment.js';

/** A rank's segment, and why ranks of one host do not share one where they don't. */
export interface Joined {
  readonly segment: Segment;
  /** Whether every rank of this host is in `segment`. */
  readonly shared: boolean;
  readonly reason: string | undefined;
}

interface Offer {
  readonly path?: string;
  readonly bytes?: number;
  readonly reason?: string;
}

/** The memory that a thread was started with serves its first communicator; the others are mapped, as in processes. */
let threadMemoryTaken = false;

/**
 * Brings the ranks of one host into one segment: threads through the memory that they were started with, processes
 * through a memory file that the first of them makes. When one of them cannot, none shares, and all know why.
 * Every rank of the host calls it.
 */
export async function joinSegment(bootstrap: Bootstrap, threadMemory: WebAssembly.Memory | undefined, allowed: boolean): Promise<Joined> {
  const { localRank, localRanks } = bootstrap;
  const nLocalRanks = localRanks.length;
  if (threadMemory !== undefined && !threadMemoryTaken) {
    threadMemoryTaken = true;
    return { segment: Segment.ofThreads(threadMemory, localRank, nLocalRanks), shared: true, reason: undefined };
  }
  if (nLocalRanks === 1) return { segment: Segment.alone(), shared: true, reason: undefined };

  const loaded = allowed ? loadLibc() : { reason: 'TCCL_SHM_DISABLE=1' };
  const libc = 'libc' in loaded ? loaded.libc : undefined;
  const made = localRank === 0 ? makeFile(libc, nLocalRanks) : {};
  try {
    const mine: Offer = made.file === undefined
      ? { reason: made.reason ?? ('reason' in loaded ? loaded.reason : 'unknown') }
      : { path: memoryFilePath(made.file.fd), bytes: made.file.bytes };
    const offer = decode(await bootstrap.broadcast(encode(mine), localRanks[0] ?? bootstrap.rank, 'host'));

    let segment: Segment | undefined;
    let reason = offer.reason;
    if (libc !== undefined && offer.path !== undefined && offer.bytes !== undefined) {
      try {
        segment = Segment.mapped(libc, offer.path, offer.bytes, localRank, nLocalRanks);
      } catch (error) {
        reason = (error as Error).message;
      }
    } else if ('reason' in loaded) reason = loaded.reason;

    const outcomes = await bootstrap.allGather(encode(segment === undefined ? { reason: reason ?? 'unknown' } : {}), 'host');
    const refused = outcomes.map((bytes) => decode(bytes).reason).find((text) => text !== undefined);
    if (segment !== undefined && refused === undefined) return { segment, shared: true, reason: undefined };
    segment?.close();
    return { segment: Segment.alone(), shared: false, reason: refused };
  } finally {
    if (made.file !== undefined) libc?.close(made.file.fd);
  }
}

/** The memory file of the host, or why there can be none. */
function makeFile(libc: Libc | undefined, nLocalRanks: number): { readonly file?: { fd: number; bytes: number }; readonly reason?: string } {
  if (libc === undefined) return {};
  if (nLocalRanks > MAX_LOCAL_RANKS) return { reason: `a host's memory has room for ${MAX_LOCAL_RANKS} ranks, not for ${nLocalRanks}` };
  try {
    return { file: Segment.createFile(libc) };
  } catch (error) {
    return { reason: (error as Error).message };
  }
}

const encode = (value: Offer): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
const decode = (bytes: Uint8Array): Offer => JSON.parse(new TextDecoder().decode(bytes)) as Offer;
