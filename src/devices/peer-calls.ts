import type { CallLimits } from '../runtime/algorithms/arguments.js';
import type { Communicator } from '../runtime/communicator/communicator.js';
import { writeScalar } from '../runtime/device/scalar.js';
import { operatorNames, type TypedArray } from '../runtime/device/types.js';
import { TcclError } from '../errors.js';
import { collectiveNames, type Collective } from './collectives.js';
import type { DeviceArray } from './device-array.js';
import type { Combining, DeviceMemory, DevicePeers, Part, PeerPoint, SwitchedCall } from './memory.js';
import { peerSteps, sharedArrays, type PeerView, type Piece } from './peer-steps.js';

/** Bytes of a piece of a call with memory that other ranks cannot open: it is copied to and from memory that they can. */
const SCRATCH_BYTES = 1 << 24;
/** Pieces are multiples of so many elements, which are multiples of 16 bytes. */
const PIECE_UNIT = 16;

/** Most buffers that a rank retires in a call. */
const MOST_RETIRED = 16;

/** Numbers of a record, of 8 bytes each; handles of the input and of the output follow. */
const fields = {
  /** 1 if the rank can make the call between peers. */
  isAble: 0,
  name: 1,
  count: 2,
  type: 3,
  operator: 4,
  root: 5,
  isQueued: 6,
  /** 1 for an array that is in scratch memory. */
  inputScratch: 7,
  outputScratch: 8,
  inputOffset: 9,
  outputOffset: 10,
  scalar: 11,
  nRetired: 12,
  retired: 13,
  end: 13 + MOST_RETIRED,
} as const;

/** Fields that all ranks must have alike: the host's call says which differ. */
const alike = [fields.name, fields.count, fields.type, fields.operator, fields.root];

type Which = 'input' | 'output';

/** An array of this rank's in a call. */
interface Own<Buffer> {
  readonly array: DeviceArray<TypedArray, Buffer>;
  readonly parts: number;
  readonly isShared: boolean;
  /** Memory that other ranks use in place of the array. */
  readonly scratch: Buffer | undefined;
}

/** A rank's record. */
interface PeerRecord {
  readonly numbers: Float64Array;
  readonly handles: Readonly<Record<Which, Uint8Array>>;
}

/** Makes collectives between devices that reach each other's memory. */
export class PeerCalls<Buffer> {
  readonly #comm: Communicator;
  readonly #memory: DeviceMemory<Buffer>;
  readonly #peers: DevicePeers<Buffer>;
  readonly #recordBytes: number;
  /** Memory of this rank's for pieces. */
  readonly #scratch: Partial<Record<Which, { readonly buffer: Buffer; readonly bytes: number }>> = {};
  #failure: TcclError | undefined;

  constructor(comm: Communicator, memory: DeviceMemory<Buffer>, peers: DevicePeers<Buffer>) {
    this.#comm = comm;
    this.#memory = memory;
    this.#peers = peers;
    this.#recordBytes = 8 * fields.end + 2 * peers.handleBytes;
    void comm.failed.then((failure) => {
      this.#failure ??= failure;
      peers.abandon(failure);
    });
  }

