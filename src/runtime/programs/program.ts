import { createHash } from '#platform/crypto';
import { counted } from '../../counted.js';
import { inputBytes, outputBytes } from '../../planner/schedule/buffers.js';
import { type AnyProgram, schedule } from '../../planner/schedule/program.js';
import type { Schedule, ScheduledCollective } from '../../planner/schedule/schedule.js';
import { verifyProgram } from '../../planner/schedule/verify-program.js';
import { verifySchedule } from '../../planner/schedule/verify.js';
import { InputError, InvalidArgumentError, InvalidUsageError, withRank } from '../../errors.js';
import { checkArray, type CallOptions, type TimedCallOptions } from '../algorithms/arguments.js';
import { callKindOf, encodeCall } from '../algorithms/call.js';
import { Exchange, HEADER_BYTES } from '../algorithms/connections/exchange.js';
import { Operand } from '../algorithms/operand.js';
import type { Observe } from '../algorithms/operation.js';
import { describeValue } from '../../describe-value.js';
import { type RankWork, scheduleEnds, ScheduleTracks, workOf } from '../algorithms/connections/schedule-tracks.js';
import type { Bootstrap } from '../bootstrap/bootstrap.js';
import { gatherJson } from '../bootstrap/gather-json.js';
import { oddRanksOf } from '../bootstrap/rank-list.js';
import { errorOfCall, settlerOf } from '../caller-stack.js';
import { DONE } from '../device/kernels/kernels.js';
import type { Libc } from '../device/libc.js';
import type { Team } from '../device/team.js';
import { type DataType, type NumericArray, operatorCode } from '../device/types.js';
import type { Condition, Messenger } from '../messages/messenger.js';
import { checkAlone, refused } from '../messages/running-group.js';
import { limited, type TimedCallParts } from '../messages/timed-call.js';
import type { PeerConnections } from '../transport/peers.js';
import type { FifoSize } from '../transport/transport.js';
import type { Ends } from '../algorithms/connections/algorithm.js';
import { defined } from '../../defined.js';

/** A schedule for every size, such as one from a plan. Its connections are the same for all sizes. */
export interface ScheduleMaker {
  /** Name of the algorithm, for errors and logs. */
  readonly name: string;
  /** The collective that it carries out. */
  readonly collective: ScheduledCollective;
  /** Its number of ranks. */
  readonly nRanks: number;
  /** Number of chunks: the size must be a multiple of this many elements. */
  readonly chunks: number;
  /** Makes the schedule of a size in bytes; `pieceBytes` is the longest message. */
  readonly schedule: (bytes: number, pieceBytes: number) => Schedule;
}

/** @internal The parts of its communicator that a program uses. */
interface ProgramParts {
  readonly bootstrap: Bootstrap;
  readonly team: Team;
  readonly libc: Libc | undefined;
  readonly messenger: Messenger;
  /** Number of the program, the same on all ranks; from 1. */
  readonly number: number;
  readonly connect: (size: FifoSize, ends: Ends) => Promise<PeerConnections>;
  readonly checkUsable: (call: string) => void;
  readonly fail: (error: unknown) => unknown;
  /** Means to end calls with a limit. */
  readonly timed: TimedCallParts;
  readonly observe: Observe | undefined;
}

/** Slots of a connection: at least the number that the schedule is verified with. */
const STEPS = 8;
/** Longest and shortest message, and memory of a rank for all of its connections. */
const MOST_PIECE_BYTES = 64 * 1024;
const LEAST_PIECE_BYTES = 1024;
const CONNECTIONS_BYTES = 32 * 1024 * 1024;
const OPERATORS = ['sum', 'prod', 'min', 'max'] as const;
/** Operators that are commutative. */
export type ProgramOperator = (typeof OPERATORS)[number];

/** An algorithm of the caller's own on the connections of a communicator; see Communicator.program. */
export class ProgramRunner {
  /** Name of the algorithm. */
  readonly name: string;
  /** Lengths of its arrays are multiples of this. */
  readonly chunks: number;
  readonly #parts: ProgramParts;
  readonly #make: ScheduleMaker;
  readonly #pieceBytes: number;
  readonly #exchange: Exchange;
  readonly #tracks: ScheduleTracks;
  readonly #source: Operand;
  readonly #destination: Operand;
  /** Work of the last size. */
  #last: SizedWork | undefined;
  #memory: { readonly address: number; readonly bytes: number } | undefined;
  /** Ends with the last call. */
  #turn: Promise<void> = Promise.resolve();
  #isClosed = false;

