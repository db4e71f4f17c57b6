import type { Schedule } from '../../planner/schedule/schedule.js';
import { operationsOf } from './operations.js';

/** Processors of a rank that GOAL can number: each thread block takes one. */
const MOST_PROCESSORS = 256;

/**
 * The messages of a schedule in GOAL, the input of LogGOPSim and ATLAHS (spcl/LogGOPSim, txt2bin.re): thread blocks of a rank as
 * processors, a tag for each connection, and what each message waits for.
 *
 *     l7: recv 5472b from 3 tag 12 cpu 0
 *     l8: send 5472b to 5 tag 13 cpu 0
 *     l8 requires l7
 *
 * FIFOs never fill: GOAL has no credits.
 *
 * @param wireBytes bytes on the wire by bytes of data, with the flags of LL and LL128
 * @param launchUs time before the first message of a rank
 * @throws InvalidArgumentError for a network that reduces, which is no rank, and for too many moves
 */
export function goalText(schedule: Schedule, wireBytes: number, launchUs: number): string {
  const lines = [`num_ranks ${schedule.nRanks}`];
  for (const [rank, operations] of operationsOf(schedule, wireBytes).entries()) {
    lines.push('', `rank ${rank} {`, `l0: calc ${Math.round(launchUs * 1000)}`);
    // Labels must stand before they are named.
    const late: string[] = [];
    operations.forEach(({ verb, bytes, peer, tag, worker, after }, place) => {
      const end = verb === 'recv' ? `from ${peer}` : `to ${peer}`;
      lines.push(`l${place + 1}: ${verb} ${bytes}b ${end} tag ${tag} cpu ${worker % MOST_PROCESSORS}`);
      for (const other of after) (other > place ? late : lines).push(`l${place + 1} requires l${other + 1}`);
    });
    lines.push(...late, '}');
  }
  return `${lines.join('\n')}\n`;
}
