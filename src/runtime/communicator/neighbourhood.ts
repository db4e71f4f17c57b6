import { counted } from '../../counted.js';
import { InvalidArgumentError } from '../../errors.js';
import {
  asElements,
  checkMoved,
  checkRoom,
  checkSameType,
  type BlockingCallOptions,
  type CallOptions,
  type TimedCallOptions,
} from '../algorithms/arguments.js';
import { movedTypeOf, type GivenArray, type MovableArray, type NumericArray } from '../device/types.js';
import { asGroup, asGroupSync } from './group.js';

/** The part of a communicator that exchanges with neighbours use. */
export interface NeighbourhoodMember {
  readonly rank: number;
  readonly nRanks: number;
  /** Adds a message to the group whose body is running; `call` is what the program called, also in errors of the message. */
  addMessage(call: string, sends: boolean, array: MovableArray, peer: number, options: CallOptions | undefined): void;
}

/** Ranks in the order of their parts; null where there is no neighbour, such as beyond the border of a grid. */
type Neighbours = readonly (number | null)[];

/**
 * Collectives of neighbours: made of sends and receives in a group, so a rank waits for its neighbours only. All ranks call the
 * same ones in the same order. A part without a neighbour is neither sent nor changed.
 */
export abstract class Neighbourhood {
  /** @internal */
  protected readonly member: NeighbourhoodMember;

  /** @internal */
  constructor(member: NeighbourhoodMember) {
    this.member = member;
  }

  /** @internal The ranks that this rank receives from. */
  protected abstract get from(): Neighbours;
  /** @internal The ranks that it sends to. */
  protected abstract get to(): Neighbours;
  /** @internal Place in `from` of the n-th receive. It matters where a rank is a neighbour more than once. */
  protected abstract receiveOrder(n: number): number;

  /**
   * Sends `send` to each neighbour, and receives those of the neighbours into `recv`, one part after the other, each as long as
   * `send`.
   *
   * @throws (rejects) ARGUMENT_TYPE, BUFFER_SIZE, BUFFER_OVERLAP, BUFFER_DETACHED, UNKNOWN_NAME
   */
  neighborAllGather<T extends MovableArray>(send: GivenArray<T>, recv: GivenArray<T>, options?: TimedCallOptions): Promise<void> {
    return asGroup('neighborAllGather', options, (each) => this.#allGather('neighborAllGather', send, recv, each));
  }

  /** The blocking form of {@link neighborAllGather}. */
  neighborAllGatherSync<T extends MovableArray>(send: GivenArray<T>, recv: GivenArray<T>, options?: BlockingCallOptions): void {
    asGroupSync('neighborAllGatherSync', options, (each) => this.#allGather('neighborAllGatherSync', send, recv, each));
  }

  /**
   * Sends part i of `send` to neighbour i, and receives that of neighbour i into part i of `recv`; all parts are equally long.
   *
   * @throws (rejects) as {@link neighborAllGather}
   */
  neighborAllToAll<T extends MovableArray>(send: GivenArray<T>, recv: GivenArray<T>, options?: TimedCallOptions): Promise<void> {
    return asGroup('neighborAllToAll', options, (each) => this.#allToAll('neighborAllToAll', send, recv, each));
  }

  /** The blocking form of {@link neighborAllToAll}. */
  neighborAllToAllSync<T extends MovableArray>(send: GivenArray<T>, recv: GivenArray<T>, options?: BlockingCallOptions): void {
    asGroupSync('neighborAllToAllSync', options, (each) => this.#allToAll('neighborAllToAllSync', send, recv, each));
  }

  #allGather(call: string, send: MovableArray, recv: MovableArray, options: CallOptions | undefined): void {
    const [input, output] = checkedPair(call, send, recv, options);
    const count = input.length;
    checkRoom(call, output, this.from.length * count, whatComes(this.from));
    this.exchangeParts(
      call,
      this.to.map(() => input),
      partsOf(output, this.from.length, count),
      options,
    );
  }

  #allToAll(call: string, send: MovableArray, recv: MovableArray, options: CallOptions | undefined): void {
    const [input, output] = checkedPair(call, send, recv, options);
    const [nFrom, nTo] = [this.from.length, this.to.length];
    const count = nTo > 0 ? input.length / nTo : Math.floor(output.length / Math.max(1, nFrom));
    if (!Number.isInteger(count)) {
      throw new InvalidArgumentError(
        'BUFFER_SIZE',
        `${call}: the input has ${counted(input.length, 'element')}, which are no equal parts for ${nTo} neighbours; pass a multiple of ${nTo}`,
      );
    }
    checkRoom(call, output, nFrom * count, whatComes(this.from));
    this.exchangeParts(call, partsOf(input, nTo, count), partsOf(output, nFrom, count), options);
  }

  /** @internal Adds the messages with all neighbours to the group whose body is running; undefined stands for none. */
  protected exchangeParts(
    call: string,
    sends: readonly (MovableArray | undefined)[],
    recvs: readonly (MovableArray | undefined)[],
    options: CallOptions | undefined,
  ): void {
    const move = (isSent: boolean, array: MovableArray | undefined, peer: number | null | undefined): void => {
      if (array !== undefined && typeof peer === 'number') this.member.addMessage(call, isSent, array, peer, options);
    };
    const { from, to } = this;
    to.forEach((peer, i) => {
      move(true, sends[i], peer);
    });
    from.forEach((_, n) => {
      const i = this.receiveOrder(n);
      move(false, recvs[i], from[i]);
    });
  }
}

function whatComes({ length }: Neighbours): string {
  return `what ${counted(length, 'neighbour')} ${length === 1 ? 'sends' : 'send'}`;
}

function partsOf(array: NumericArray, nParts: number, count: number): NumericArray[] {
  return Array.from({ length: nParts }, (_, i) => array.subarray(i * count, (i + 1) * count));
}

function checkedPair(
  call: string,
  send: MovableArray,
  recv: MovableArray,
  options: CallOptions | undefined,
): readonly [NumericArray, NumericArray] {
  const input = asElements(call, send);
  const type = checkMoved(call, input, options);
  const output = asElements(call, recv);
  checkSameType(call, type, output, options, movedTypeOf);
  return [input, output];
}
