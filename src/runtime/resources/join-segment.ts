import { process } from '#platform/process';
import type { Bootstrap } from '../bootstrap/bootstrap.js';
import { decodeJson, encodeJson } from '../bootstrap/json.js';
import { loadLibc, type Libc, type LoadedLibc } from '../device/libc.js';
import { PeerMemory, probeWord, type ProbeWord } from '../device/peer-memory.js';
import { reaches } from '../device/rank-lines.js';
import { MAX_LOCAL_RANKS, Segment } from '../device/segment.js';
import { createMemoryFile, memoryAfterOthers, PAGE_BYTES, type MadeFile } from '../device/shared-memory.js';
import { descriptorPath } from '../proc.js';
import { defined } from '../../defined.js';

/** A rank's segment, and the reason if ranks of one host do not share it. */
export interface Joined {
  readonly segment: Segment;
  /** True if every rank of this host uses `segment`. */
  readonly shared: boolean;
  readonly reason: string | undefined;
}

interface Offer {
  readonly path?: string;
  readonly bytes?: number;
  readonly reason?: string;
}

/** A rank's result of joining. */
interface Outcome {
  readonly reason?: string;
  readonly probeWord?: ProbeWord;
}

/** Allowed features; ranks may differ. */
interface Allowed {
  /** Memory shared between processes. */
  readonly sharedMemory: boolean;
  /** Reading other ranks' private memory. */
  readonly peerMemory: boolean;
}

/**
 * True once the memory that this thread was started with is used. It serves the thread's first communicator; others map
 * memory, as in processes.
 */
let threadMemoryTaken = false;

/**
 * Brings the ranks of one host into one segment: threads through the memory that they were started with, processes through a
 * memory file that the first rank creates. If one of them cannot join, none shares memory, and all get the reason. Every rank
 * of the host calls it.
 */
export async function joinSegment(
  bootstrap: Bootstrap,
  threadMemory: WebAssembly.Memory | undefined,
  allowed: Allowed,
): Promise<Joined> {
  const { localRank, localRanks } = bootstrap;
  const nLocalRanks = localRanks.length;
  const loaded = loadLibc();
  if (threadMemory !== undefined && !threadMemoryTaken) {
    threadMemoryTaken = true;
    const segment = Segment.ofThreads(threadMemory, localRank, nLocalRanks);
    const mine = probeWordIn(loaded, allowed);
    seePeers(
      segment,
      loaded,
      localRanks.map(() => mine),
    );
    return { segment, shared: true, reason: undefined };
  }
  if (nLocalRanks === 1) return { segment: await alone(loaded), shared: true, reason: undefined };

  const usable: LoadedLibc = allowed.sharedMemory ? loaded : { reason: 'TCCL_SHM_DISABLE=1' };
  const { libc } = usable;
  const made = localRank === 0 ? await makeFile(libc, nLocalRanks) : {};
  try {
    const mine: Offer =
      made.file === undefined
        ? { reason: made.reason ?? usable.reason ?? 'unknown' }
        : { path: descriptorPath(process.pid, made.file.fd), bytes: made.file.bytes };
    const offer = decodeJson(await bootstrap.broadcast(encodeJson(mine), defined(localRanks[0]), 'host')) as Offer;

    let segment: Segment | undefined;
    let reason = offer.reason;
    if (libc !== undefined && offer.path !== undefined && offer.bytes !== undefined) {
      try {
        const memory = made.file?.memory ?? (await memoryAfterOthers(offer.bytes / PAGE_BYTES));
        segment = Segment.mapped(libc, { path: offer.path, memory }, localRank, nLocalRanks);
      } catch (error) {
        reason = (error as Error).message;
      }
    } else if (usable.reason !== undefined) reason = usable.reason;

    const here = probeWordIn(usable, allowed);
    const outcome: Outcome =
      segment === undefined ? { reason: reason ?? 'unknown' } : here === undefined ? {} : { probeWord: here };
    const outcomes = (await bootstrap.allGather(encodeJson(outcome), 'host')).map((bytes) => decodeJson(bytes) as Outcome);
    const refused = outcomes.map((other) => other.reason).find((text) => text !== undefined);
    if (segment !== undefined && refused === undefined) {
      seePeers(
        segment,
        usable,
        outcomes.map((other) => other.probeWord),
      );
      return { segment, shared: true, reason: undefined };
    }
    segment?.close();
    return { segment: await alone(loaded), shared: false, reason: refused };
  } finally {
    if (made.file !== undefined) libc?.close(made.file.fd);
  }
}

async function alone(loaded: LoadedLibc): Promise<Segment> {
  return Segment.alone(await memoryAfterOthers(), loaded.libc);
}

/** Address at which others may read this rank's private memory, if allowed. */
function probeWordIn(loaded: LoadedLibc, { peerMemory }: Allowed): ProbeWord | undefined {
  return peerMemory && loaded.libc !== undefined ? probeWord(loaded.libc) : undefined;
}

/** Tests whether the ranks can read each other's private memory. It is used only if all can. */
function seePeers(segment: Segment, loaded: LoadedLibc, others: readonly (ProbeWord | undefined)[]): void {
  const known = others.filter((other) => other !== undefined);
  if (loaded.libc !== undefined && known.length === others.length)
    segment.peerMemory = new PeerMemory(segment.ranks, loaded.libc, known);
  else segment.ranks.setReach(reaches.notAll);
}

/** Creates the memory file of the host, or returns why it cannot. */
async function makeFile(
  libc: Libc | undefined,
  nLocalRanks: number,
): Promise<{ readonly file?: MadeFile; readonly reason?: string }> {
  if (libc === undefined) return {};
  if (nLocalRanks > MAX_LOCAL_RANKS)
    return { reason: `shared memory of a host has room for ${MAX_LOCAL_RANKS} ranks, not for ${nLocalRanks}` };
  try {
    return { file: await createMemoryFile(libc) };
  } catch (error) {
    return { reason: (error as Error).message };
  }
}
