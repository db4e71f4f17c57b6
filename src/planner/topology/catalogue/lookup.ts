import { InvalidArgumentError } from '../../../errors.js';
import { didYouMean } from '../../../suggest.js';

/** An entry of the catalogue. */
interface Named {
  readonly id: string;
  readonly name: string;
  readonly aliases: readonly string[];
}

/**
 * The entry for a user's `word`: its id, name or an alias; case, spaces, - and _ make no difference.
 *
 * @throws InvalidArgumentError `UNKNOWN_NAME`, with the nearest name.
 */
export function lookUpModel<Entry extends Named>(word: string, entries: readonly Entry[], kind: string): Entry {
  const found = findModel(word, entries);
  if (found !== undefined) return found;
  const ids = entries.map(({ id }) => id);
  throw new InvalidArgumentError(
    'UNKNOWN_NAME',
    `no ${kind} is called ${JSON.stringify(word)}${didYouMean(
      word,
      entries.flatMap(({ id, name, aliases }) => [id, name, ...aliases]),
    )}; there are ${ids.join(', ')}`,
  );
}

/** The same, or undefined. */
export function findModel<Entry extends Named>(word: string, entries: readonly Entry[]): Entry | undefined {
  const wanted = normal(word);
  return entries.find(({ id, name, aliases }) => [id, name, ...aliases].some((spelling) => normal(spelling) === wanted));
}

function normal(word: string): string {
  return word.toLowerCase().replaceAll(/[\s_-]/g, '');
}
