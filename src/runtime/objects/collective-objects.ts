import { Buffer } from '#platform/bytes';
import { checkRoot } from '../algorithms/arguments.js';
import { derivedBits, partsHash, type CallKind, type DerivedCall } from '../algorithms/call.js';
import type { QueuedCall } from '../algorithms/queued-call.js';
import { callKinds } from '../device/kernels/call-kinds.js';
import { uint8 } from '../device/types.js';
import { describeError, InvalidArgumentError, InvalidUsageError } from '../../errors.js';
import { describeValue } from '../../describe-value.js';
import { encodeValue } from './encode.js';
import type { EncodedValue } from './format.js';
import { bodyAfterHead, checkRoots, HEAD_BYTES, isLong, readHead, writeHead, type Head } from './head.js';
import { bytesFor, Incoming } from './incoming.js';
import type { CombineValues } from './object-exchange.js';
import { defined } from '../../defined.js';

/*
 * Objects through collectives of bytes, in sequence, without another call between them:
 *
 *     heads      each has the length of the value, and all of a short one
 *     bodies     of values that are longer, if there is one
 *     pieces     each long typed array, from the array and into the new one
 */

/**
 * The collectives of one call. Its result is made by a function, called when all have ended: a value that cannot be read then
 * concerns this rank alone.
 */
export type Exchange<T> = Generator<QueuedCall, () => T, undefined>;

const nothing = new Uint8Array(0);

/** The ranks of a communicator, with the collectives that an exchange needs. */
export interface Members {
  /** The public method, for errors. */
  readonly call: string;
  readonly rank: number;
  readonly nRanks: number;
  /** Keeps the sent arrays from being freed, and detects detached ones. */
  readonly hold: (pieces: readonly Uint8Array[]) => void;
}

export function* broadcastValue({ call, rank, nRanks, hold }: Members, value: unknown, root: number): Exchange<unknown> {
  checkRoot(call, root, nRanks);
  const name = 'broadcastObject';
  const head = new Uint8Array(HEAD_BYTES);
  if (rank === root) {
    const encoded = encodeValue(call, value);
    hold(encoded.pieces);
    writeHead(head, name, root, encoded);
    yield broadcastOf(name, head, root);
    if (bodyAfterHead(readHead(head)) > 0) yield broadcastOf(name, encoded.body, root);
    for (const piece of encoded.pieces) yield broadcastOf(name, piece, root);
    return () => value;
  }
  yield broadcastOf(name, head, root);
  const incoming = new Incoming(call, readHead(head));
  if (incoming.rest.length > 0) yield broadcastOf(name, incoming.rest, root);
  for (const piece of incoming.pieces()) yield broadcastOf(name, piece, root);
  return () => incoming.value();
}

export function* allGatherValues(
  { call, rank, nRanks, hold }: Members,
  value: unknown,
  name: 'allGatherObject' | 'allReduceObject' = 'allGatherObject',
): Exchange<unknown[]> {
  const encoded = encodeValue(call, value);
  hold(encoded.pieces);
  const heads = yield* exchangeHeads(name, 0, encoded, rank, nRanks);
  const bodies = heads.map(bodyAfterHead);
  const bytes = bytesFor(call, sum(bodies));
  const places = startsOf(bodies);
  if (bytes.length > 0) {
    const own = bodies[rank] === 0 ? nothing : encoded.body;
    const details = { counts: bodies, displacements: places };
    yield callOf(name, 'allGatherV', { root: partsHash(bodies), send: own, recv: bytes, count: bytes.length, details });
  }
  const values = heads.map((head, from) => new Incoming(call, head, partOf(bytes, places, bodies, from)));
  for (const [from, incoming] of values.entries())
    for (const piece of from === rank ? encoded.pieces : incoming.pieces()) yield broadcastOf(name, piece, from);
  return () => values.map((incoming, from) => (from === rank ? value : incoming.value()));
}

