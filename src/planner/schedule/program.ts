import { InputError } from '../../errors.js';
import { type OneSidedProgram, scheduleOneSided, type ScheduleOptions } from './one-sided.js';
import { programFifos } from './fifo.js';
import {
  ConnectionTable,
  placeOf,
  type Local,
  type Move,
  type Schedule,
  type ScheduledCollective,
  type Wait,
  type Worker,
} from './schedule.js';
import { inputBytes, outputBytes } from './buffers.js';

/**
 * An algorithm of the caller's own: steps of each rank's thread blocks on chunks of the data, such as one from MSCCL's XML.
 *
 *     const n = 4;
 *     const ring: Program = {
 *       name: 'one ring', collective: 'AllGather', nRanks: n, chunks: n, protocol: 'Simple', isInPlace: false,
 *       ranks: Array.from({ length: n }, (_, rank) => ({
 *         scratchChunks: 0,
 *         blocks: [{ channel: 0, sendTo: (rank + 1) % n, receiveFrom: (rank + n - 1) % n, steps: [
 *           { kind: 'copy', from: { buffer: 'input', chunk: 0 }, to: { buffer: 'output', chunk: rank } },
 *           { kind: 'send', from: { buffer: 'input', chunk: 0 } },
 *           …
 *         ] }],
 *       })),
 *     };
 *     verifySchedule(schedule(ring, 4096), 8)
 */
export interface Program {
  readonly name: string;
  readonly collective: ScheduledCollective;
  readonly nRanks: number;
  /** Number of chunks of the data; for AllGather and ReduceScatter of all ranks together. */
  readonly chunks: number;
  readonly protocol: 'LL' | 'LL128' | 'Simple';
  /** Input and output are one buffer. */
  readonly isInPlace: boolean;
  readonly ranks: readonly ProgramRank[];
}

/** An algorithm of the caller's own: of messages, or of memory that ranks write and read. */
export type AnyProgram = Program | OneSidedProgram;

/** Work of one rank. */
export interface ProgramRank {
  /** Chunks of scratch, beside input and output. */
  readonly scratchChunks: number;
  readonly blocks: readonly ProgramBlock[];
}

/** A thread block: its steps run in sequence. No other block of the rank has its peer on its channel. */
export interface ProgramBlock {
  /** Its number in a file, for messages; by default its place. */
  readonly id?: number;
  readonly channel: number;
  readonly sendTo?: number;
  readonly receiveFrom?: number;
  readonly steps: readonly ProgramStep[];
}

/** Place of a chunk. */
export interface ChunkPlace {
  readonly buffer: 'input' | 'output' | 'scratch';
  readonly chunk: number;
}

/**
 * `send`: from. `receive`: to. `forward`: receives to, sends. `reduce-send`: adds what it receives to from, sends.
 * `reduce-copy`: adds what it receives to from, writes to. `reduce-copy-send`: both. `copy`: from to to. `add`: from is
 * added to what is in to.
 */
export interface ProgramStep {
  readonly kind: 'send' | 'receive' | 'forward' | 'reduce-send' | 'reduce-copy' | 'reduce-copy-send' | 'copy' | 'add';
  /** Its number in a file, for messages; by default its place. */
  readonly id?: number;
  readonly from?: ChunkPlace;
  readonly to?: ChunkPlace;
  /** Number of consecutive chunks; 1 by default. */
  readonly count?: number;
  /** Steps of other blocks of the rank that must be complete before. */
  readonly after?: readonly { readonly block: number; readonly step: number }[];
}

/**
 * The schedule of a program for a size.
 *
 * @param bytes as nccl-tests counts it; rounded to a multiple of the chunks
 * @throws InputError for a program that contradicts itself, naming rank, block and step
 */
