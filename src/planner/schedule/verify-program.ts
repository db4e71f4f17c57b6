import { type OneSidedProgram, type OneSidedStep, unitOf } from './one-sided.js';
import { type AnyProgram, schedule } from './program.js';
import { type ScheduleFault, verifySchedule } from './verify.js';

/** Bytes of a chunk and messages in a connection, when a program is verified. */
const VERIFIED_BYTES = 16;
const VERIFIED_SLOTS = 4;
/** Of programs that repeat steps: bytes of a piece, and most pieces of a chunk. */
const VERIFIED_UNIT_BYTES = 4;
const MOST_UNITS = 72;

/**
 * Executes a program with few bytes on numbers: {@link verifySchedule}. Pieces are so short that repeated steps repeat, and
 * chunks so long that all blocks that share one have work.
 */
export function verifyProgram(program: AnyProgram): ScheduleFault {
  if (!('isOneSided' in program)) return verifySchedule(schedule(program, VERIFIED_BYTES * program.chunks), VERIFIED_SLOTS);
  const unit = unitOf(program);
  const most = mostParts(program);
  for (const parts of new Set([1, most])) {
    // More pieces than scratch memory holds.
    const held = Math.floor((program.scratchChunkBytes ?? 0) / (unit ?? 1));
    const bytes = unit === undefined ? VERIFIED_BYTES : Math.min(MOST_UNITS, held + 8) * VERIFIED_UNIT_BYTES;
    const options = unit === undefined ? {} : { unitBytes: VERIFIED_UNIT_BYTES };
    const fault = verifySchedule(schedule(program, parts * bytes * program.chunks, options), VERIFIED_SLOTS);
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
