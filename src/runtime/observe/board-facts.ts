import { createHash } from '#platform/crypto';
import type { Bootstrap } from '../bootstrap/bootstrap.js';
import { version } from '../../version.js';

/** Consecutive ranks of one host. */
interface Range {
  readonly host: string;
  readonly from: number;
  readonly to: number;
}

/** Facts of a job that each of its ranks shows on its board. */
export interface BoardFacts {
  /** Id of the job, the same on all ranks. */
  readonly job: string;
  readonly version: string;
  /** True if the ranks of this host share memory. */
  readonly shared: boolean;
  /** The hosts of ranks; the first ones, if there are many. */
  readonly hosts: readonly Range[];
}

/** More do not fit on a board. */
const MOST_CHARACTERS = 700;
/** Of the shortest range in JSON. */
const RANGE_CHARACTERS = 26;

/** The facts of this rank's job. Its id reveals nothing of the secret. */
export function boardFacts({ peers, rank }: Bootstrap, secret: Uint8Array, shared: boolean): BoardFacts {
  const hosts: Range[] = [];
  let last: { hash: string; range: Range } | undefined;
  for (const { rank: from, hostHash, hostname } of peers) {
    if (last?.hash === hostHash) hosts[hosts.length - 1] = last.range = { ...last.range, to: from };
    else {
      last = { hash: hostHash, range: { host: hostname.slice(0, 64), from, to: from } };
      hosts.push(last.range);
    }
  }
  const own = hosts.find(({ from, to }) => from <= rank && rank <= to);
  const shown = hosts.slice(0, Math.floor(MOST_CHARACTERS / RANGE_CHARACTERS));
  while (JSON.stringify(shown).length > MOST_CHARACTERS) shown.pop();
  if (own !== undefined && !shown.includes(own)) shown.push(own);
  const job = createHash('sha256').update(secret).digest('hex').slice(0, 8);
  return { job, version, shared, hosts: shown };
}