  /** @internal Refuses a program that ranks cannot run. */
  static check(program: AnyProgram | ScheduleMaker, nRanks: number): void {
    const make = makerOf(program);
    if (make.nRanks !== nRanks)
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `program: ${make.name} is for ${make.nRanks} ranks, the communicator has ${nRanks}`,
      );
    if (callKindOf(make.collective) === undefined)
      throw new InvalidArgumentError('ARGUMENT_RANGE', `program: ${make.collective} is no collective that ranks run`);
    const made = make.schedule(16 * make.chunks, 16);
    if (made.nRanks !== nRanks)
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `program: the schedule of ${make.name} has ${made.nRanks} ranks, the communicator ${nRanks}`,
      );
    const fault = 'schedule' in program ? verifySchedule(made, STEPS / 2) : verifyProgram(program);
    if (fault !== undefined) throw new InputError('CONTENT', `program: ${make.name} is wrong: ${fault}`);
  }

  /** @internal Makes the connections of a verified program. Every rank calls it. */
  static async open(parts: ProgramParts, program: AnyProgram | ScheduleMaker): Promise<ProgramRunner> {
    const { bootstrap } = parts;
    const make = makerOf(program);
    const small = make.schedule(16 * make.chunks, LEAST_PIECE_BYTES);
    const hashes = await gatherJson(bootstrap, 'program', { hash: hashOf(small), name: make.name });
    const other = hashes.findIndex(({ hash }) => hash !== hashes[0]?.hash);
    if (other >= 0)
      throw new InvalidUsageError(
        'CALL_MISMATCH',
        `all ranks have to run one program, but ${defined(hashes[other]).name} of rank ${other} differs from ${defined(hashes[0]).name} of rank 0`,
        { ranks: oddRanksOf(hashes.map(({ hash }) => hash)) },
      );
    const pieceBytes = pieceBytesOf(small);
    const ends = scheduleEnds(small, bootstrap.rank, `program ${parts.number}`);
    const connections = await parts.connect({ steps: STEPS, slotBytes: HEADER_BYTES + pieceBytes }, ends);
    return new ProgramRunner(parts, make, pieceBytes, connections);
  }

  private constructor(parts: ProgramParts, make: ScheduleMaker, pieceBytes: number, connections: PeerConnections) {
    const { team, libc, bootstrap, messenger } = parts;
    this.name = make.name;
    this.chunks = make.chunks;
    this.#parts = parts;
    this.#make = make;
    this.#pieceBytes = pieceBytes;
    this.#exchange = new Exchange(bootstrap.rank, team);
    this.#exchange.add(connections.sends, connections.receives);
    this.#tracks = new ScheduleTracks(team, connections);
    this.#source = new Operand(team.segment, libc);
    this.#destination = new Operand(team.segment, libc);
    messenger.dependents.add(this);
  }

  /**
   * Carries out the program's collective with the arguments of the communicator's method of that name. Every rank calls it;
   * calls run in sequence. The root of a broadcast or reduce is rank 0.
   *
   * @param recv default: in place
   * @param operator sum, prod, min or max
   * @throws (rejects) BUFFER_SIZE if lengths do not fit the collective or the program's chunks, ARGUMENT_TYPE, CLOSED
   */
  run(
    send: NumericArray,
    recv: NumericArray = send,
    operator: ProgramOperator = 'sum',
    options?: TimedCallOptions,
  ): Promise<void> {
    let call: PreparedCall;
    try {
      this.#checkOpen();
      checkAlone('run', this.#parts.bootstrap.rank);
      call = this.#prepare(send, recv, operator, options);
    } catch (error) {
      return refused(errorOfCall(error, this.#parts.bootstrap.rank));
    }
    const begin = (): Promise<void> => {
      const turn = this.#turn.then(() => this.#execute(call));
      this.#turn = turn.catch(() => undefined);
      return turn;
    };
    return limited(this.#parts.timed, 'run', begin, options);
  }

  /** Closes the program on this rank after its calls; every rank calls it. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#turn;
    this.#parts.messenger.dependents.delete(this);
    await this.leave();
  }

  /** @internal The communicator failed. */
  abort(reason: Error): void {
    this.#exchange.abort(withRank(reason, this.#parts.bootstrap.rank));
  }

  /** @internal The communicator is closed while the program is open. */
  async leave(): Promise<void> {
    this.#isClosed = true;
    await this.#exchange.close();
    this.#tracks.close();
    this.#free();
  }

  #checkOpen(): void {
    this.#parts.checkUsable('program.run');
    const { rank } = this.#parts.bootstrap;
    if (this.#isClosed) throw new InvalidUsageError('CLOSED', `run: rank ${rank} has closed the program`, { rank });
  }

  #prepare(send: NumericArray, recv: NumericArray, operator: ProgramOperator, options: CallOptions | undefined): PreparedCall {
    const type = checkArray('run', send, options);
    if (checkArray('run', recv, options) !== type)
      throw new InvalidArgumentError('ARGUMENT_TYPE', 'run: input and output must have one type');
    if (!OPERATORS.includes(operator))
      throw new InvalidArgumentError('UNKNOWN_NAME', `run: the operator '${operator}' is none of ${OPERATORS.join(', ')}`);
    const { collective, chunks } = this.#make;
    const { nRanks, rank } = this.#parts.bootstrap;
    const length = wholeLength(collective, nRanks, rank, send.length, recv.length);
    if (length % chunks !== 0 || length === 0)
      throw new InvalidArgumentError(
        'BUFFER_SIZE',
        `run: ${counted(length, 'element')} cannot be cut into the ${chunks} chunks of ${this.name}; pass a multiple of ${chunks}`,
      );
    const bytes = length * type.bytes;
    const call = { collective, bytes, root: 0 };
    const [inBytes, outBytes] = [inputBytes(call, nRanks, rank), outputBytes(call, nRanks, rank)];
    for (const [what, array, wanted] of [
      ['input', send, inBytes],
      ['output', recv, outBytes],
    ] as const) {
      if (wanted > 0 && array.length * type.bytes < wanted)
        throw new InvalidArgumentError(
          'BUFFER_SIZE',
          `run: the ${what} has ${counted(array.length, 'element')}; this ${collective} needs ${wanted / type.bytes}`,
        );
    }
    if (send === recv && inBytes !== outBytes && inBytes > 0 && outBytes > 0)
      throw new InvalidArgumentError(
        'BUFFER_SIZE',
        `run: input and output of ${collective} have different lengths; pass both (in place: this rank's part of the larger)`,
      );
    return { send, recv, operator, type, inBytes, outBytes, ...this.#workFor(bytes, type.bytes) };
  }

  async #execute(prepared: PreparedCall): Promise<void> {
    this.#checkOpen();
    const { bootstrap, messenger, observe, fail, team } = this.#parts;
    const { type, operator, bytes } = prepared;
    const text = `${this.#make.collective} of ${bytes / type.bytes} ${type.name} by ${this.name}`;
    const ended = observe?.({ name: 'program', text, args: { bytes, program: this.name } });
    const exchange = this.#exchange;
    try {
      const place = this.#place(prepared);
      const kind = callKindOf(this.#make.collective) ?? 'barrier';
      const count = bytes / type.bytes;
      exchange.call(encodeCall({ kind, type, operator, root: 0, count, algorithm: 'program' }), 0, count, undefined);
      const tracks = this.#tracks.start(prepared.work, { ...place.buffers, type: type.code, operator: operatorCode(operator) });
      exchange.replace(tracks);
      await new Promise<void>((resolve) => {
        const condition: Condition = {
          isMet: () => {
            const { steps } = exchange;
            const isDone = exchange.progress(0) === DONE;
            if (isDone || exchange.steps !== steps) team.segment.parkedRanks.wake();
            return isDone;
          },
          get steps() {
            return exchange.steps;
          },
          awaited: () => exchange.awaitedRanks(),
          get polled() {
            return exchange.polled;
          },
          overSockets: exchange.hasSockets,
          wakeOn: (sources) => exchange.wakeOn(sources),
          text,
          call: this.#make.collective,
          settled: settlerOf(resolve),
        };
        messenger.waitFor(condition);
      });
      place.finish();
      ended?.();
    } catch (error) {
      ended?.(error as Error);
      throw errorOfCall(fail(error), bootstrap.rank);
    }
  }

  #workFor(bytes: number, elementBytes: number): SizedWork {
    if (this.#last?.bytes !== bytes || this.#last.elementBytes !== elementBytes) {
      const made = this.#make.schedule(bytes, this.#pieceBytes);
      const work = workOf(made, this.#parts.bootstrap.rank, this.#pieceBytes, elementBytes);
      this.#last = { bytes, elementBytes, work, schedule: made };
    }
    return this.#last;
  }

  /** The buffers in memory that kernels reach: the arrays themselves, or copies. */
  #place({ send, recv, bytes, inBytes, outBytes, work, schedule: { own } }: PreparedCall): Placed {
    const { rank, nRanks } = this.#parts.bootstrap;
    const [source, destination] = [this.#source, this.#destination];
    source.use(send);
    destination.use(recv);
    const isInPlace = own?.isInPlace === true;
    const whole = Math.max(inBytes, outBytes);
    const partAt = (part: number) => (part === whole ? 0 : (rank * bytes) / nRanks);
    const scratchBytes = own?.scratchBytes ?? 0;
    // Input, output and scratch, or all in one: each in its array, or in memory of the program.
    const apart =
      send.buffer !== recv.buffer ||
      send.byteOffset + inBytes <= recv.byteOffset ||
      recv.byteOffset + outBytes <= send.byteOffset;
    const isExact = send.byteOffset === recv.byteOffset + partAt(inBytes);
    const ownsWhole = isInPlace && !(destination.placed && outBytes === whole && (apart || isExact));
    const ownsInput = !isInPlace && inBytes > 0 && (!source.placed || work.writesInput || !apart);
    const ownsOutput = !isInPlace && outBytes > 0 && !destination.placed;
    const rounded = (length: number) => Math.ceil(length / 64) * 64;
    const sizes = [ownsWhole ? whole : 0, ownsInput ? inBytes : 0, ownsOutput ? outBytes : 0, scratchBytes].map(rounded);
    const base = this.#room(sizes.reduce((sum, size) => sum + size, 0));
    const at = sizes.map((_, index) => base + sizes.slice(0, index).reduce((sum, size) => sum + size, 0)) as [
      number,
      number,
      number,
      number,
    ];
    const wholeAt = ownsWhole ? at[0] : destination.address(0);
    const input = isInPlace ? wholeAt + partAt(inBytes) : ownsInput ? at[1] : source.placed ? source.address(0) : 0;
    const output = isInPlace ? wholeAt + partAt(outBytes) : ownsOutput ? at[2] : destination.placed ? destination.address(0) : 0;
    if (inBytes > 0 && (isInPlace || ownsInput)) source.copyTo(input, 0, inBytes);
    source.forget();
    return {
      buffers: { input, output, scratch: at[3] },
      finish: () => {
        if (outBytes > 0 && (ownsWhole || ownsOutput)) destination.write(0, outBytes, output);
        destination.forget();
      },
    };
  }

  #room(bytes: number): number {
    if (bytes === 0) return 0;
    if (this.#memory === undefined || this.#memory.bytes < bytes) {
      this.#free();
      this.#memory = { address: this.#parts.team.allocateBytes(bytes), bytes };
    }
    return this.#memory.address;
  }

  #free(): void {
    if (this.#memory !== undefined) this.#parts.team.freeBytes(this.#memory.address);
    this.#memory = undefined;
  }
}

/** Work of this rank in calls of one size. */
interface SizedWork {
  /** The size as nccl-tests counts it. */
  readonly bytes: number;
  readonly elementBytes: number;
  readonly work: RankWork;
  readonly schedule: Schedule;
}

/** A call whose arguments are checked. */
interface PreparedCall extends SizedWork {
  readonly send: NumericArray;
  readonly recv: NumericArray;
  readonly operator: ProgramOperator;
  readonly type: DataType;
  readonly inBytes: number;
  readonly outBytes: number;
}

interface Placed {
  readonly buffers: { readonly input: number; readonly output: number; readonly scratch: number };
  /** Copies the result to the caller's array. */
  readonly finish: () => void;
}

/** Elements of the larger buffer of a rank, or of the root. */
function wholeLength(collective: ScheduledCollective, nRanks: number, rank: number, send: number, recv: number): number {
  switch (collective) {
    case 'AllGather':
      return recv;
    case 'Broadcast':
      return rank === 0 ? send : recv;
    case 'Gather':
      return send * nRanks;
    case 'Scatter':
      return recv * nRanks;
    default:
      return send;
  }
}

function makerOf(program: AnyProgram | ScheduleMaker): ScheduleMaker {
  const given: unknown = program;
  if (typeof given !== 'object' || given === null || !('collective' in given)) {
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `program: pass a program of tccl/planner, or { name, collective, nRanks, chunks, schedule }, not ${describeValue(given)}`,
    );
  }
  if ('schedule' in program) return program;
  const { name, collective, nRanks, chunks } = program;
  return { name, collective, nRanks, chunks, schedule: (bytes, pieceBytes) => schedule(program, bytes, { pieceBytes }) };
}

/** Length of messages, the same on all ranks: limited by the memory of the rank with the most connections. */
function pieceBytesOf({ connections, nRanks }: Schedule): number {
  const ends = new Array<number>(nRanks).fill(0);
  for (const { to } of connections) ends[to] = defined(ends[to]) + 1;
  const most = Math.max(1, ...ends);
  const room = 2 ** Math.floor(Math.log2(CONNECTIONS_BYTES / (most * STEPS)));
  return Math.max(LEAST_PIECE_BYTES, Math.min(MOST_PIECE_BYTES, room));
}

function hashOf({ call, connections, workers, own }: Schedule): string {
  const hash = createHash('sha256').update(JSON.stringify([call, connections, own]));
  for (const { rank, channel, moves } of workers) hash.update(JSON.stringify([rank, channel, [...moves()]]));
  return hash.digest('hex');
}
