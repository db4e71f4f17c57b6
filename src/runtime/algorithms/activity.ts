import { nameRanks } from '../bootstrap/rank-list.js';
import { describeElements, typeOfCode, type DataType } from '../device/types.js';
import { describeCall, encodeCall, readCall, type Call } from './call.js';

/** Calls over the bootstrap network. Reports contain the index in this list. */
export const outOfBandCalls = ['init', 'split', 'stream', 'shrink', 'grow', 'window', 'program', 'agree', 'graph'] as const;
export type OutOfBandCall = (typeof outOfBandCalls)[number];
/** Calls of the remaining ranks, which no barrier precedes. */
export type CallOfRest = 'shrink' | 'agree';

export function isOfRest(call: OutOfBandCall): call is CallOfRest {
  return call === 'shrink' || call === 'agree';
}

/** A waiting rank's operation, or its last call. The first words of its report carry it to other ranks (wait-chains.ts). */
export type Activity =
  /**
   * `number` counts the communicator's collectives from 0, as its log and trace do; for the last call before a goodbye, those on
   * the connection.
   */
  | { readonly kind: 'collective' | 'last' | 'left'; readonly number: number; readonly call: Call }
  /** `peer` is ANY_SOURCE in a receive from any rank; `tag` is left out where it is 0 or any. */
  | {
      readonly kind: 'send' | 'recv';
      readonly peer: number;
      readonly count: number;
      readonly type: DataType;
      readonly tag?: number;
    }
  /** A wait for a signal of a window, or for an operation that another host carries out. */
  | { readonly kind: 'window'; readonly peer: number; readonly isSignal?: boolean }
  /** `peer` may be ANY_SOURCE. */
  | { readonly kind: 'probe'; readonly peer: number }
  | { readonly kind: 'outOfBand'; readonly call: OutOfBandCall };

/** Peer of a receive that takes a message of any rank. */
export const ANY_SOURCE = -1;

const kinds: readonly Activity['kind'][] = ['collective', 'send', 'recv', 'window', 'outOfBand', 'last', 'probe', 'left'];

/** Words of an activity: 1 + kind | number, peer or name | code of the call or type | root or tag | count, low and high. */
export const ACTIVITY_WORDS = 6;

export function encodeActivity(activity: Activity): number[] {
  const kind = 1 + kinds.indexOf(activity.kind);
  switch (activity.kind) {
    case 'collective':
    case 'last':
    case 'left': {
      const { root, count } = activity.call;
      return [kind, activity.number, encodeCall(activity.call), root, ...halves(count)];
    }
    case 'send':
    case 'recv':
      return [kind, activity.peer, activity.type.code, activity.tag ?? 0, ...halves(activity.count)];
    case 'window':
      return [kind, activity.peer, Number(activity.isSignal === true), 0, 0, 0];
    case 'probe':
      return [kind, activity.peer, 0, 0, 0, 0];
    case 'outOfBand':
      return [kind, outOfBandCalls.indexOf(activity.call), 0, 0, 0, 0];
  }
}

/** Decodes the activity at the beginning of a report, if it has one. */
export function decodeActivity(words: readonly number[]): Activity | undefined {
  const [kindWord = 0, first = 0, code = 0, root = 0, low = 0, high = 0] = words;
  const kind = kinds[kindWord - 1];
  const count = (low >>> 0) + (high >>> 0) * 2 ** 32;
  if (kind === 'collective' || kind === 'last' || kind === 'left') {
    const call = readCall(code, root >>> 0, count);
    return call && { kind, number: first, call };
  }
  if (kind === 'window') return { kind, peer: first, ...(code === 1 ? { isSignal: true } : {}) };
  if (kind === 'probe') return { kind, peer: first };
  if (kind === undefined) return undefined;
  if (kind === 'outOfBand') {
    const name = outOfBandCalls[first];
    return name && { kind, call: name };
  }
  const type = typeOfCode(code);
  return type && { kind, peer: first, count, type, ...(root > 0 ? { tag: root } : {}) };
}

/** Text of an activity, such as `allReduce of 1024 float32 (sum, direct), call 17` or `recv of 4 int32 from rank 1`. */
export function describeActivity(activity: Activity): string {
  switch (activity.kind) {
    case 'collective':
    case 'last':
    case 'left':
      return `${describeCall(activity.call)}, call ${activity.number}`;
    case 'send':
      return `send of ${describeMessage(activity)} to rank ${activity.peer}`;
    case 'recv':
      return `recv of ${describeMessage(activity)} from ${nameSource(activity.peer)}`;
    case 'window':
      return activity.isSignal === true
        ? `waitSignal from rank ${activity.peer}`
        : `a window's operation with rank ${activity.peer}`;
    case 'probe':
      return `probe of a message from ${nameSource(activity.peer)}`;
    case 'outOfBand':
      return activity.call;
  }
}

function nameSource(peer: number): string {
  return peer === ANY_SOURCE ? 'any rank' : `rank ${peer}`;
}

function describeMessage({ count, type, tag }: Extract<Activity, { readonly kind: 'send' | 'recv' }>): string {
  return describeElements(count, type) + (tag === undefined ? '' : ` with tag ${tag}`);
}

/** True if the report is of a waiting rank. */
export function isWaitReport(words: readonly number[]): boolean {
  const kind = decodeActivity(words)?.kind;
  return kind !== 'last' && kind !== 'left';
}

/** Text of a reporting rank's activity: `waiting in recv of 4 int32 from rank 0`, `last call barrier (direct), call 3`. */
export function describeReport(words: readonly number[]): string | undefined {
  const activity = decodeActivity(words);
  return activity && `${isWaitReport(words) ? 'waiting in' : 'last call'} ${describeActivity(activity)}`;
}

/**
 * Text of the ranks that hold up another one, with the activity of each: `rank 1, waiting in recv of 4 int32 from rank 0; ranks
 * 2,3, last call barrier (direct)`.
 */
export function describeLate(late: readonly number[], doing: (rank: number) => string | undefined): string {
  if (late.length === 0) return 'other ranks';
  const byDoing = new Map<string, number[]>();
  for (const rank of late) {
    const text = doing(rank) ?? '';
    const same = byDoing.get(text);
    if (same === undefined) byDoing.set(text, [rank]);
    else same.push(rank);
  }
  return [...byDoing].map(([text, ranks]) => (text === '' ? nameRanks(ranks) : `${nameRanks(ranks)}, ${text}`)).join('; ');
}

function halves(count: number): [number, number] {
  return [count | 0, Math.floor(count / 2 ** 32) | 0];
}
