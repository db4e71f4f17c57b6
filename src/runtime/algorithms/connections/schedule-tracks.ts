import { rangesOf, type MoveRange, type Schedule, type Wait, type Worker } from '../../../planner/schedule/schedule.js';
import { InvalidArgumentError } from '../../../errors.js';
import type { Arithmetic } from '../../device/kernels/kernels.js';
import type { Team } from '../../device/team.js';
import type { PeerConnections, WantedEnd } from '../../transport/peers.js';
import type { ReceiveConnection, SendConnection } from '../../transport/transport.js';
import type { Track } from './exchange.js';
import type { Ends } from './algorithm.js';
import { defined } from '../../../defined.js';

/** The places of a schedule's buffers, and the operator of its sums. */
interface ScheduleBuffers {
  readonly input: number;
  readonly output: number;
  readonly scratch: number;
  /** Codes of type and operator. */
  readonly type: number;
  readonly operator: number;
}

/** A rank's part of a schedule, reusable for any number of calls. */
export interface RankWork {
  readonly workers: readonly RankWorker[];
  /** True if moves write to the input. */
  readonly writesInput: boolean;
}

interface RankWorker {
  readonly moves: readonly RankMove[];
}

/** A move with its connections by their places among the rank's ends, and waits by places among its workers. */
interface RankMove {
  readonly receive: readonly number[];
  readonly send: readonly number[];
  readonly bytes: number;
  readonly exclusive: boolean;
  readonly ranges: readonly MoveRange[];
  readonly after: readonly Wait[];
}

/**
 * The ends that a rank has of a schedule's connections.
 *
 * @throws InvalidArgumentError `ARGUMENT_RANGE` for connections with a network that reduces, or of a rank with itself
 */
export function scheduleEnds({ connections }: Schedule, rank: number, name: string): Ends {
  const sendTo: WantedEnd[] = [];
  const receiveFrom: WantedEnd[] = [];
  connections.forEach(({ from, to }, number) => {
    if (from < 0 || to < 0 || from === to)
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `connection ${number} of the schedule goes from ${nameOf(from)} to ${nameOf(to)}: ranks have none of this kind; ` +
          'run an algorithm of messages between ranks',
      );
    if (from === rank) sendTo.push({ peer: to, name: `${name} ${number}` });
    if (to === rank) receiveFrom.push({ peer: from, name: `${name} ${number}` });
  });
  return { sendTo, receiveFrom };
}

function nameOf(rank: number): string {
  return rank < 0 ? 'the network' : `rank ${rank}`;
}

/**
 * A rank's part of a schedule.
 *
 * @param mostBytes longest message
 * @param grain length of an element in bytes
 * @throws InvalidArgumentError `BUFFER_SIZE` where a move cuts an element; `ARGUMENT_RANGE` where one is longer than a
 *   message, or waits for another rank's worker
 */
