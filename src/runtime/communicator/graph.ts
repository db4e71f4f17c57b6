import { counted } from '../../counted.js';
import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError } from '../../errors.js';
import { checkOptionNames } from '../../option-names.js';
import {
  checkPeer,
  isArray,
  type BlockingCallOptions,
  type CallOptions,
  type TimedCallOptions,
} from '../algorithms/arguments.js';
import type { MovableArray } from '../device/types.js';
import { asGroup, asGroupSync } from './group.js';
import { Neighbourhood, type NeighbourhoodMember } from './neighbourhood.js';

/** The neighbours of a rank in a graph. */
export interface GraphNeighbours {
  /** Ranks that it receives from. */
  readonly sources: readonly number[];
  /** Ranks that it sends to. */
  readonly destinations: readonly number[];
}

/** The ranks of a communicator as a graph, each with its neighbours. */
export class Graph extends Neighbourhood implements GraphNeighbours {
  /** Ranks that this rank receives from, in the order of the parts that it receives. */
  readonly sources: readonly number[];
  /** Ranks that it sends to. */
  readonly destinations: readonly number[];

  /** @internal Made by Communicator.graph(). */
  constructor(member: NeighbourhoodMember, { sources, destinations }: GraphNeighbours) {
    super(member);
    this.sources = Object.freeze(sources);
    this.destinations = Object.freeze(destinations);
  }

  /**
   * Sends `sends[i]` to destination i and receives from source i into `recvs[i]`, all at the same time; `undefined` stands for no
   * message, which both ranks must agree on. Arrays of different pairs may differ in type and length.
   *
   * @throws (rejects) as {@link neighborAllGather}, ARGUMENT_RANGE
   */
  exchange(
    sends: readonly (MovableArray | undefined)[],
    recvs: readonly (MovableArray | undefined)[],
    options?: TimedCallOptions,
  ): Promise<void> {
    return asGroup('exchange', options, (each) => this.#exchange('exchange', sends, recvs, each));
  }

  /** The blocking form of {@link exchange}. */
  exchangeSync(
    sends: readonly (MovableArray | undefined)[],
    recvs: readonly (MovableArray | undefined)[],
    options?: BlockingCallOptions,
  ): void {
    asGroupSync('exchangeSync', options, (each) => this.#exchange('exchangeSync', sends, recvs, each));
  }

  #exchange(
    call: string,
    sends: readonly (MovableArray | undefined)[],
    recvs: readonly (MovableArray | undefined)[],
    options: CallOptions | undefined,
  ): void {
    checkArrays(call, 'sends', sends, this.destinations.length, 'destination');
    checkArrays(call, 'recvs', recvs, this.sources.length, 'source');
    this.exchangeParts(call, sends, recvs, options);
  }

  /** @internal */
  protected override get from(): readonly number[] {
    return this.sources;
  }

  /** @internal */
  protected override get to(): readonly number[] {
    return this.destinations;
  }

  /** @internal */
  protected override receiveOrder(n: number): number {
    return n;
  }
}

/** A rank's neighbours, as they were passed to graph(). Throws ARGUMENT_TYPE, ARGUMENT_RANGE or UNKNOWN_NAME. */
export function checkNeighbours(given: readonly number[] | GraphNeighbours, nRanks: number): GraphNeighbours {
  if (isArray(given)) {
    const ranks = checkRanks('neighbours', given, nRanks);
    return { sources: ranks, destinations: ranks };
  }
  const example = '{ sources: [0], destinations: [1] }';
  // Typed arrays and sets have no names of options.
  if (typeof given !== 'object' || (given as unknown) === null || Symbol.iterator in given) {
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `graph: its neighbours are an array of ranks, as in graph([1, 3]), or ${example}, not ${describeValue(given)}`,
    );
  }
  checkOptionNames('graph', given, ['sources', 'destinations'], example);
  return {
    sources: checkRanks('sources', given.sources, nRanks),
    destinations: checkRanks('destinations', given.destinations, nRanks),
  };
}

function checkRanks(what: string, ranks: readonly number[], nRanks: number): readonly number[] {
  if (!isArray(ranks)) {
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `graph: its ${what} are an array of ranks, as in graph([1, 3]), not ${describeValue(ranks)}`,
    );
  }
  for (const rank of ranks) checkPeer('graph', rank, nRanks);
  return [...ranks];
}

/**
 * Throws unless each message of a graph has a rank that receives it.
 *
 * @param neighbours of all ranks
 * @throws InvalidArgumentError `ARGUMENT_RANGE`, the same on all ranks
 */
export function checkGraph(neighbours: readonly GraphNeighbours[]): void {
  const times = (list: readonly number[] | undefined, rank: number): number => list?.filter((one) => one === rank).length ?? 0;
  for (const [rank, { sources, destinations }] of neighbours.entries()) {
    for (const to of destinations) {
      const [sent, received] = [times(destinations, to), times(neighbours[to]?.sources, rank)];
      if (sent !== received) throw unequal(rank, to, sent, received, 'sends to', 'source');
    }
    for (const from of sources) {
      const [received, sent] = [times(sources, from), times(neighbours[from]?.destinations, rank)];
      if (sent !== received) throw unequal(rank, from, received, sent, 'receives from', 'destination');
    }
  }
}

function unequal(rank: number, other: number, listed: number, answered: number, does: string, as: string): InvalidArgumentError {
  const lists = answered === 0 ? `does not list rank ${rank} as a ${as}` : `lists rank ${rank} as a ${as} ${count(answered)}`;
  return new InvalidArgumentError(
    'ARGUMENT_RANGE',
    `graph: rank ${rank} ${does} rank ${other}${listed === 1 ? '' : ` ${count(listed)}`}, but rank ${other} ${lists}; both ranks list an edge`,
    { rank: other, ranks: [...new Set([rank, other])].sort((a, b) => a - b) },
  );
}

function count(n: number): string {
  return n === 1 ? 'once' : `${n} times`;
}

/** Throws unless an argument of exchange() has an entry for each of `wanted` neighbours. */
function checkArrays(call: string, argument: 'sends' | 'recvs', arrays: unknown, wanted: number, whom: string): void {
  if (isArray(arrays) && arrays.length === wanted) return;
  const entries = `an array to ${argument === 'sends' ? 'send' : 'receive into'}, or undefined, for each ${whom}`;
  if (!isArray(arrays)) {
    const text = `${call}: ${argument} is an array with ${entries}, as in exchange([a, b], [c, d]), not ${describeValue(arrays)}`;
    throw new InvalidArgumentError('ARGUMENT_TYPE', text);
  }
  throw new InvalidArgumentError(
    'ARGUMENT_RANGE',
    `${call}: ${argument} has ${counted(arrays.length, 'entry', 'entries')}, but this rank has ${counted(wanted, whom)}; pass ${entries}`,
  );
}