export function schedule(program: AnyProgram, bytes: number, options: ScheduleOptions = {}): Schedule {
  if ('isOneSided' in program) return scheduleOneSided(program, bytes, options);
  const { collective, nRanks, chunks, ranks } = program;
  if (ranks.length !== nRanks)
    throw new InputError('CONTENT', `the program ${program.name} is for ${nRanks} ranks and has ${ranks.length}`);
  const perChunk = Math.max(1, Math.round(bytes / chunks));
  const call = { collective, bytes: perChunk * chunks, root: 0 };
  const table = new ConnectionTable();
  const numbers = new Map<string, number>();
  const connect = (from: number, to: number, channel: number): number => {
    const key = `${from} ${to} ${channel}`;
    let number = numbers.get(key);
    if (number === undefined) numbers.set(key, (number = table.add(from, to, channel)));
    return number;
  };
  const workers: Worker[] = [];
  ranks.forEach(({ blocks, scratchChunks }, rank) => {
    const room = {
      input: inputBytes(call, nRanks, rank),
      output: outputBytes(call, nRanks, rank),
      scratch: scratchChunks * perChunk,
    };
    const first = workers.length;
    checkPeers(blocks, rank);
    const pieces = piecesOf(options.pieceBytes ?? programFifos[program.protocol].messageBytes, perChunk);
    const all = blocks.map((block, index) => ({
      ...block,
      steps: checkedSteps(block, blocks, room, perChunk, placeOf(rank, block.id ?? index)),
      send: block.sendTo === undefined ? -1 : connect(rank, checkedRank(block.sendTo, rank, nRanks), block.channel),
      receive: block.receiveFrom === undefined ? -1 : connect(checkedRank(block.receiveFrom, rank, nRanks), rank, block.channel),
    }));
    const movesBefore = all.map(({ steps }) => countMoves(steps, pieces.together));
    all.forEach(({ id, channel, steps, send, receive }, index) => {
      const moves = () => movesOf({ steps, blocks, send, receive, first, movesBefore, perChunk, ...pieces });
      workers.push({ rank, channel, block: id ?? index, moves });
    });
  });
  const scratchBytes = Math.max(0, ...ranks.map(({ scratchChunks }) => scratchChunks)) * perChunk;
  return {
    call,
    nRanks,
    connections: table.all,
    workers,
    own: { scratchBytes, isInPlace: program.isInPlace, chunkBytes: perChunk },
  };
}

/** Splits a chunk that is larger than a thread block moves at a time; otherwise joins several chunks. */
function piecesOf(most: number, perChunk: number): { readonly pieceBytes: number; readonly together: number } {
  return { pieceBytes: Math.min(most, perChunk), together: Math.max(1, Math.floor(most / perChunk)) };
}

/** By step: the moves of a round until it is done. */
function countMoves(steps: readonly ProgramStep[], together: number): number[] {
  let done = 0;
  return steps.map(({ count = 1 }) => (done += Math.ceil(count / together)));
}

interface BlockMoves {
  readonly steps: readonly ProgramStep[];
  /** All blocks of the rank. */
  readonly blocks: readonly ProgramBlock[];
  readonly send: number;
  readonly receive: number;
  /** Number of the rank's first worker. */
  readonly first: number;
  readonly movesBefore: readonly (readonly number[])[];
  readonly perChunk: number;
  readonly pieceBytes: number;
  readonly together: number;
}

