import { type OneSidedProgram, type OneSidedStep, unitOf, unwaitedSignal } from './one-sided.js';
import { programFifos } from './fifo.js';
import { type AnyProgram, type Program, schedule } from './program.js';
import { type ScheduleFault, verifySchedule } from './verify.js';

/** Bytes of a chunk, when a program is verified. */
const VERIFIED_BYTES = 16;
/** Messages on the way to a memory: any number will do, because the memory takes them at once. */
const MEMORY_SLOTS = 4;
/** Of programs that repeat steps: bytes of a piece, and most pieces of a chunk. */
const VERIFIED_UNIT_BYTES = 4;
const MOST_UNITS = 72;

/**
 * Executes a program with few bytes on numbers: {@link verifySchedule}. Pieces are so short that repeated steps repeat, and
 * chunks so long that all blocks that share one have work. A signal for which no wait follows is a fault, too.
 */
export function verifyProgram(program: AnyProgram): ScheduleFault {
  return 'isOneSided' in program ? verifyOneSided(program) : verifyMessages(program);
}

/** A step of several chunks is one message where they are short, and one a chunk where they are long. */
function verifyMessages(program: Program): ScheduleFault {
  const { messages } = programFifos[program.protocol];
  const verify = (pieceBytes?: number) =>
    verifySchedule(schedule(program, VERIFIED_BYTES * program.chunks, pieceBytes === undefined ? {} : { pieceBytes }), messages);
  const isSplit = program.ranks.some(({ blocks }) => blocks.some(({ steps }) => steps.some(({ count = 1 }) => count > 1)));
  return verify() ?? (isSplit ? verify(VERIFIED_BYTES) : undefined);
}

function verifyOneSided(program: OneSidedProgram): ScheduleFault {
  const unit = unitOf(program);
  const most = mostParts(program);
  for (const parts of new Set([1, most])) {
    // More pieces than scratch memory holds.
    const held = Math.floor((program.scratchChunkBytes ?? 0) / (unit ?? 1));
    const allowed = Math.ceil((program.mostBytes ?? Infinity) / program.chunks / (unit ?? 1) / parts);
    const units = Math.max(1, Math.min(MOST_UNITS, held + 8, allowed));
    const bytes = unit === undefined ? VERIFIED_BYTES : units * VERIFIED_UNIT_BYTES;
    const options = { unitBytes: VERIFIED_UNIT_BYTES };
    const all = parts * bytes * program.chunks;
    const fault = verifySchedule(schedule(program, all, options), MEMORY_SLOTS) ?? unwaitedSignal(program, all, options);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** Most blocks that share a step. */
function mostParts({ ranks }: OneSidedProgram): number {
  const partsOf = (step: OneSidedStep): number =>
    step.kind === 'repeat' ? Math.max(1, ...step.steps.map(partsOf)) : step.kind === 'move' ? (step.part?.of ?? 1) : 1;
  return Math.max(1, ...ranks.flatMap(({ blocks }) => blocks.flatMap((steps) => steps.map(partsOf))));
}
