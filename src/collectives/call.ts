import { callKinds } from '../device/kernels/kernels.js';
import { dataTypes, operatorCode, reductionOperators, type DataType, type ReductionOperator } from '../device/types.js';
import { InternalError, InvalidUsageError } from '../errors.js';

export type CallKind = keyof typeof callKinds;

/** How a collective moves its data. A call's code holds the place in this list: append only. */
export const algorithms = ['direct', 'ring'] as const;
export type Algorithm = (typeof algorithms)[number];

/** What a rank asked for. Ranks of a communicator must ask for the same, in the same order. */
export interface Call {
  readonly kind: CallKind;
  /** Of no meaning for a barrier. */
  readonly type: DataType;
  /** Of no meaning except for a reduction. */
  readonly operator: ReductionOperator;
  /** Of no meaning except for a broadcast. */
  readonly root: number;
  /** Elements. */
  readonly count: number;
  readonly algorithm: Algorithm;
}

const kinds = Object.keys(callKinds) as CallKind[];

/** All of a call except its root and count, as a number: kind | type << 4 | operator << 8 | algorithm << 12. */
export function encodeCall(call: Call): number {
  const algorithm = algorithms.indexOf(call.algorithm) << 12;
  switch (call.kind) {
    case 'allReduce':
      return callKinds.allReduce | (call.type.code << 4) | (operatorCode(call.operator) << 8) | algorithm;
    case 'broadcast':
      return callKinds.broadcast | (call.type.code << 4) | algorithm;
    case 'barrier':
      return callKinds.barrier | algorithm;
  }
}

/** The call that `encodeCall` made the code of. */
export function decodeCall(code: number, root: number, count: number): Call {
  const kind = kinds.find((name) => callKinds[name] === (code & 15));
  const type = dataTypes.find((candidate) => candidate.code === ((code >> 4) & 15));
  const operator = reductionOperators.find((name) => operatorCode(name) === ((code >> 8) & 15));
  const algorithm = algorithms[(code >> 12) & 15];
  if (kind === undefined || type === undefined || operator === undefined || algorithm === undefined) {
    throw new InternalError('INTERNAL', `0x${code.toString(16)} is not the code of a call`);
  }
  return { kind, type, operator, root, count, algorithm };
}

/** A call as a person reads it: `allReduce of 1024 float32 (sum, ring)`. */
export function describeCall(call: Call): string {
  switch (call.kind) {
    case 'allReduce':
      return `allReduce of ${call.count} ${call.type.name} (${call.operator}, ${call.algorithm})`;
    case 'broadcast':
      return `broadcast of ${call.count} ${call.type.name} from rank ${call.root} (${call.algorithm})`;
    case 'barrier':
      return `barrier (${call.algorithm})`;
  }
}

/** The error for two ranks that met in one operation but called different things; `rank` of it is the other rank. */
export function callMismatch(rank: number, call: Call, otherRank: number, otherCall: Call): InvalidUsageError {
  return new InvalidUsageError(
    'CALL_MISMATCH',
    `rank ${rank} called ${describeCall(call)} where rank ${otherRank} called ${describeCall(otherCall)}; ` +
      'all ranks of a communicator must make the same calls in the same order',
    { rank: otherRank, ranks: [rank, otherRank] },
  );
}