export function workOf(schedule: Schedule, rank: number, mostBytes: number, grain: number): RankWork {
  const sends = new Map<number, number>();
  const receives = new Map<number, number>();
  schedule.connections.forEach(({ from, to }, number) => {
    if (from === rank) sends.set(number, sends.size);
    if (to === rank) receives.set(number, receives.size);
  });
  const places = new Map<number, number>();
  schedule.workers.forEach((worker, number) => {
    if (worker.rank === rank) places.set(number, places.size);
  });
  let writesInput = false;
  const numbersIn = (known: ReadonlyMap<number, number>, numbers: readonly number[]) =>
    numbers.map((number) => {
      const place = known.get(number);
      if (place === undefined)
        throw new InvalidArgumentError(
          'ARGUMENT_RANGE',
          `a move of rank ${rank} uses connection ${number}, which is another rank's`,
        );
      return place;
    });
  const workers = schedule.workers
    .filter((worker) => worker.rank === rank)
    .map(({ moves }: Worker): RankWorker => ({
      moves: Array.from(moves(), (move): RankMove => {
        const { bytes } = move;
        const ranges = rangesOf(move);
        const sizes = ranges.flatMap(({ bytes: length, input, output, local }) => [
          length,
          ...[input, output].filter((offset) => offset >= 0),
          ...[...(local?.adds ?? []), ...(local?.writes ?? [])].map(({ offset }) => offset),
        ]);
        if (sizes.some((size) => size % grain !== 0))
          throw new InvalidArgumentError(
            'BUFFER_SIZE',
            `a move of rank ${rank} of ${bytes} bytes cuts elements of ${grain} bytes in two; pass arrays whose length is a multiple of the program's chunks`,
          );
        if (bytes > mostBytes)
          throw new InvalidArgumentError(
            'ARGUMENT_RANGE',
            `a move of rank ${rank} has ${bytes} bytes; messages have ${mostBytes} at most`,
          );
        writesInput ||= ranges.some(({ local }) => local?.writes.some(({ buffer }) => buffer === 'input'));
        return {
          bytes,
          ranges,
          exclusive: move.exclusive === true,
          receive: numbersIn(receives, move.receive),
          send: numbersIn(sends, move.send),
          after: (move.local?.after ?? []).map((wait) => {
            const worker = places.get(wait.worker);
            if (worker === undefined)
              throw new InvalidArgumentError('ARGUMENT_RANGE', `a move of rank ${rank} waits for a worker of another rank`);
            return { worker, moves: wait.moves };
          }),
        };
      }),
    }));
  return { workers, writesInput };
}

/**
 * Carries out a rank's part of a schedule (planner/schedule/) on connections: each worker is a track of Exchange.
 * A move is one message; its operands are where they lie, in slots and in buffers of the segment.
 */
export class ScheduleTracks {
  readonly #team: Team;
  readonly #connections: PeerConnections;
  #tracks: readonly WorkerTrack[] = [];
  #work: RankWork | undefined;
  #tables: Tables | undefined;

  constructor(team: Team, connections: PeerConnections) {
    this.#team = team;
    this.#connections = connections;
  }