  /**
   * Makes a call, if every rank can and all make the same one.
   *
   * @param limits of an exchange that begins now
   * @returns false if nothing was done
   */
  async run(collective: Collective<Buffer>, limits: () => CallLimits): Promise<boolean> {
    const peers = this.#peers;
    const { isQueued } = collective;
    const { piece: pieceLength } = sizesOf(collective);
    const switched = switchedOf(collective);
    const isOnSwitch = !collective.hasOwnOperator && peers.switch?.takes(switched) === true;
    const own = isOnSwitch ? {} : await this.#ownArrays(collective);
    // Other ranks close what this one names: its last use must be over. What is released meanwhile is named in the next call.
    const { hasRetired } = peers;
    const retired = peers.retired(MOST_RETIRED);
    if (hasRetired) await this.#reached();
    const [first] = piecesOf(collective, own === undefined || usesScratch(own) ? pieceLength : collective.count);
    peers.afterProgram();
    if (own !== undefined) this.#copy('in', own, first, collective);
    const records = await this.#exchangeRecords(collective, own, retired, limits);
    if (own === undefined || !agree(records)) return false;
    if (isOnSwitch) {
      await peers.switch.queue(switched);
      return this.#end(isQueued);
    }
    const isOrdered = records.some(({ numbers }) => numbers[fields.isQueued] === 1);
    const hasScratch = records.some(({ numbers }) => numbers[fields.inputScratch] === 1 || numbers[fields.outputScratch] === 1);
    const pieces = piecesOf(collective, hasScratch ? pieceLength : collective.count);
    for (const piece of pieces) {
      if (piece.from > 0) {
        this.#copy('in', own, piece, collective);
        await this.#pass(collective, 'ready', limits);
      }
      if (isOrdered) this.#waitForAll('ready');
      for (const step of peerSteps(collective.name, this.#view(collective, own, records, piece))) peers.queue(step);
      await this.#pass(collective, 'done', limits);
      if (isOrdered) this.#waitForAll('done');
      this.#copy('out', own, piece, collective);
    }
    return this.#end(isQueued);
  }

  /** Ends a call that is queued. */
  async #end(isQueued: boolean): Promise<true> {
    if (isQueued) this.#peers.beforeProgram();
    else await this.#reached();
    return true;
  }

  /** Closes what this rank has opened, and frees what all have closed. Every rank calls it. */
  async close(): Promise<void> {
    for (const { buffer } of Object.values(this.#scratch)) this.#memory.release(buffer);
    try {
      await this.#peers.reached(() => false);
      this.#peers.closeOpened();
      await this.#comm.deviceCall('close', undefined, {});
      this.#peers.freeRetired();
    } catch {
      // After a fault nothing is open any more. After another failure, ranks that are left may have this rank's memory open: it
      // stays until the process ends.
    }
  }

  /** This rank's arrays, in memory that others can open; undefined where the host has to make the call. */
  async #ownArrays(collective: Collective<Buffer>): Promise<Partial<Record<Which, Own<Buffer>>> | undefined> {
    const combining = combiningOf(collective, []);
    if (collective.hasOwnOperator || (combining !== undefined && !this.#peers.canCombine(combining))) return undefined;
    const { input, output, name, root } = collective;
    const rules = sharedArrays(name);
    const isSwap = name === 'allToAll' && input?.array.buffer === output?.array.buffer;
    const owns: Partial<Record<Which, Own<Buffer>>> = {};
    for (const [which, given, rule] of [
      ['input', input, rules.send],
      ['output', output, rules.recv],
    ] as const) {
      if (given === undefined) continue;
      const isShared = rule === 'each' || (rule === 'root' && this.#comm.rank === root);
      const needsScratch = isShared && (!this.#peers.canShare(given.array.buffer) || (which === 'input' && isSwap));
      const scratch = needsScratch ? await this.#scratchOf(which, sizesOf(collective).bytes * given.parts) : undefined;
      if (needsScratch && scratch === undefined) return undefined;
      owns[which] = { ...given, isShared, scratch };
    }
    return owns;
  }

  /** Scratch memory; undefined if the device has none left. */
  async #scratchOf(which: Which, bytes: number): Promise<Buffer | undefined> {
    const given = this.#scratch[which];
    if (given !== undefined && given.bytes >= bytes) return given.buffer;
    if (given !== undefined) this.#memory.release(given.buffer);
    // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- one of two
    delete this.#scratch[which];
    try {
      const buffer = await this.#memory.allocate(bytes);
      this.#scratch[which] = { buffer, bytes };
      return buffer;
    } catch (error) {
      if (error instanceof TcclError && error.code === 'OUT_OF_MEMORY') return undefined;
      throw error;
    }
  }

  async #exchangeRecords(
    collective: Collective<Buffer>,
    own: Partial<Record<Which, Own<Buffer>>> | undefined,
    retired: readonly number[],
    limits: () => CallLimits,
  ): Promise<readonly PeerRecord[]> {
    const peers = this.#peers;
    const mine = new ArrayBuffer(this.#recordBytes);
    const record = recordAt(mine, 0, peers.handleBytes);
    this.#write(record, collective, own, retired);
    const all = new ArrayBuffer(this.#recordBytes * this.#comm.nRanks);
    await this.#pass(collective, 'ready', limits, new Uint8Array(mine), new Uint8Array(all));
    // What the exchange before has named, all ranks have closed before they came to this one.
    peers.freeRetired();
    const records = Array.from({ length: this.#comm.nRanks }, (_, rank) =>
      recordAt(all, rank * this.#recordBytes, peers.handleBytes),
    );
    for (const [rank, { numbers }] of records.entries()) {
      const named = numbers.subarray(fields.retired, fields.retired + (numbers[fields.nRetired] ?? 0));
      if (rank !== this.#comm.rank) peers.closeRetired(rank, [...named]);
    }
    return records;
  }

  #write(
    { numbers, handles }: PeerRecord,
    collective: Collective<Buffer>,
    own: Partial<Record<Which, Own<Buffer>>> | undefined,
    retired: readonly number[],
  ): void {
    const { name, count, type, operator, scalar, root, isQueued } = collective;
    numbers[fields.isAble] = Number(own !== undefined);
    numbers[fields.name] = collectiveNames.indexOf(name);
    numbers[fields.count] = count;
    numbers[fields.type] = type.code;
    numbers[fields.operator] = operator === undefined ? -1 : operatorNames.indexOf(operator);
    numbers[fields.root] = root;
    numbers[fields.isQueued] = Number(isQueued);
    if (operator === 'premulSum') writeScalar(type, scalar, numbers.buffer, numbers.byteOffset + 8 * fields.scalar);
    numbers[fields.nRetired] = retired.length;
    numbers.set(retired, fields.retired);
    for (const which of ['input', 'output'] as const) {
      const given = own?.[which];
      if (given?.isShared !== true) continue;
      numbers[fields[`${which}Scratch`]] = Number(given.scratch !== undefined);
      numbers[fields[`${which}Offset`]] = given.scratch === undefined ? given.array.byteOffset : 0;
      this.#peers.share(given.scratch ?? given.array.buffer, handles[which]);
    }
  }

  /** Arrays of all ranks in a piece of a call. */
  #view(
    collective: Collective<Buffer>,
    own: Partial<Record<Which, Own<Buffer>>>,
    records: readonly PeerRecord[],
    piece: Piece,
  ): PeerView<Buffer> {
    const { type, count } = collective;
    const { rank: self } = this.#comm;
    const { piece: pieceLength } = sizesOf(collective);
    const partOf =
      (which: Which) =>
      (rank: number, part: number, from: number, length: number): Part<Buffer> => {
        const record = records[rank];
        const given = own[which];
        if (record === undefined || (rank === self && given === undefined)) throw new RangeError(`no ${which} of rank ${rank}`);
        const isScratch = record.numbers[fields[`${which}Scratch`]] === 1;
        const element = isScratch ? part * pieceLength + from : part * count + piece.from + from;
        const bytes = length * type.bytes;
        if (rank === self && given !== undefined) {
          const offset = isScratch ? 0 : given.array.byteOffset;
          return { buffer: given.scratch ?? given.array.buffer, offset: offset + element * type.bytes, bytes };
        }
        const offset = (record.numbers[fields[`${which}Offset`]] ?? 0) + element * type.bytes;
        return { buffer: this.#peers.open(rank, record.handles[which]), offset, bytes };
      };
    const scalars = records.map(({ numbers }) => scalarIn(numbers));
    return {
      rank: self,
      nRanks: this.#comm.nRanks,
      root: collective.root,
      elementBytes: type.bytes,
      piece,
      combining: combiningOf(collective, scalars),
      input: partOf('input'),
      output: partOf('output'),
    };
  }

  /** Copies a piece of this rank's arrays to or from scratch memory. */
  #copy(
    direction: 'in' | 'out',
    own: Partial<Record<Which, Own<Buffer>>>,
    piece: Piece | undefined,
    collective: Collective<Buffer>,
  ): void {
    const given = own[direction === 'in' ? 'input' : 'output'];
    if (given?.scratch === undefined || piece === undefined || piece.length === 0) return;
    const { array, parts, scratch } = given;
    const { count, type } = collective;
    const { bytes } = sizesOf(collective);
    for (let part = 0; part < parts; part++) {
      const inArray = array.part(part * count + piece.from, piece.length);
      const inScratch = { buffer: scratch, offset: part * bytes, bytes: piece.length * type.bytes };
      const [from, to] = direction === 'in' ? [inArray, inScratch] : [inScratch, inArray];
      this.#peers.queue({ sources: [from], destinations: [to] });
    }
  }

  #waitForAll(point: PeerPoint): void {
    for (let rank = 0; rank < this.#comm.nRanks; rank++) if (rank !== this.#comm.rank) this.#peers.waitFor(point, rank);
  }

  /** Marks a point, and meets the ranks, with records or without: without order on the device when this rank's work is done. */
  async #pass(
    { name, type, isQueued }: Collective<Buffer>,
    point: PeerPoint,
    limits: () => CallLimits,
    ...records: readonly Uint8Array[]
  ): Promise<void> {
    this.#peers.mark(point);
    if (!isQueued) await this.#reached();
    await this.#comm.deviceCall(name, type, limits(), ...records);
  }

  async #reached(): Promise<void> {
    await this.#peers.reached(() => this.#failure !== undefined);
    if (this.#failure !== undefined) throw this.#failure;
  }
}

function recordAt(buffer: ArrayBuffer, at: number, handleBytes: number): PeerRecord {
  const [input, output] = [0, 1].map((i) => new Uint8Array(buffer, at + 8 * fields.end + i * handleBytes, handleBytes));
  if (input === undefined || output === undefined) throw new RangeError('a record has two handles');
  return { numbers: new Float64Array(buffer, at, fields.end), handles: { input, output } };
}

function scalarIn(numbers: Float64Array): bigint {
  return new DataView(numbers.buffer, numbers.byteOffset).getBigUint64(8 * fields.scalar, true);
}

/** True if all ranks can make the same call. */
function agree(records: readonly PeerRecord[]): boolean {
  const [first] = records;
  return records.every(
    ({ numbers }) => numbers[fields.isAble] === 1 && alike.every((field) => numbers[field] === first?.numbers[field]),
  );
}

function usesScratch(own: Partial<Record<Which, Own<unknown>>>): boolean {
  return own.input?.scratch !== undefined || own.output?.scratch !== undefined;
}

/** Elements of a piece in scratch memory, and bytes of one part of it, which all ranks find alike. */
function sizesOf({ count, parts, type }: Collective<unknown>): { readonly piece: number; readonly bytes: number } {
  const most = Math.max(Math.floor(SCRATCH_BYTES / (parts * type.bytes) / PIECE_UNIT), 1) * PIECE_UNIT;
  const piece = Math.min(Math.max(count, 1), most);
  return { piece, bytes: piece * type.bytes };
}

function piecesOf({ count }: Collective<unknown>, length: number): readonly Piece[] {
  const pieces: Piece[] = [];
  for (let from = 0; from < count || from === 0; from += Math.max(length, 1))
    pieces.push({ from, length: Math.min(length, count - from) });
  return pieces;
}

function switchedOf<Buffer>(collective: Collective<Buffer>): SwitchedCall<Buffer> {
  const { name, root, count, type, input, output } = collective;
  const whole = (given: typeof input): Part<Buffer> | undefined => given?.array.part(0, given.parts * count);
  const combining = combiningOf(collective, []);
  return { name, root, count, elementBytes: type.bytes, combining, input: whole(input), output: whole(output) };
}

function combiningOf({ operator, type }: Collective<unknown>, scalars: readonly bigint[]): Combining | undefined {
  return operator === undefined ? undefined : { type: type.name, operator, scalars };
}
