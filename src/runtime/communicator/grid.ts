import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError } from '../../errors.js';
import { checkOptionNames } from '../../option-names.js';
import {
  checkCallOptions,
  checkPeer,
  type BlockingCallOptions,
  type CallOptions,
  type TimedCallOptions,
} from '../algorithms/arguments.js';
import type { MovableArray } from '../device/types.js';
import { asGroup, asGroupSync } from './group.js';
import { Neighbourhood, type NeighbourhoodMember } from './neighbourhood.js';
import { defined } from '../../defined.js';

/** Options of a grid. */
export interface GridOptions {
  /** True if the grid is closed in all dimensions, or for each: the last rank's upper neighbour is the first. Default false. */
  readonly periodic?: boolean | readonly boolean[] | undefined;
}

/** Borders that a rank exchanges with its two neighbours in one dimension. An array without a neighbour stays as it was. */
export interface Halo {
  /** Border for the lower neighbour, which receives it in `recvHigh`. */
  readonly sendLow?: MovableArray | undefined;
  /** Border for the upper neighbour, which receives it in `recvLow`. */
  readonly sendHigh?: MovableArray | undefined;
  /** Receives the border of the lower neighbour. */
  readonly recvLow?: MovableArray | undefined;
  /** Receives the border of the upper neighbour. */
  readonly recvHigh?: MovableArray | undefined;
}

/**
 * The ranks of a communicator as a Cartesian grid, the last dimension the fastest: in a grid of 2 by 3, rank 4 is at [1,
 * 1]. Making one exchanges no data. For {@link neighborAllGather} and {@link neighborAllToAll}, each dimension has two
 * neighbours, the lower one first.
 */
export class Grid extends Neighbourhood {
  /** Number of ranks in each dimension. */
  readonly dimensions: readonly number[];
  /** True for each closed dimension. */
  readonly periodic: readonly boolean[];
  /** Place of this rank. */
  readonly coordinates: readonly number[];
  readonly #neighbours: readonly (number | null)[];