/** All steps for each piece of the chunks in turn. */
function* movesOf({
  steps,
  blocks,
  send,
  receive,
  first,
  movesBefore,
  perChunk,
  pieceBytes,
  together,
}: BlockMoves): Generator<Move> {
  for (let offset = 0, round = 0; offset < perChunk; offset += pieceBytes, round++) {
    const piece = Math.min(pieceBytes, perChunk - offset);
    for (const [index, { id = index, kind, from, to, count = 1, after = [] }] of steps.entries()) {
      const waits = after.map(({ block, step }): Wait => {
        const counts = movesBefore[block] ?? [];
        const awaited = `thread block ${blocks[block]?.id ?? block}, step ${blocks[block]?.steps[step]?.id ?? step}`;
        return { worker: first + block, moves: round * (counts.at(-1) ?? 0) + (counts[step] ?? 0), at: awaited };
      });
      for (let done = 0; done < count; done += together) {
        const bytes = together === 1 ? piece : Math.min(together, count - done) * perChunk;
        const at = (place: ChunkPlace | undefined): Local[] =>
          place === undefined ? [] : [{ buffer: place.buffer, offset: (place.chunk + done) * perChunk + offset }];
        const receives = kind !== 'send' && kind !== 'copy' && kind !== 'add';
        const sends = kind === 'send' || kind === 'forward' || kind === 'reduce-send' || kind === 'reduce-copy-send';
        const adds = kind === 'receive' || kind === 'forward' ? [] : [...at(from), ...(kind === 'add' ? at(to) : [])];
        const writes = kind === 'send' || kind === 'reduce-send' ? [] : at(to);
        yield {
          receive: receives ? [receive] : [],
          input: -1,
          send: sends ? [send] : [],
          output: -1,
          bytes,
          local: { adds, writes, after: done === 0 ? waits : [] },
          at: `step ${id} (${kind})`,
        };
      }
    }
  }
}

/** @throws InputError if two blocks send or receive through one connection, whose steps both would count */
function checkPeers(blocks: readonly ProgramBlock[], rank: number): void {
  for (const [end, way] of [
    ['sendTo', 'to'],
    ['receiveFrom', 'from'],
  ] as const) {
    const users = new Map<string, number>();
    blocks.forEach((block, index) => {
      const [peer, id] = [block[end], block.id ?? index];
      if (peer === undefined) return;
      const key = `${peer} ${block.channel}`;
      const user = users.get(key);
      if (user !== undefined)
        throw new InputError(
          'CONTENT',
          `rank ${rank}, thread blocks ${user} and ${id}: both have the connection ${way} rank ${peer} on channel ${block.channel}; give one of them another channel`,
        );
      users.set(key, id);
    });
  }
}

function checkedRank(peer: number, rank: number, nRanks: number): number {
  if (Number.isInteger(peer) && peer >= 0 && peer < nRanks && peer !== rank) return peer;
  throw new InputError('CONTENT', `rank ${rank} has the peer ${peer}: ${peer === rank ? 'itself' : `there are ${nRanks} ranks`}`);
}

/** Checks the steps of a block. @throws InputError with the place */
function checkedSteps(
  { steps, sendTo, receiveFrom }: ProgramBlock,
  blocks: readonly ProgramBlock[],
  room: Readonly<Record<ChunkPlace['buffer'], number>>,
  perChunk: number,
  where: string,
): readonly ProgramStep[] {
  steps.forEach(({ id, kind, from, to, count = 1, after = [] }, index) => {
    const wrong = (problem: string) => new InputError('CONTENT', `${where}, step ${id ?? index} (${kind}): ${problem}`);
    if (kind !== 'send' && kind !== 'copy' && kind !== 'add' && receiveFrom === undefined)
      throw wrong('the block has no rank that it receives from');
    if ((kind === 'send' || kind === 'forward' || kind.endsWith('-send')) && sendTo === undefined)
      throw wrong('the block has no rank that it sends to');
    if (kind !== 'receive' && kind !== 'forward' && from === undefined) throw wrong('it does not say from where');
    if (kind !== 'send' && kind !== 'reduce-send' && to === undefined) throw wrong('it does not say where to');
    if (!Number.isInteger(count) || count < 1) throw wrong(`a count of ${count} chunks`);
    for (const place of [from, to]) {
      if (place !== undefined && (place.chunk < 0 || (place.chunk + count) * perChunk > room[place.buffer]))
        throw wrong(
          `chunks ${place.chunk} to ${place.chunk + count - 1} of the ${place.buffer}, which has ${room[place.buffer] / perChunk}`,
        );
    }
    for (const { block, step } of after) {
      if (blocks[block]?.steps[step] === undefined)
        throw wrong(`it waits for step ${step} of block ${block}, which is not there`);
    }
  });
  return steps;
}