export function* gatherValues(
  { call, rank, nRanks, hold }: Members,
  value: unknown,
  root: number,
  name: 'gatherObject' | 'reduceObject' = 'gatherObject',
): Exchange<unknown[] | null> {
  checkRoot(call, root, nRanks);
  const isRoot = rank === root;
  const encoded = isRoot ? { body: nothing, pieces: [] } : encodeValue(call, value);
  hold(encoded.pieces);
  const heads = yield* exchangeHeads(name, root, encoded, rank, nRanks);
  const bodies = heads.map(bodyAfterHead);
  const bytes = bytesFor(call, isRoot ? sum(bodies) : 0);
  if (sum(bodies) > 0) {
    const own = bodies[rank] === 0 ? nothing : encoded.body;
    yield partsOf(name, own, onlyFor(nRanks, root, own.length), bytes, isRoot ? bodies : bodies.map(() => 0));
  }
  const values = isRoot ? heads.map((head, from) => new Incoming(call, head, partOf(bytes, startsOf(bodies), bodies, from))) : [];
  for (const [from, { nPieces }] of heads.entries()) {
    const incoming = from === root ? [] : (values[from]?.pieces() ?? []);
    for (let i = 0; i < nPieces; i++) {
      const sent = from === rank ? (encoded.pieces[i] ?? nothing) : nothing;
      const received = incoming[i] ?? nothing;
      yield partsOf(name, sent, onlyFor(nRanks, root, sent.length), received, onlyFor(nRanks, from, received.length));
    }
  }
  return () => (isRoot ? values.map((incoming, from) => (from === rank ? value : incoming.value())) : null);
}

/** {@link allGatherValues}; then each rank combines the values for itself, in the order of ranks. */
export function* allReduceValues(members: Members, value: unknown, combine: CombineValues): Exchange<unknown> {
  const values = yield* allGatherValues(members, value, 'allReduceObject');
  return () => combined(members, values(), combine);
}

/** {@link gatherValues}; then the root combines the values. */
export function* reduceValues(members: Members, value: unknown, combine: CombineValues, root: number): Exchange<unknown> {
  const values = yield* gatherValues(members, value, root, 'reduceObject');
  return () => {
    const all = values();
    return all === null ? null : combined(members, all, combine);
  };
}

function combined({ call, rank }: Members, values: readonly unknown[], combine: CombineValues): unknown {
  try {
    return values.reduce((lower, higher) => combine(lower, higher));
  } catch (cause) {
    throw new InvalidUsageError('OPERATOR_FAILED', `${call}: the function threw on rank ${rank}: ${describeError(cause)}`, {
      rank,
      cause,
    });
  }
}

export function* scatterValues({ call, rank, nRanks, hold }: Members, values: unknown, root: number): Exchange<unknown> {
  checkRoot(call, root, nRanks);
  const name = 'scatterObjects';
  const isRoot = rank === root;
  const encoded = isRoot
    ? checkList(call, values, nRanks).map((value, to) => (to === root ? none : encodeValue(call, value)))
    : [];
  for (const { pieces } of encoded) hold(pieces);
  const heads = new Uint8Array(isRoot ? nRanks * HEAD_BYTES : 0);
  const counts = encoded.map(({ pieces }) => pieces.length);
  const starts = startsOf(counts);
  const anyBody = encoded.some((one) => isLong(one));
  for (const [to, one] of encoded.entries()) {
    const scattering = { firstPiece: defined(starts[to]), allPieces: sum(counts), anyBody };
    writeHead(heads.subarray(to * HEAD_BYTES, (to + 1) * HEAD_BYTES), name, root, one, scattering);
  }
  const ownHead = new Uint8Array(HEAD_BYTES);
  yield callOf(name, 'scatter', { root, send: heads, recv: ownHead, count: HEAD_BYTES });
  const head = readHead(ownHead);
  const incoming = new Incoming(call, head);
  if (head.anyBody) {
    const bodies = encoded.map((one) => (isLong(one) ? one.body : nothing));
    const bytes = Buffer.concat(bodies);
    const lengths = isRoot ? bodies.map(({ length }) => length) : onlyFor(nRanks, root, 0);
    yield partsOf(name, bytes, lengths, incoming.rest, onlyFor(nRanks, root, incoming.rest.length));
  }
  const own = incoming.pieces();
  const all = encoded.flatMap(({ pieces }, to) => pieces.map((piece) => ({ piece, to })));
  for (let i = 0; i < head.allPieces; i++) {
    const { piece = nothing, to = 0 } = all[i] ?? {};
    const received = isRoot ? nothing : (own[i - head.firstPiece] ?? nothing);
    yield partsOf(name, piece, onlyFor(nRanks, to, piece.length), received, onlyFor(nRanks, root, received.length));
  }
  return () => (isRoot ? (values as readonly unknown[])[root] : incoming.value());
}

