/**
 * How data that lie outside the segment come to the other rank: it reads them where they are, or they are copied into
 * staging memory.
 */
export type Way = 'open' | 'staged';

/** So many calls, at first and at most, are made in the better way before the other one is tried anew. */
const FIRST_CALLS = 8;
const MOST_CALLS = 1024;
/** Calls of a trial: the two halves of staging memory are cold in its first two. */
const TRIAL_CALLS = 4;
/** What the other way's time must be below of the present one's, or each flicker would change the way. */
const BETTER = 0.95;
/** If calls take so many times what they took, something has changed, and the other way is tried at once. */
const CHANGED = 1.5;

/**
 * What is known of calls of one kind and about one length. Times are of a byte, the lesser one of the last two calls of
 * a way.
 */
interface Experience {
  better: Way;
  readonly last: Record<Way, number>;
  readonly time: Record<Way, number>;
  /** The better way's time when the ways were compared last. */
  compared: number;
  /** Calls until the next trial, and from the one before it to that. */
  left: number;
  interval: number;
  /** Calls of a trial that are still to be made; 0 when none is under way. */
  trial: number;
}

/**
 * Finds out which way is faster by taking both. No rule would do: cores that share a cache copy through staging memory in two
 * thirds of the time that the kernel takes to read pages of 4 KiB, and in as much as it takes for huge ones; cores that do
 * not share one take five times as long for staging, and the kernel takes no longer. Programs are moved between cores, and
 * virtual cores between real ones. So one rank of a call times it from the moment when all have come, and now and then
 * has some calls go the other way, which costs less than two percent of the time where that one takes five times as long.
 */
export class Ways {
  readonly #experiences = new Map<number, Experience>();
  #current: Experience | undefined;
  #way: Way = 'staged';
  #bytes = 0;

  /**
   * The way of the call that begins now; of the first ones, `open`.
   *
   * @param call what distinguishes it from calls that take another time: kind, type and operator
   */
  choose(call: number, bytes: number): Way {
    const key = call * 64 + Math.floor(Math.log2(bytes));
    let experience = this.#experiences.get(key);
    if (experience === undefined) this.#experiences.set(key, (experience = inexperienced()));
    this.#current = experience;
    this.#bytes = bytes;
    return (this.#way = experience.trial > 0 ? otherThan(experience.better) : experience.better);
  }

  /** Says what the call took for which a way was chosen last. @param time in any unit */
  took(time: number): void {
    const experience = this.#current;
    if (experience === undefined) return;
    this.#current = undefined;
    const perByte = time / this.#bytes;
    experience.time[this.#way] = Math.min(experience.last[this.#way], perByte);
    experience.last[this.#way] = perByte;
    if (experience.trial === 0) {
      if (--experience.left <= 0 || experience.time[experience.better] > CHANGED * experience.compared)
        experience.trial = TRIAL_CALLS;
    } else if (--experience.trial === 0) compare(experience);
  }
}

function inexperienced(): Experience {
  return {
    better: 'open',
    last: { open: Infinity, staged: Infinity },
    time: { open: Infinity, staged: Infinity },
    compared: Infinity,
    left: FIRST_CALLS,
    interval: FIRST_CALLS,
    trial: 0,
  };
}

/** Ends a trial: the faster way is the better one until the next, which comes soon after a change. */
function compare(experience: Experience): void {
  const other = otherThan(experience.better);
  const changes = experience.time[other] < BETTER * experience.time[experience.better];
  if (changes) experience.better = other;
  experience.interval = changes ? FIRST_CALLS : Math.min(2 * experience.interval, MOST_CALLS);
  experience.left = experience.interval;
  experience.compared = experience.time[experience.better];
}

function otherThan(way: Way): Way {
  return way === 'open' ? 'staged' : 'open';
}
