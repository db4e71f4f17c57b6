import type { Bootstrap } from '../../../../src/runtime/bootstrap/bootstrap.js';
import { PointToPoint } from '../../../../src/runtime/messages/p2p.js';
import { loadLibc } from '../../../../src/runtime/device/libc.js';
import { Segment } from '../../../../src/runtime/device/segment.js';
import { createMemory } from '../../../../src/runtime/device/shared-memory.js';
import { Team } from '../../../../src/runtime/device/team.js';

export interface Rank {
  readonly segment: Segment;
  readonly p2p: PointToPoint;
}

/** Ranks that share a memory, all in this thread: nothing waits here, so they take turns. */
export function ranks(n: number): Rank[] {
  const memory = createMemory();
  const { libc } = loadLibc();
  return Array.from({ length: n }, (_, rank) => {
    const segment = Segment.ofThreads(memory, rank, n);
    const team = Team.ofAll(segment);
    const bootstrap = {
      rank,
      nRanks: n,
      localRank: rank,
      localRanks: Array.from({ length: n }, (__, local) => local),
    } as unknown as Bootstrap;
    const openTransport = (): never => {
      throw new Error('all ranks share memory');
    };
    const p2p = new PointToPoint({
      bootstrap,
      team,
      libc,
      shared: true,
      openTransport,
      onNews: () => undefined,
      forwardInCalls: () => undefined,
    });
    return { segment, p2p };
  });
}
