import type { BlockingCallOptions, BlockingLimits, CallLimits, CallOptions, TimedCallOptions } from '../algorithms/arguments.js';
import { asElements, checkLimits, checkMoved, checkPeer } from '../algorithms/arguments.js';
import { addCallerFrames, errorOfCall } from '../caller-stack.js';
import { objectBytes, type DataType, type DataTypeName, type MovableArray, type NumericArray } from '../device/types.js';
import { InvalidUsageError } from '../../errors.js';
import type { Messenger } from '../messages/messenger.js';
import type { Found } from '../messages/p2p.js';
import {
  checkBlockingMessage,
  isTimed,
  limitedInGroup,
  runTimedMessage,
  runTimedWait,
  signalUnheard,
  startTimedMessage,
  startTimedWait,
  type TimedCallParts,
  type TimedMessage,
  type TimedWait,
} from '../messages/timed-call.js';
import { blockingLimit, currentGroup, refused, type GroupMember } from './group.js';

/** Options of a receive that blocks. */
export interface BlockingRecvOptions extends BlockingCallOptions {
  /** True if the message may be shorter than the array; the call returns the number of received elements. Default false. */
  readonly atMost?: boolean | undefined;
}

/** Options of a receive. */
export interface RecvOptions extends BlockingRecvOptions, CallLimits {}

/** A message that has arrived and is not received yet. */
export interface ProbedMessage {
  /** Number of elements; 1 for an object. */
  readonly count: number;
  /** Type of the elements, as the sender gave it; `object` for a value that {@link ObjectCalls.recvObject} takes. */
  readonly type: DataTypeName | 'object';
}

/** @internal Parts of a communicator that messages use. */
interface MessageExchangeParts {
  readonly nRanks: number;
  readonly timed: TimedCallParts;
  /** The communicator's part in groups. */
  readonly member: GroupMember;
  /** Throws the error that ended the communicator. */
  readonly checkUsable: (call: string) => void;
}

/**
 * @internal Messages between two ranks: checks their arguments, and hands them to a group, a call with limits, or the messenger.
 */
export class MessageExchange {
  readonly #parts: MessageExchangeParts;
  readonly #rank: number;
  readonly #messenger: Messenger;

  constructor(parts: MessageExchangeParts) {
    this.#parts = parts;
    this.#rank = parts.timed.rank;
    this.#messenger = parts.timed.messenger;
  }

