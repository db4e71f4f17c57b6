import type { BlockingCallOptions, BlockingLimits, CallLimits, CallOptions, TimedCallOptions } from '../algorithms/arguments.js';
import { asElements, checkMoved, checkPeer, checkTag, checkTagged, type TagOption } from '../algorithms/arguments.js';
import { ANY_SOURCE } from '../algorithms/activity.js';
import { ANY_TAG, type ShownMessage, type TransferOwner } from '../messages/p2p-transfer.js';
import { errorOfCall, ofRank } from '../caller-stack.js';
import { objectBytes, type DataType, type DataTypeName, type MovableArray, type NumericArray } from '../device/types.js';
import type { Messenger } from '../messages/messenger.js';
import type { Found } from '../messages/p2p-matching.js';
import {
  isTimed,
  limitedInGroup,
  runWait,
  signalUnheard,
  startWait,
  waitForAny,
  waitForMessage,
  type TimedCallParts,
  type TimedWait,
} from '../messages/timed-call.js';
import { blockingLimit, currentGroup, type Group, type GroupMember } from './group.js';
import { alone, checkAlone, promised, refused } from '../messages/running-group.js';
import { overlappingBytes } from './messages-apart.js';

/** Options of a receive that blocks. */
export interface BlockingRecvOptions extends BlockingCallOptions, TagOption {
  /** True if the message may be shorter than the array; the call returns the number of received elements. Default false. */
  readonly atMost?: boolean | undefined;
}

/** Options of a receive. */
export interface RecvOptions extends BlockingRecvOptions, CallLimits {}

/** Options of a send. */
export interface SendOptions extends TimedCallOptions, TagOption {}

/** Options of a send that blocks. */
export interface BlockingSendOptions extends BlockingCallOptions, TagOption {}

/** Limits of a call that takes a message, and its tag. */
export interface TaggedLimits extends CallLimits, TagOption {}

/** The same of a call that blocks. */
export interface BlockingTaggedLimits extends BlockingLimits, TagOption {}

/** A message that {@link MessageCalls.recvAny} received. */
export interface ReceivedMessage {
  /** Rank that sent it. */
  readonly source: number;
  /** Tag that the sender gave it; 0 without one. */
  readonly tag: number;
  /** Number of received elements. */
  readonly count: number;
}

/** A message that has arrived and is not received yet. */
export interface ProbedMessage {
  /** Rank that sent it. */
  readonly source: number;
  /** Tag that the sender gave it; 0 without one. */
  readonly tag: number;
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