  /** @internal Made by Communicator.grid(). Throws ARGUMENT_TYPE, ARGUMENT_RANGE or UNKNOWN_NAME. */
  constructor(member: NeighbourhoodMember, dimensions: readonly number[], options: GridOptions) {
    super(member);
    checkDimensions(dimensions, member.nRanks);
    checkCallOptions('grid', options, ['periodic']);
    const { periodic = false } = options;
    if (typeof periodic !== 'boolean' && periodic.length !== dimensions.length) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `grid: periodic has ${String(periodic.length)} entries for ${String(dimensions.length)} dimensions; pass one a dimension, or true`,
      );
    }
    const wrong: unknown = [periodic].flat().find((closed: unknown) => typeof closed !== 'boolean');
    if (wrong !== undefined) {
      throw new InvalidArgumentError(
        'ARGUMENT_TYPE',
        `grid: periodic is true or false, or an array of these, not ${describeValue(wrong)}`,
      );
    }
    this.dimensions = [...dimensions];
    this.periodic = typeof periodic === 'boolean' ? dimensions.map(() => periodic) : [...periodic];
    this.coordinates = this.coordinatesOf(member.rank);
    this.#neighbours = dimensions.flatMap((_, d) => {
      const { low, high } = this.neighbours(d);
      return [low, high];
    });
  }

  /** Place of a rank. Throws ARGUMENT_RANGE. */
  coordinatesOf(rank: number): number[] {
    checkPeer('coordinatesOf', rank, this.member.nRanks);
    let rest = rank;
    const reversed = [...this.dimensions].reverse().map((size) => {
      const at = rest % size;
      rest = (rest - at) / size;
      return at;
    });
    return reversed.reverse();
  }

  /** The rank at a place; null outside of the grid. Closed dimensions continue at the other end. Throws ARGUMENT_RANGE. */
  rankAt(coordinates: readonly number[]): number | null {
    const { length } = this.dimensions;
    const given: unknown = coordinates;
    if (!Array.isArray(given) || given.length !== length || !given.every(Number.isInteger)) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `rankAt: pass an array with a whole number for each of ${String(length)} dimensions, not ${Array.isArray(given) ? `[${given.join(', ')}]` : describeValue(given)}`,
      );
    }
    let rank = 0;
    for (const [dimension, size] of this.dimensions.entries()) {
      const at = defined(coordinates[dimension]);
      const inside = this.periodic[dimension] === true ? ((at % size) + size) % size : at;
      if (inside < 0 || inside >= size) return null;
      rank = rank * size + inside;
    }
    return rank;
  }

  /** The ranks at a distance below and above in a dimension; null outside of the grid. Throws ARGUMENT_RANGE. */
  neighbours(dimension: number, distance = 1): { readonly low: number | null; readonly high: number | null } {
    if (!Number.isInteger(dimension) || dimension < 0 || dimension >= this.dimensions.length) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `neighbours: there is no dimension ${describeValue(dimension)}; dimensions go from 0 to ${String(this.dimensions.length - 1)}`,
      );
    }
    const at = (by: number): number | null =>
      this.rankAt(this.coordinates.map((coordinate, d) => (d === dimension ? coordinate + by : coordinate)));
    return { low: at(-distance), high: at(distance) };
  }

  /**
   * Exchanges borders with the neighbours, all at the same time: `halos[d]` in dimension d, `undefined` for none. All ranks
   * call it; borders of two neighbours must agree in type and length.
   */
  exchange(halos: readonly (Halo | undefined)[], options?: TimedCallOptions): Promise<void> {
    return asGroup('exchange', options, (type) => {
      this.#start('exchange', halos, type);
    });
  }

  /** The blocking form of {@link exchange}. */
  exchangeSync(halos: readonly (Halo | undefined)[], options?: BlockingCallOptions): void {
    asGroupSync('exchangeSync', options, (type) => {
      this.#start('exchangeSync', halos, type);
    });
  }

  #start(name: string, halos: readonly (Halo | undefined)[], options: CallOptions | undefined): void {
    const given: unknown = halos;
    if (!Array.isArray(given)) throw noHalos(name, given);
    if (halos.length > this.dimensions.length) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `${name}: there are borders for ${String(halos.length)} dimensions, but the grid has ${String(this.dimensions.length)}; pass one entry a dimension`,
      );
    }
    for (const halo of halos) if (halo !== undefined) checkOptionNames(name, halo, borderNames, '[{ sendLow, recvHigh }]');
    this.exchangeParts(
      name,
      halos.flatMap((halo) => [halo?.sendLow, halo?.sendHigh]),
      halos.flatMap((halo) => [halo?.recvLow, halo?.recvHigh]),
      options,
    );
  }

  /** @internal */
  protected override get from(): readonly (number | null)[] {
    return this.#neighbours;
  }

  /** @internal */
  protected override get to(): readonly (number | null)[] {
    return this.#neighbours;
  }

  /**
   * @internal In a closed dimension of one or two ranks both neighbours are the same rank: its message to the lower neighbour
   * arrives first, from above.
   */
  protected override receiveOrder(n: number): number {
    return n ^ 1;
  }
}

const borderNames = ['sendLow', 'sendHigh', 'recvLow', 'recvHigh'];

function noHalos(call: string, value: unknown): InvalidArgumentError {
  return new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `${call}: pass an array with the borders of each dimension, as in [{ sendLow, recvHigh }], not ${describeValue(value)}`,
  );
}

function checkDimensions(dimensions: unknown, nRanks: number): void {
  if (!Array.isArray(dimensions) || dimensions.length === 0) {
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `grid: pass the number of ranks in each dimension, as in grid([4, 2]), not ${describeValue(dimensions)}`,
    );
  }
  const wrong = (dimensions as unknown[]).find((size) => !Number.isInteger(size) || (size as number) < 1);
  if (wrong !== undefined) {
    throw new InvalidArgumentError('ARGUMENT_RANGE', `grid: ${describeValue(wrong)} is no number of ranks from 1`);
  }
  const places = (dimensions as number[]).reduce((product, size) => product * size, 1);
  if (places === nRanks) return;
  throw new InvalidArgumentError(
    'ARGUMENT_RANGE',
    `grid: ${dimensions.join(' × ')} are ${String(places)} places, but there are ${String(nRanks)} ranks; pass sizes whose product that is, or split the communicator first`,
  );
}
