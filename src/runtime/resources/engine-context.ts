import type { Algorithm } from '../algorithms/call.js';
import type { ReportsOnRequest } from '../algorithms/wait-chains.js';
import type { Bootstrap } from '../bootstrap/bootstrap.js';
import type { BootstrapEnvironment } from '../bootstrap/environment.js';
import type { UniqueId } from '../bootstrap/unique-id.js';
import type { TopologyFiles } from '#seam/channels/plan-channels';
import type { Libc } from '../device/libc.js';
import type { Team } from '../device/team.js';
import type { RankFacts } from './agree.js';
import type { EngineThreads } from './config.js';
import type { RuntimeSettings } from './options.js';

/** Largest call that takes one phase when each rank has a core of its own; measured (npm run bench). */
const SMALL_BYTES = 256;
/** The same when ranks outnumber cores: each phase costs a process switch on each core, so larger calls take one phase, too. */
const SMALL_BYTES_CROWDED = 4096;
/** Largest all-reduce by *direct* that takes one phase; other kinds of calls use takesOnePhase(). */
export function smallBytesOf(nLocalRanks: number, nCores: number): number {
  return nLocalRanks > nCores ? SMALL_BYTES_CROWDED : SMALL_BYTES;
}

/**
 * Largest call of a ring that uses the protocol LL; for larger ones its copies cost more than it saves
 * (docs/notes/algorithms.md).
 */
const LOW_LATENCY_BYTES = 256;
/** Largest call of this communicator's ring that uses the protocol LL; -1 without one. */
export function lowLatencyBytesOf(oneSegment: boolean, nThreads: number, { protocol }: RuntimeSettings): number {
  if (!oneSegment || nThreads > 0 || protocol === 'simple') return -1;
  return protocol === 'll' ? Infinity : LOW_LATENCY_BYTES;
}

/** Inputs of the choice; the same on all ranks, apart from each rank's own objects. */
export interface EngineContext {
  readonly bootstrap: Bootstrap;
  /** True if all ranks of this host share memory. */
  readonly shared: boolean;
  readonly team: Team;
  readonly facts: readonly RankFacts[];
  readonly libc: Libc | undefined;
  readonly nCores: number;
  readonly settings: RuntimeSettings;
  /** Files of the topology; children do not overwrite those that init() wrote. */
  readonly topology: TopologyFiles;
  readonly network: BootstrapEnvironment;
  readonly id: UniqueId;
  /** Aborts a set-up that takes too long. */
  readonly signal: AbortSignal;
  readonly threads: EngineThreads & { readonly connectsAll: boolean };
  /** Forwards wait reports of an engine thread to ranks that wait for messages. */
  readonly forwardReport: (report: readonly number[]) => void;
  /** Reports of ranks that share no memory with this one. */
  readonly reports: ReportsOnRequest;
  /** The algorithm that carries out every call it can. */
  readonly forced: Algorithm | undefined;
  /** See InitOptions. */
  readonly onWarning: ((text: string) => void) | undefined;
  /** Name that the program gave the communicator. */
  readonly name: string | undefined;
}