/** Part of a rank that receives nothing. */
const none: EncodedValue = { body: nothing, pieces: [] };

function checkList(call: string, values: unknown, nRanks: number): readonly unknown[] {
  if (Array.isArray(values) && values.length === nRanks) return values;
  throw new InvalidArgumentError(
    Array.isArray(values) ? 'BUFFER_SIZE' : 'ARGUMENT_TYPE',
    `${call}: the root passes an array with a value for each of ${nRanks} ranks, not ${Array.isArray(values) ? `an array of ${values.length}` : describeValue(values)}`,
  );
}

/** Sends this rank's head to all ranks, and receives theirs. */
function* exchangeHeads(
  name: 'allGatherObject' | 'gatherObject' | 'allReduceObject' | 'reduceObject',
  root: number,
  encoded: EncodedValue,
  rank: number,
  nRanks: number,
): Generator<QueuedCall, Head[], undefined> {
  const all = new Uint8Array(nRanks * HEAD_BYTES);
  const own = all.subarray(rank * HEAD_BYTES, (rank + 1) * HEAD_BYTES);
  writeHead(own, name, root, encoded);
  yield callOf(name, 'allGather', { root: 0, send: own, recv: all, count: HEAD_BYTES });
  const heads = Array.from({ length: nRanks }, (_, from) => readHead(all.subarray(from * HEAD_BYTES, (from + 1) * HEAD_BYTES)));
  checkRoots(heads);
  return heads;
}

// ── calls ───────────────────────────────────────────────────────────────────────────────────────────────────────────

function callOf(name: DerivedCall, kind: CallKind, rest: Omit<QueuedCall, 'code' | 'type'>): QueuedCall {
  return { code: callKinds[kind] | (uint8.code << 4) | derivedBits(name), type: uint8, ...rest };
}

function broadcastOf(name: DerivedCall, bytes: Uint8Array, root: number): QueuedCall {
  return callOf(name, 'broadcast', { root, send: bytes, recv: bytes, count: bytes.length });
}

/** An all-to-all in which a rank sends and receives parts that follow each other. */
function partsOf(
  name: DerivedCall,
  send: Uint8Array,
  counts: readonly number[],
  recv: Uint8Array,
  recvCounts: readonly number[],
): QueuedCall {
  const details = { counts, displacements: startsOf(counts), recvCounts, recvDisplacements: startsOf(recvCounts) };
  return callOf(name, 'allToAllV', { root: 0, send, recv, count: 0, details });
}

function onlyFor(nRanks: number, rank: number, count: number): number[] {
  return Array.from({ length: nRanks }, (_, one) => (one === rank ? count : 0));
}

function startsOf(counts: readonly number[]): number[] {
  let start = 0;
  return counts.map((count) => (start += count) - count);
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

function partOf(bytes: Uint8Array, starts: readonly number[], counts: readonly number[], rank: number): Uint8Array {
  const start = defined(starts[rank]);
  return bytes.subarray(start, start + defined(counts[rank]));
}
