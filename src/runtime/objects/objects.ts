import { checkLimits, type BlockingLimits, type CallLimits } from '../algorithms/arguments.js';
import { ofRank } from '../caller-stack.js';
import { isTimed, startTimedCollective, type TimedCallParts } from '../messages/timed-call.js';
import type { Exchange, Members } from './collective-objects.js';
import { ObjectChain } from './object-chain.js';
import { ObjectMessages } from './object-messages.js';

/** The parts of a communicator that objects use. */
interface ObjectsParts {
  readonly nRanks: number;
  readonly timed: TimedCallParts;
  /** Throws `UNSUPPORTED` if collectives cannot block. */
  readonly checkBlocking: (call: string) => void;
}

/** Begins an exchange. Throws, or its first step does, if an argument is wrong. */
export type Begin<T> = (members: Members) => Exchange<T>;

/**
 * Objects between the ranks of a communicator. V8's structured clone encodes a value as bytes (encode.ts), which are sent
 * in uninterrupted sequences of collectives (collective-objects.ts), or in messages (object-messages.ts).
 */
export class Objects {
  readonly messages: ObjectMessages;
  readonly #parts: ObjectsParts;

  constructor(parts: ObjectsParts) {
    this.#parts = parts;
    this.messages = new ObjectMessages(parts.timed);
  }

  /** Carries out collectives after the calls before them; resolves with the result of `begin`'s exchange. */
  start<T>(call: string, begin: Begin<T>, options: CallLimits | undefined): Promise<T> {
    const { timed } = this.#parts;
    const chain = this.#chain(call, begin, options);
    const ended = isTimed(options) ? startTimedCollective(timed, chain.first, options) : timed.queue.startChain(chain.first);
    return ended.then(() => ofRank(timed.rank, () => chain.result()));
  }

  /** The blocking form of {@link start}. */
  run<T>(call: string, begin: Begin<T>, options: BlockingLimits | undefined): T {
    const {
      timed: { queue, rank },
      checkBlocking,
    } = this.#parts;
    const chain = this.#chain(call, begin, options);
    checkBlocking(call);
    const { timeoutMs } = options ?? {};
    if (timeoutMs === undefined) queue.runChain(chain.first);
    else queue.within(timeoutMs, call, () => queue.runChain(chain.first));
    return ofRank(rank, () => chain.result());
  }

  #chain<T>(call: string, begin: Begin<T>, options: CallLimits | undefined): ObjectChain<T> {
    const { nRanks, timed } = this.#parts;
    return ofRank(timed.rank, () => {
      checkLimits(call, options);
      return new ObjectChain(call, timed.rank, nRanks, begin);
    });
  }
}