  start(call: 'send' | 'recv', given: MovableArray, peer: number, options: SendOptions | undefined): Promise<void> {
    try {
      const array = this.#elements(call, given);
      const type = this.#check(call, array, peer, options);
      const group = currentGroup();
      const tag = options?.tag;
      if (options !== undefined && isTimed(options)) {
        if (group !== undefined) throw limitedInGroup(call, this.#rank);
        return startWait(this.#parts.timed, this.#waitFor(call === 'send', call, array, peer, type, tag), options);
      }
      return group === undefined
        ? this.#messenger.start(call === 'send', peer, array, type, tag)
        : this.#addTo(group, call === 'send', peer, array, type, tag);
    } catch (error) {
      return refused(error);
    }
  }

  run(
    name: 'sendSync' | 'recvSync',
    sends: boolean,
    given: MovableArray,
    peer: number,
    options: BlockingSendOptions | undefined,
  ): void {
    const array = this.#elements(name, given);
    const type = this.#check(name, array, peer, options);
    const group = currentGroup();
    const tag = options?.tag;
    if (options !== undefined && isTimed(options)) {
      const timeoutMs = blockingLimit(name, options, this.#rank);
      this.#messenger.checkBlockingCall(name, sends, peer);
      runWait(this.#parts.timed, this.#waitFor(sends, name, array, peer, type, tag), { timeoutMs });
    } else if (group === undefined) this.#messenger.run(sends, peer, array, type, tag);
    else void this.#addTo(group, sends, peer, array, type, tag);
  }

  /** A sendRecv whose send need not wait, outside groups; undefined, without any effect, for another one. */
  startSendRecv(send: MovableArray, to: number, recv: MovableArray, from: number): Promise<void> | undefined {
    const type = this.#sendNow('sendRecv', send, to, recv, from);
    return type && this.#messenger.start(false, from, asElements('sendRecv', recv), type);
  }

  /** The blocking form of {@link startSendRecv}; false, without any effect, for another one. */
  runSendRecv(send: MovableArray, to: number, recv: MovableArray, from: number): boolean {
    if (!this.#messenger.pointToPoint.links.isBlocking(from)) return false;
    const type = this.#sendNow('sendRecvSync', send, to, recv, from);
    if (type !== undefined) this.#messenger.run(false, from, asElements('sendRecvSync', recv), type);
    return type !== undefined;
  }

  /** Sends the first message of a sendRecv. Returns the type of the other one, or undefined if the first has to wait. */
  #sendNow(call: string, givenSend: MovableArray, to: number, givenRecv: MovableArray, from: number): DataType | undefined {
    if (currentGroup() !== undefined || from === this.#rank) return undefined;
    const send = this.#elements(call, givenSend);
    const type = this.#check(call, send, to, undefined);
    const recv = this.#elements(call, givenRecv);
    const recvType = this.#check(call, recv, from, undefined);
    if (overlappingBytes(send, recv) > 0) return undefined;
    return this.#messenger.sendNow(to, send, type) ? recvType : undefined;
  }

  /**
   * Adds a message to the group whose body is running.
   * @param name of the call in errors of the message, unless it is send or recv
   */
  add(
    call: string,
    sends: boolean,
    given: MovableArray,
    peer: number,
    options: (CallOptions & TagOption) | undefined,
    name?: string,
  ): void {
    const array = this.#elements(call, given);
    const type = this.#check(call, array, peer, options);
    const { member } = this.#parts;
    void currentGroup()?.addMessage(member, member.prepareMessage(sends, peer, array, type, options?.tag), name);
  }

  #addTo(
    group: Group,
    sends: boolean,
    peer: number,
    array: NumericArray,
    type: DataType,
    tag: number | undefined,
  ): Promise<void> {
    const { member } = this.#parts;
    return group.addMessage(member, member.prepareMessage(sends, peer, array, type, tag));
  }

  /** Resolves to the number of received elements if the message may be shorter. */
  startRecv(array: MovableArray, peer: number, options: RecvOptions | undefined, shows?: ShownMessage): Promise<unknown> {
    if (!options?.atMost) return this.start('recv', array, peer, options);
    return promised(() => {
      const receive = this.#receiveUpTo('recv', array, peer, options, shows);
      return startWait(this.#parts.timed, receive.wait, options).then(receive.count);
    });
  }

  /** The blocking form of {@link startRecv}. */
  runRecv(array: MovableArray, peer: number, options: BlockingRecvOptions | undefined): number | undefined {
    if (!options?.atMost) {
      this.run('recvSync', false, array, peer, options);
      return undefined;
    }
    const receive = this.#receiveUpTo('recvSync', array, peer, options);
    const timeoutMs = isTimed(options) ? blockingLimit('recvSync', options, this.#rank) : undefined;
    this.#messenger.checkBlockingCall('recvSync', false, peer);
    runWait(this.#parts.timed, receive.wait, { timeoutMs });
    return receive.count();
  }

  /** @param peer rank, or ANY_SOURCE */
  probe(call: string, peer: number, options: TaggedLimits | undefined): Promise<ProbedMessage> {
    return alone(call, this.#rank, async () => {
      const probe = this.#probe(call, peer, this.#checkTagged(call, peer, options));
      await startWait(this.#parts.timed, probe.wait, options);
      return probe.result();
    });
  }

  probeSync(call: string, peer: number, options: BlockingTaggedLimits | undefined): ProbedMessage {
    checkAlone(call, this.#rank);
    const probe = this.#probe(call, peer, this.#checkTagged(call, peer, options));
    this.#checkUnsignalled(call, options);
    for (const rank of peer === ANY_SOURCE ? this.#messenger.pointToPoint.otherRanks : [peer])
      this.#messenger.checkBlocking(call, rank);
    runWait(this.#parts.timed, probe.wait, options);
    return probe.result();
  }

  recvAny(given: MovableArray, options: RecvOptions | undefined): Promise<ReceivedMessage> {
    return promised(() => {
      const receive = this.#receiveAny('recvAny', given, options);
      return startWait(this.#parts.timed, receive.wait, options).then(receive.result);
    });
  }

  recvAnySync(given: MovableArray, options: BlockingRecvOptions | undefined): ReceivedMessage {
    const receive = this.#receiveAny('recvAnySync', given, options);
    this.#checkUnsignalled('recvAnySync', options);
    this.#messenger.checkBlockingCall('recvAnySync', false, ANY_SOURCE);
    runWait(this.#parts.timed, receive.wait, options);
    return receive.result();
  }

  #receiveAny(
    call: string,
    given: MovableArray,
    options: RecvOptions | undefined,
  ): { readonly wait: TimedWait; readonly result: () => ReceivedMessage } {
    const array = this.#elements(call, given);
    const type = this.#check(call, array, 0, options);
    this.#checkAlone(call, 'a receive from any rank gives its source');
    let result: ReceivedMessage | undefined;
    const { tag = ANY_TAG, atMost = false } = options ?? {};
    const wait = waitForAny(this.#parts.timed, call, (settled) => {
      const owner = {
        settled: (error?: Error) => {
          const { claimed } = any;
          if (claimed !== undefined) result = { source: claimed.peer, tag: claimed.tag, count: claimed.count };
          settled(error);
        },
      };
      const any = this.#messenger.pointToPoint.addAny(array, type, owner, tag, atMost);
      return any;
    });
    return { wait, result: () => result as ReceivedMessage };
  }

  #check(call: string, array: NumericArray, peer: number, options: CallOptions | undefined): DataType {
    this.#parts.checkUsable(call);
    try {
      checkPeer(call, peer, this.#parts.nRanks);
      const type = checkMoved(call, array, options);
      checkTag(call, (options as TagOption | undefined)?.tag);
      return type;
    } catch (error) {
      throw errorOfCall(error, this.#rank);
    }
  }

  #checkTagged(call: string, peer: number, options: TaggedLimits | undefined): number | undefined {
    this.#parts.checkUsable(call);
    return ofRank(this.#rank, () => {
      // A caller of probe may have passed the number that stands for any.
      if (!/^probeAny/.test(call)) checkPeer(call, peer, this.#parts.nRanks);
      return checkTagged(call, options);
    });
  }

  #checkUnsignalled(call: string, options: BlockingLimits | undefined): void {
    if ((options as CallLimits | undefined)?.signal !== undefined) throw signalUnheard(call, this.#rank);
  }

  /** A group's promise cannot give a length. */
  #checkAlone(call: string, what = 'a receive with { atMost: true } gives a length'): void {
    checkAlone(call, this.#rank, `${what}, which a group cannot; call it outside`);
  }

  #elements(call: string, array: MovableArray): NumericArray {
    try {
      return asElements(call, array);
    } catch (error) {
      throw errorOfCall(error, this.#rank);
    }
  }

  #waitFor(sends: boolean, name: string, array: NumericArray, peer: number, type: DataType, tag: number | undefined): TimedWait {
    const add = (settled: (error?: Error) => void): TransferOwner => {
      const owner = { settled };
      this.#messenger.pointToPoint.add(sends, peer, array, type, owner, tag);
      return owner;
    };
    return waitForMessage(this.#parts.timed, { name, sends, peer, add });
  }

  /** A receive of a message of at most so many elements, which `count` gives at its end. */
  #receiveUpTo(
    name: string,
    given: MovableArray,
    peer: number,
    options: BlockingRecvOptions,
    shows?: ShownMessage,
  ): { readonly wait: TimedWait; readonly count: () => number } {
    const array = this.#elements(name, given);
    const type = this.#check(name, array, peer, options);
    this.#checkAlone(name);
    let count = 0;
    const add = (settled: (error?: Error) => void): TransferOwner => {
      const owner = {
        settled: (error?: Error) => {
          count = transfer.count;
          settled(error);
        },
        shows,
      };
      const transfer = this.#messenger.pointToPoint.add(false, peer, array, type, owner, options.tag);
      transfer.atMost = true;
      return owner;
    };
    return { wait: waitForMessage(this.#parts.timed, { name, sends: false, peer, add }), count: () => count };
  }

  #probe(
    name: string,
    peer: number,
    tag: number | undefined,
  ): { readonly wait: TimedWait; readonly result: () => ProbedMessage } {
    let result: Found | undefined;
    const begin: TimedWait['begin'] = (settled) => {
      const condition = this.#messenger.probe(peer, tag ?? ANY_TAG, (found) => {
        if (found instanceof Error) settled(found);
        else {
          result = found;
          settled();
        }
      });
      return () => this.#messenger.withdrawWait(condition);
    };
    const isAny = peer === ANY_SOURCE;
    const missing = `no message from ${isAny ? 'any rank' : `rank ${peer}`} came to rank ${this.#rank}`;
    const wait = { name, missing, ranks: () => (isAny ? this.#messenger.pointToPoint.otherRanks : [peer]), begin };
    return { wait, result: () => asProbed(result as Found) };
  }
}

function asProbed({ source, tag, count, type }: Found): ProbedMessage {
  return { source, tag, ...(type === objectBytes ? { count: 1, type: 'object' } : { count, type: type.name }) };
}
