import { SCALAR_BYTES, writeScalar } from '../device/scalar.js';
import type { Team } from '../device/team.js';
import { PREMUL_SUM, type DataType } from '../device/types.js';

/** Multiplies a rank's input of a premulSum with its scalar, before it is added to the others'. */
export class Scaler {
  /** True if the running call is a premulSum. */
  active = false;
  readonly #words: Uint32Array;
  /** Address of the scalar, followed by the addresses that kernels take: of a source and of a destination. */
  readonly #memory: number;
  #type = 0;

  constructor(readonly team: Team) {
    this.#words = new Uint32Array(team.segment.buffer);
    this.#memory = team.allocateBytes(SCALAR_BYTES + 8);
  }

  /**
   * @param operator its code
   * @param scalar of a premulSum
   */
  begin(type: DataType, operator: number, scalar: number | bigint | undefined): void {
    this.active = operator === PREMUL_SUM;
    if (!this.active) return;
    this.#type = type.code;
    writeScalar(type, scalar ?? 1, this.team.segment.buffer, this.#memory);
  }

  /** Multiplies the data at `source` into `destination`, which may be the same address. */
  scale(source: number, destination: number, bytes: number): void {
    const tables = this.#memory + SCALAR_BYTES;
    this.#words[tables / 4] = source;
    this.#words[tables / 4 + 1] = destination;
    this.team.segment.kernels.reduceScaled(this.#type, this.#memory, tables, 1, tables + 4, 1, 0, bytes);
  }
}
