import type { DataTypeName, NumericArray } from '../runtime/device/types.js';

/** Properties of a parameter that are equal on all ranks. */
export interface ParameterForm {
  readonly name: string;
  readonly length: number;
  /** Class of its array. */
  readonly array: string;
  readonly type: DataTypeName | undefined;
  readonly bytesPerElement: number;
}

/** Parameters whose gradients one all-reduce averages. */
export interface BucketForm {
  readonly parameters: readonly ParameterForm[];
  readonly length: number;
}

export function formOf(name: string, array: NumericArray, type: DataTypeName | undefined): ParameterForm {
  return { name, length: array.length, array: array.constructor.name, type, bytesPerElement: array.BYTES_PER_ELEMENT };
}

/**
 * Sorts parameters into buckets of at most `bucketBytes`, or one larger parameter, the same on all ranks. The last parameter
 * comes first, because the backward pass computes its gradient first.
 */
export function bucketsOf(parameters: readonly ParameterForm[], bucketBytes: number): BucketForm[] {
  const buckets: { parameters: ParameterForm[]; length: number; bytes: number }[] = [];
  for (const parameter of [...parameters].reverse()) {
    const last = buckets.at(-1);
    const bytes = parameter.length * parameter.bytesPerElement;
    const [neighbour] = last?.parameters ?? [];
    const isOfOneType = neighbour?.array === parameter.array && neighbour.type === parameter.type;
    if (last !== undefined && isOfOneType && last.bytes + bytes <= bucketBytes) {
      last.parameters.push(parameter);
      last.length += parameter.length;
      last.bytes += bytes;
    } else buckets.push({ parameters: [parameter], length: parameter.length, bytes });
  }
  return buckets;
}
