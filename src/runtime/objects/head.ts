import { InternalError, InvalidUsageError } from '../../errors.js';
import { oddRanksOf } from '../bootstrap/rank-list.js';
import type { EncodedValue } from './format.js';

/*
 * Block of fixed length in front of a value, with all of a short one:
 *
 *     0   bytes of the body f64    8   pieces u32    12  call u32    16  root u32
 *     20  first piece u32, 24  pieces of all ranks u32, 28  whether any body follows u32       of scatterObjects
 *     32  the body, where it is short
 */
export const HEAD_BYTES = 256;
const FIXED_BYTES = 32;
/** Bodies up to this length are in the head. */
const INLINE_BYTES = HEAD_BYTES - FIXED_BYTES;

/** Calls by their code in the head. */
const objectCalls = [
  'broadcastObject',
  'allGatherObject',
  'gatherObject',
  'scatterObjects',
  'sendObject',
  'reduceObject',
  'allReduceObject',
] as const;
type ObjectCall = (typeof objectCalls)[number];

/** The parts of a call of scatterObjects that concern all ranks. */
interface Scattering {
  /** Place of a rank's first piece among those of all ranks. */
  readonly firstPiece: number;
  readonly allPieces: number;
  readonly anyBody: boolean;
}

export interface Head extends Scattering {
  readonly bodyBytes: number;
  readonly nPieces: number;
  readonly call: ObjectCall;
  readonly root: number;
  /** The body, if it is short. */
  readonly inline: Uint8Array | undefined;
}

/** Writes the head of an encoded value. */
export function writeHead(
  to: Uint8Array,
  call: ObjectCall,
  root: number,
  { body, pieces }: EncodedValue,
  scattering?: Scattering,
): void {
  const view = new DataView(to.buffer, to.byteOffset, HEAD_BYTES);
  view.setFloat64(0, body.length, true);
  view.setUint32(8, pieces.length, true);
  view.setUint32(12, 1 + objectCalls.indexOf(call), true);
  view.setUint32(16, root, true);
  view.setUint32(20, scattering?.firstPiece ?? 0, true);
  view.setUint32(24, scattering?.allPieces ?? 0, true);
  view.setUint32(28, scattering?.anyBody === true ? 1 : 0, true);
  if (body.length <= INLINE_BYTES) to.set(body, FIXED_BYTES);
}

/** True if the body does not fit into the head. */
export function isLong({ body }: EncodedValue): boolean {
  return body.length > INLINE_BYTES;
}

export function readHead(from: Uint8Array): Head {
  const view = new DataView(from.buffer, from.byteOffset, HEAD_BYTES);
  const bodyBytes = view.getFloat64(0, true);
  const call = objectCalls[view.getUint32(12, true) - 1];
  if (call === undefined) throw new InternalError('INTERNAL', 'the data in front of an object are not the head of an object');
  return {
    bodyBytes,
    nPieces: view.getUint32(8, true),
    call,
    root: view.getUint32(16, true),
    firstPiece: view.getUint32(20, true),
    allPieces: view.getUint32(24, true),
    anyBody: view.getUint32(28, true) === 1,
    inline: bodyBytes <= INLINE_BYTES ? from.subarray(FIXED_BYTES, FIXED_BYTES + bodyBytes) : undefined,
  };
}

/** Bytes of the body outside the head. */
export function bodyAfterHead({ bodyBytes, inline }: Head): number {
  return inline === undefined ? bodyBytes : 0;
}

/** Refuses heads for another root than rank 0's: the same error on every rank. */
export function checkRoots(heads: readonly Head[]): void {
  const [{ call, root } = { call: 'gatherObject', root: 0 }] = heads;
  const rank = heads.findIndex((head) => head.root !== root);
  if (rank < 0) return;
  throw new InvalidUsageError(
    'CALL_MISMATCH',
    `rank 0 called ${call} to rank ${root} where rank ${rank} called ${call} to rank ${String(heads[rank]?.root)}; all ranks of a communicator must make the same calls in the same order`,
    { ranks: oddRanksOf(heads.map((head) => head.root)) },
  );
}