  start(call: 'send' | 'recv', given: MovableArray, peer: number, options: TimedCallOptions | undefined): Promise<void> {
    try {
      const array = this.#elements(call, given);
      const type = this.#check(call, array, peer, options);
      const group = currentGroup();
      if (options !== undefined && isTimed(options)) {
        if (group !== undefined) throw limitedInGroup(call, this.#rank);
        return startTimedMessage(this.#parts.timed, this.#timedMessage(call === 'send', call, array, peer, type), options);
      }
      return group === undefined
        ? this.#messenger.start(call === 'send', peer, array, type)
        : group.addMessage(this.#parts.member, call === 'send', peer, array, type);
    } catch (error) {
      return refused(error);
    }
  }

  run(
    name: 'sendSync' | 'recvSync',
    sends: boolean,
    given: MovableArray,
    peer: number,
    options: BlockingCallOptions | undefined,
  ): void {
    const array = this.#elements(name, given);
    const type = this.#check(name, array, peer, options);
    const group = currentGroup();
    if (options !== undefined && isTimed(options)) {
      const timeoutMs = blockingLimit(name, options, this.#rank);
      const message = this.#timedMessage(sends, name, array, peer, type);
      checkBlockingMessage(this.#parts.timed, message);
      runTimedMessage(this.#parts.timed, message, timeoutMs);
    } else if (group === undefined) this.#messenger.run(sends, peer, array, type);
    else void group.addMessage(this.#parts.member, sends, peer, array, type);
  }

  /** Adds a message to the group whose body is running. */
  add(call: string, sends: boolean, given: MovableArray, peer: number, options: CallOptions | undefined): void {
    const array = this.#elements(call, given);
    const type = this.#check(call, array, peer, options);
    void currentGroup()?.addMessage(this.#parts.member, sends, peer, array, type);
  }

  /** Resolves to the number of received elements if the message may be shorter. */
  startRecv(array: MovableArray, peer: number, options: RecvOptions | undefined): Promise<unknown> {
    // Without another object of options: messages pass here each time.
    if (options?.atMost === undefined) return this.start('recv', array, peer, options);
    const { atMost, ...others } = options;
    if (!atMost) return this.start('recv', array, peer, others);
    try {
      const elements = this.#elements('recv', array);
      const type = this.#check('recv', elements, peer, others);
      this.#checkAlone('recv');
      if (!isTimed(others)) return this.#messenger.startAtMost(peer, elements, type);
      const receive = this.#receiveUpTo('recv', elements, peer, type);
      return startTimedMessage(this.#parts.timed, receive.message, others).then(receive.count);
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link startRecv}. */
  runRecv(array: MovableArray, peer: number, options: BlockingRecvOptions | undefined): number | undefined {
    if (options?.atMost === undefined) {
      this.run('recvSync', false, array, peer, options);
      return undefined;
    }
    const { atMost, ...others } = options;
    if (!atMost) {
      this.run('recvSync', false, array, peer, others);
      return undefined;
    }
    const elements = this.#elements('recvSync', array);
    const type = this.#check('recvSync', elements, peer, others);
    this.#checkAlone('recvSync');
    if (!isTimed(others)) return this.#messenger.runAtMost(peer, elements, type);
    const receive = this.#receiveUpTo('recvSync', elements, peer, type);
    checkBlockingMessage(this.#parts.timed, receive.message);
    runTimedMessage(this.#parts.timed, receive.message, blockingLimit('recvSync', others, this.#rank));
    return receive.count();
  }

  async probe(peer: number, options: CallLimits | undefined): Promise<ProbedMessage> {
    this.#checkProbe('probe', peer, options);
    if (isTimed(options)) {
      const probe = this.#timedProbe('probe', peer);
      await startTimedWait(this.#parts.timed, probe.wait, options);
      return probe.result();
    }
    return asProbed(
      await new Promise<Found>((resolve, reject) => {
        this.#messenger.probe(peer, (found) => (found instanceof Error ? reject(addCallerFrames(found)) : resolve(found)));
      }),
    );
  }

  probeSync(peer: number, options: BlockingLimits | undefined): ProbedMessage {
    this.#checkProbe('probeSync', peer, options);
    if ((options as CallLimits | undefined)?.signal !== undefined) throw signalUnheard('probeSync', this.#rank);
    this.#messenger.checkBlocking('probeSync', peer);
    if (options?.timeoutMs !== undefined) {
      const probe = this.#timedProbe('probeSync', peer);
      runTimedWait(this.#parts.timed, probe.wait, options.timeoutMs);
      return probe.result();
    }
    let result: Found | Error | undefined;
    this.#messenger.probe(peer, (found) => (result = found));
    this.#messenger.waitUntil(() => result !== undefined);
    return asProbed(result as unknown as Found);
  }

  #check(call: string, array: NumericArray, peer: number, options: CallOptions | undefined): DataType {
    this.#parts.checkUsable(call);
    try {
      checkPeer(call, peer, this.#parts.nRanks);
      return checkMoved(call, array, options);
    } catch (error) {
      throw errorOfCall(error, this.#rank);
    }
  }

  #checkProbe(call: string, peer: number, options: CallLimits | undefined): void {
    this.#parts.checkUsable(call);
    try {
      checkPeer(call, peer, this.#parts.nRanks);
      checkLimits(call, options);
    } catch (error) {
      throw errorOfCall(error, this.#rank);
    }
  }

  /** A group's promise cannot give a length. */
  #checkAlone(call: string): void {
    if (currentGroup() === undefined) return;
    throw errorOfCall(
      new InvalidUsageError(
        'UNSUPPORTED',
        `${call}: a receive with { atMost: true } gives a length, which a group cannot; call it outside`,
      ),
      this.#rank,
    );
  }

  #elements(call: string, array: MovableArray): NumericArray {
    try {
      return asElements(call, array);
    } catch (error) {
      throw errorOfCall(error, this.#rank);
    }
  }

  #timedMessage(sends: boolean, name: string, array: NumericArray, peer: number, type: DataType): TimedMessage {
    const add: TimedMessage['add'] = (settled) => {
      const owner = { settled };
      this.#messenger.add(sends, peer, array, type, owner);
      return owner;
    };
    return sends ? { name, peer, sends, add } : { name, peer, sends, add, mayWithdraw: () => true };
  }

  /** A receive of a message of at most so many elements, which `count` gives at its end. */
  #receiveUpTo(
    name: string,
    array: NumericArray,
    peer: number,
    type: DataType,
  ): { readonly message: TimedMessage; readonly count: () => number } {
    let count = 0;
    const add: TimedMessage['add'] = (settled) => {
      const owner = {
        settled: (error?: Error) => {
          count = transfer.count;
          settled(error);
        },
      };
      const transfer = this.#messenger.addAtMost(peer, array, type, owner);
      return owner;
    };
    return { message: { name, peer, sends: false, add, mayWithdraw: () => true }, count: () => count };
  }

  #timedProbe(name: string, peer: number): { readonly wait: TimedWait; readonly result: () => ProbedMessage } {
    let result: Found | undefined;
    const begin: TimedWait['begin'] = (settled) => {
      const condition = this.#messenger.probe(peer, (found) => {
        if (found instanceof Error) settled(found);
        else {
          result = found;
          settled();
        }
      });
      return () => this.#messenger.withdrawWait(condition);
    };
    const wait = { name, missing: `no message from rank ${peer} came`, ranks: () => [peer], begin };
    return { wait, result: () => asProbed(result as Found) };
  }
}

function asProbed({ count, type }: Found): ProbedMessage {
  return type === objectBytes ? { count: 1, type: 'object' } : { count, type: type.name };
}