  /** The tracks of one execution. */
  start(work: RankWork, buffers: ScheduleBuffers): readonly Track[] {
    if (this.#work !== work) {
      this.#work = work;
      const most = work.workers.reduce(
        (outer, { moves }) => moves.reduce((inner, move) => Math.max(inner, operandsOf(move)), outer),
        2,
      );
      this.close();
      this.#tables = {
        address: this.#team.allocateBytes(2 * most * 4),
        places: most,
        words: new Uint32Array(this.#team.segment.buffer),
      };
      const { sends, receives } = this.#connections;
      const tables = this.#tables;
      const { kernels } = this.#team.segment;
      const tracks: WorkerTrack[] = [];
      for (const { moves } of work.workers) tracks.push(new WorkerTrack(moves, { sends, receives, kernels, tables, tracks }));
      this.#tracks = tracks;
    }
    for (const track of this.#tracks) track.start(buffers);
    return this.#tracks;
  }

  /** Frees its memory. */
  close(): void {
    if (this.#tables !== undefined) this.#team.freeBytes(this.#tables.address);
    this.#tables = undefined;
  }
}

function operandsOf({ receive, send, ranges }: RankMove): number {
  return ranges.reduce((most, { input, output, local }) => {
    const from = receive.length + (input >= 0 ? 1 : 0) + (local?.adds.length ?? 0);
    const to = send.length + (output >= 0 ? 1 : 0) + (local?.writes.length ?? 0);
    return Math.max(most, from, to);
  }, 0);
}

/** Room for addresses of operands, for kernels: sources, then destinations. */
interface Tables {
  readonly address: number;
  readonly places: number;
  readonly words: Uint32Array;
}

interface TrackParts {
  readonly sends: readonly SendConnection[];
  readonly receives: readonly ReceiveConnection[];
  readonly kernels: Arithmetic;
  readonly tables: Tables;
  /** All tracks of the rank, by number of their workers. */
  readonly tracks: readonly WorkerTrack[];
}

const none: readonly never[] = [];

/** The moves of one worker. */
class WorkerTrack implements Track {
  done = true;
  from: readonly ReceiveConnection[] = none;
  to: readonly SendConnection[] = none;
  bytes = 0;
  readonly into = 0;
  readonly data = 0;
  readonly #moves: readonly RankMove[];
  readonly #ends: readonly { readonly from: readonly ReceiveConnection[]; readonly to: readonly SendConnection[] }[];
  readonly #parts: TrackParts;
  /** Moves done. */
  count = 0;
  #move: RankMove | undefined;
  #buffers: ScheduleBuffers = { input: 0, output: 0, scratch: 0, type: 0, operator: 0 };

  constructor(moves: readonly RankMove[], parts: TrackParts) {
    this.#moves = moves;
    this.#parts = parts;
    this.#ends = moves.map(({ receive, send }) => ({
      from: receive.map((number) => defined(parts.receives[number])),
      to: send.map((number) => defined(parts.sends[number])),
    }));
  }

  start(buffers: ScheduleBuffers): void {
    this.#buffers = buffers;
    this.count = 0;
    this.#go();
  }

  /** False while another worker of the rank has not done the moves that this one waits for. */
  get ready(): boolean {
    const after = this.#move?.after ?? none;
    for (let index = 0; index < after.length; index++) {
      const wait = after[index];
      if (wait !== undefined && defined(this.#parts.tracks[wait.worker]).count < wait.moves) return false;
    }
    return true;
  }

  pass(inputs: readonly number[], outputs: readonly number[]): void {
    const move = this.#move;
    if (move === undefined) return;
    const { ranges, exclusive } = move;
    let offset = 0;
    for (let index = 0; index < ranges.length; index++) {
      const range = ranges[index];
      if (range === undefined || range.bytes === 0) continue;
      this.#passRange(range, exclusive, offset, inputs, outputs);
      offset += range.bytes;
    }
  }

  #passRange(
    { input, output, local, bytes }: MoveRange,
    isExclusive: boolean,
    offset: number,
    inputs: readonly number[],
    outputs: readonly number[],
  ): void {
    const { words, address, places } = this.#parts.tables;
    const buffers = this.#buffers;
    const sources = address / 4;
    const destinations = sources + places;
    const nReceived = this.from.length;
    let nSources = 0;
    let nDestinations = 0;
    for (; nSources < nReceived; nSources++) words[sources + nSources] = defined(inputs[nSources]) + offset;
    if (input >= 0) words[sources + nSources++] = buffers.input + input;
    if (local !== undefined) for (const { buffer, offset: at } of local.adds) words[sources + nSources++] = buffers[buffer] + at;
    for (; nDestinations < this.to.length; nDestinations++)
      words[destinations + nDestinations] = defined(outputs[nDestinations]) + offset;
    if (output >= 0 && !isExclusive) words[destinations + nDestinations++] = buffers.output + output;
    if (local !== undefined)
      for (const { buffer, offset: at } of local.writes) words[destinations + nDestinations++] = buffers[buffer] + at;
    this.#combine(nSources, nDestinations, bytes);
    if (output < 0 || !isExclusive) return;
    words[destinations] = buffers.output + output;
    this.#combine(nReceived, 1, bytes);
  }

  /** Combines the first sources of the tables into the first destinations. */
  #combine(nSources: number, nDestinations: number, bytes: number): void {
    const { kernels, tables } = this.#parts;
    const { words, address, places } = tables;
    if (nSources > 1) {
      const { type, operator } = this.#buffers;
      kernels.reduceCopy(type, operator, address, nSources, address + places * 4, nDestinations, 0, bytes);
      return;
    }
    const source = defined(words[address / 4]);
    for (let index = 0; index < nDestinations; index++) {
      const destination = defined(words[address / 4 + places + index]);
      if (destination !== source) kernels.copy(destination, source, bytes);
    }
  }

  finish(): void {
    this.count++;
    this.#go();
  }

  #go(): void {
    const move = this.#moves[this.count];
    this.#move = move;
    this.done = move === undefined;
    if (move === undefined) return;
    const ends = this.#ends[this.count];
    this.from = ends?.from ?? none;
    this.to = ends?.to ?? none;
    this.bytes = move.bytes;
  }
}
