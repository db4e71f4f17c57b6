import type { Bootstrap } from '../bootstrap/bootstrap.js';
import type { Observe } from '../algorithms/operation.js';
import type { PointToPoint } from '../messages/p2p.js';
import type { Libc } from '../device/libc.js';
import type { Team } from '../device/team.js';
import type { DataType } from '../device/types.js';
import { InvalidUsageError, SystemError } from '../../errors.js';
import type { Messenger } from '../messages/messenger.js';
import type { TimedCallParts } from '../messages/timed-call.js';
import { progressHere } from '../progress/progress.js';
import { gatherJson } from '../bootstrap/gather-json.js';
import { oddRanksOf } from '../bootstrap/rank-list.js';
import { ROOM_BYTES } from './element-changes.js';
import { WindowLanes } from './window-lanes.js';
import { signalBytes } from './window-signals.js';
import { defined } from '../../defined.js';

/** @internal The parts of a communicator that a window uses. */
export interface WindowParts {
  readonly bootstrap: Bootstrap;
  readonly team: Team;
  readonly libc: Libc | undefined;
  readonly pointToPoint: PointToPoint;
  readonly messenger: Messenger;
  /** Number of the window, the same on all ranks; from 1. */
  readonly number: number;
  /** Throws unless the communicator is usable. */
  readonly checkUsable: (call: string) => void;
  /** Observer of operations, if the communicator is observed. */
  readonly observe: Observe | undefined;
  /** Means to end calls with a limit. */
  readonly timed: TimedCallParts;
  /** The barrier of all ranks that close the window of a number, after its data are `flushed`. */
  readonly meet: (number: number, flushed: Promise<void>) => Promise<void>;
}

/** A rank's part of a window, as it is sent to the others. Addresses are in the segment of its host. */
export interface WindowPart {
  readonly type: DataType['name'];
  /** Elements. */
  readonly length: number;
  readonly address: number;
  /** Offset of its counters of signals, and of memory of its own behind them. */
  readonly signals: number;
  /** True if it has the memory that it needs for the window. */
  readonly isReady: boolean;
}

/** All ranks' parts of a window, and this rank's lanes to those with which it shares no memory. */
interface AgreedWindow {
  readonly ranks: readonly WindowPart[];
  readonly lanes: WindowLanes;
}

/**
 * Exchanges the ranks' parts of a window. Every rank calls it.
 *
 * @param length of this rank's array, in elements
 * @param address of the array, in the segment
 * @throws on all ranks: SystemError `OUT_OF_MEMORY` if one has no memory for it, InvalidUsageError `CALL_MISMATCH` if their
 *   types differ
 */
export async function agreeOnWindow(parts: WindowParts, length: number, address: number, type: DataType): Promise<AgreedWindow> {
  const {
    bootstrap,
    team: { segment },
  } = parts;
  const bytes = signalBytes(bootstrap.nRanks) + ROOM_BYTES;
  let failure: Error | undefined;
  let signals = -1;
  let lanes: WindowLanes | undefined;
  try {
    signals = segment.allocateBytes(bytes);
    new Uint8Array(segment.buffer, signals, bytes).fill(0);
    lanes = lanesFor(parts, address, length * type.bytes, type, signals);
  } catch (error) {
    failure = error as Error;
  }
  const mine: WindowPart = { type: type.name, length, address, signals, isReady: lanes !== undefined };
  try {
    const ranks = await gatherJson(bootstrap, 'window', mine);
    const without = ranks.findIndex((part) => !part.isReady);
    if (lanes === undefined || without >= 0)
      throw (
        failure ??
        new SystemError('OUT_OF_MEMORY', `rank ${without} has no memory for the signals or connections of the window`, {
          rank: without,
        })
      );
    checkTypes(ranks);
    return { ranks, lanes };
  } catch (error) {
    await lanes?.close();
    if (signals >= 0) segment.freeBytes(signals);
    throw error;
  }
}

function checkTypes(ranks: readonly WindowPart[]): void {
  const other = ranks.findIndex((part) => part.type !== ranks[0]?.type);
  if (other < 0) return;
  throw new InvalidUsageError(
    'CALL_MISMATCH',
    `a window has one type, but rank 0 made it of ${defined(ranks[0]).type} and rank ${other} of ${defined(ranks[other]).type}; pass arrays of one type`,
    { ranks: oddRanksOf(ranks.map(({ type }) => type)) },
  );
}

function lanesFor(
  { bootstrap: { rank, nRanks }, team: { segment }, libc, pointToPoint, number }: WindowParts,
  address: number,
  bytes: number,
  type: DataType,
  signals: number,
): WindowLanes {
  const peers = Array.from({ length: nRanks }, (_, peer) => peer).filter(
    (peer) => peer !== rank && pointToPoint.links.localOf(peer) < 0,
  );
  return new WindowLanes({ number, peers, address, bytes, type, signals, pointToPoint, segment, libc, progress: progressHere() });
}
