import type { Team } from '../device/team.js';
import type { DataType, NumericArray } from '../device/types.js';
import type { CallQueue } from '../algorithms/call-queue.js';
import type { CompositeEngine } from '../algorithms/composite-engine.js';
import { FUSED_BYTES } from './fusion.js';
import type { GroupMember } from './group.js';
import type { Messenger } from '../messages/messenger.js';

/** Parts of a communicator that groups use. */
interface GroupMemberParts {
  readonly rank: number;
  readonly engine: CompositeEngine;
  readonly team: Team;
  readonly messenger: Messenger;
  readonly queue: CallQueue;
  /** Throws the error that ended the communicator. */
  readonly checkUsable: (call: string) => void;
  /** Throws if collectives cannot block. */
  readonly checkBlocking: (call: string) => void;
  /** Ends the communicator. */
  readonly fail: (error: unknown, call?: string) => unknown;
  readonly abort: (reason: string) => void;
}

/** Makes the view of a communicator that groups use: its messages, its queue of collectives, and memory for fused calls. */
export function makeGroupMember({
  rank,
  engine,
  team,
  messenger,
  queue,
  checkUsable,
  checkBlocking,
  fail,
  abort,
}: GroupMemberParts): GroupMember {
  const fusion = new FusionRoom(team);
  return {
    rank,
    observe: engine.observe,
    checkUsable,
    checkBlocking: (call, peer) => {
      if (peer === undefined) checkBlocking(call);
      else messenger.checkBlocking(call, peer);
    },
    prepareMessage: (sends, peer, array, type, tag) => messenger.pointToPoint.prepare(sends, peer, array, type, undefined, tag),
    startMessages: (messages) => {
      for (const message of messages) messenger.pointToPoint.addPrepared(message);
    },
    addCollective: (call, settled) => queue.add(call, settled),
    kick: (messages) => {
      messenger.kick(messages);
      queue.kick();
    },
    waitUntil: (isDone) => messenger.waitUntil(isDone),
    waitWithin: (isDone, timeoutMs) => messenger.waitWithin(isDone, timeoutMs),
    fail,
    abort,
    isFusable: (type, longestBytes, totalBytes) =>
      // With other algorithms, the position of an element in the array decides the order of its sums.
      !type.isFloat || [longestBytes, totalBytes].every((bytes) => engine.algorithmOf('allReduce', bytes) === 'direct'),
    fusionArray: (type, count) => fusion.array(type, count),
  };
}

/** Memory for the data of fused calls; allocated at first use. */
class FusionRoom {
  #room: NumericArray | undefined;

  constructor(readonly team: Team) {}

  array(type: DataType, count: number): NumericArray {
    const { buffer, byteOffset } = (this.#room ??= this.#allocate());
    return new type.array(buffer, byteOffset, count);
  }

  #allocate(): NumericArray {
    try {
      return new Int32Array(this.team.segment.buffer, this.team.allocateBytes(FUSED_BYTES), FUSED_BYTES / 4);
    } catch {
      // Slower, but all ranks must fuse the same calls.
      return new Int32Array(FUSED_BYTES / 4);
    }
  }
}
