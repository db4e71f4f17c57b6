/** Way in which data outside the segment reach the other rank: it reads them in place, or they are copied to staging memory. */
export type Way = 'open' | 'staged';

/** Number of calls by the better way before the other one is tried again: at first, and at most. */
const FIRST_CALLS = 8;
const MOST_CALLS = 1024;
/** Number of calls of a trial: in its first two, the two halves of staging memory are not in the caches. */
const TRIAL_CALLS = 4;
/** Largest ratio of the other way's time to the present one's for a change, so that noise does not change the way. */
const BETTER = 0.95;
/** If calls take this many times longer than before, conditions have changed, and the other way is tried immediately. */
const CHANGED = 1.5;

/**
 * Measurements of one kind of call and one range of lengths. Times are for one byte, the shorter of the last two calls of a way.
 */
interface Experience {
  better: Way;
  readonly last: Record<Way, number>;
  readonly time: Record<Way, number>;
  /** Time of the better way when the ways were last compared. */
  compared: number;
  /** Calls until the next trial, and between the last trial and that one. */
  left: number;
  interval: number;
  /** Remaining calls of the current trial; 0 without one. */
  trial: number;
}

/**
 * Finds the faster way by measuring both, because it depends on the caches that the cores share (docs/notes/transports.md) and
 * programs move between cores. One rank of a call measures its time from the moment when all have arrived, and tries the other
 * way now and then: less than two percent of the time.
 */
export class Ways {
  readonly #experiences = new Map<number, Experience>();
  #current: Experience | undefined;
  #way: Way = 'staged';
  #bytes = 0;

  /**
   * The way of the call that begins now; for the first ones, `open`.
   *
   * @param call the properties that affect the time: kind, type and operator
   */
  choose(call: number, bytes: number): Way {
    const key = call * 64 + Math.floor(Math.log2(bytes));
    let experience = this.#experiences.get(key);
    if (experience === undefined) this.#experiences.set(key, (experience = inexperienced()));
    this.#current = experience;
    this.#bytes = bytes;
    return (this.#way = experience.trial > 0 ? otherThan(experience.better) : experience.better);
  }

  /** Records the time of the call for which a way was chosen last. @param time in any unit */
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

/** Ends a trial: the faster way stays until the next trial, which comes soon after a change. */
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
