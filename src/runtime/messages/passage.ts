import type { Team } from '../device/team.js';
import type { DataType, NumericArray } from '../device/types.js';
import { SystemError } from '../../errors.js';

/**
 * Memory of the segment that short arrays from elsewhere are copied through. A view is made again only for an array of another
 * length or type: it costs more than the copy.
 */
export class Passage {
  readonly #team: Team;
  readonly #bytes: number;
  #view: NumericArray = new Uint8Array(0);
  #type: DataType | undefined;
  #address = 0;

  /** @param bytes longest array */
  constructor(team: Team, bytes: number) {
    this.#team = team;
    this.#bytes = bytes;
  }

  /** Address in the segment at which data for an array arrive: its own, or this memory's; 0 if there is none. */
  addressFor(array: NumericArray, type: DataType): number {
    const { segment } = this.#team;
    const offset = segment.offsetOf(array);
    if (offset >= 0) return offset;
    if (array.length === this.#view.length && type === this.#type) return this.#address;
    if (this.#address === 0) this.#address = this.#allocate();
    if (this.#address === 0) return 0;
    this.#view = new type.array(segment.buffer, this.#address, array.length);
    this.#type = type;
    return this.#address;
  }

  /** Address in the segment of an array's data: copied, if they are elsewhere; 0 if there is no memory. */
  enter(array: NumericArray, type: DataType): number {
    const address = this.addressFor(array, type);
    if (address === this.#address) this.#view.set(array as never);
    return address;
  }

  /** Copies what has arrived at {@link addressFor} to the array. */
  leave(address: number, array: NumericArray): void {
    if (address === this.#address) array.set(this.#view as never);
  }

  #allocate(): number {
    try {
      return this.#team.allocateBytes(this.#bytes);
    } catch (error) {
      if (error instanceof SystemError) return 0;
      throw error;
    }
  }
}
