import { callBits } from '../device/board-layout.js';
import { typeOfCode, type DataType } from '../device/types.js';
import { outOfBandCalls, type OutOfBandCall } from './activity.js';

/** Operations of windows. Codes contain the index in this list. */
const windowCalls = [
  'put',
  'put with signal',
  'get',
  'signal',
  'waitSignal',
  'flush',
  'accumulate',
  'fetchAndOp',
  'compareAndSwap',
] as const;
export type WindowCall = (typeof windowCalls)[number];

/** A call in the ring of calls that is neither a collective nor a message. */
type OtherCall =
  | { readonly of: 'window'; readonly name: WindowCall; readonly type: DataType }
  | { readonly of: 'bootstrap'; readonly name: OutOfBandCall };

const NAME_SHIFT = 8;
const OF_BOOTSTRAP = 1 << 7;

/** Code of an operation of a window in the ring of calls; of one without elements the type does not matter. */
export function windowCode(name: WindowCall, type: DataType): number {
  return callBits.other | (windowCalls.indexOf(name) << NAME_SHIFT) | type.code;
}

export function outOfBandCode(name: OutOfBandCall): number {
  return callBits.other | OF_BOOTSTRAP | (outOfBandCalls.indexOf(name) << NAME_SHIFT);
}

/** The call of a code, if it is one of these. */
export function readOther(code: number): OtherCall | undefined {
  if ((code & callBits.other) === 0) return undefined;
  const index = (code >> NAME_SHIFT) & 15;
  const call = outOfBandCalls[index];
  if ((code & OF_BOOTSTRAP) !== 0) return call && { of: 'bootstrap', name: call };
  const [name, type] = [windowCalls[index], typeOfCode(code & 15)];
  return name === undefined || type === undefined ? undefined : { of: 'window', name, type };
}
