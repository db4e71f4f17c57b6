/** A value in the form in which it is sent. */
export interface EncodedValue {
  readonly body: Uint8Array;
  /** Memory of its long typed arrays, in the order in which they come. */
  readonly pieces: readonly Uint8Array[];
}

/** A received value whose pieces are still missing. */
export interface DecodedValue {
  readonly value: unknown;
  /** Memory to fill, in the order of the sender's pieces. */
  readonly pieces: readonly Uint8Array[];
}

/** Values as bytes. All ranks use the same. */
export interface ObjectFormat {
  /** Throws for a value that structured clone does not take. */
  write(value: unknown): EncodedValue;
  /** Throws for bytes that {@link write} of this runtime did not write. */
  read(body: Uint8Array): DecodedValue;
}
