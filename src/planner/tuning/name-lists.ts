import { InvalidUsageError } from '../../errors.js';
import { didYouMean } from '../../suggest.js';
import { defaultRules, type Rules } from '../versions/rules.js';
import { byName, collectives, type Collective } from './names.js';

/** A variable's value of each name for one collective; `unset` if it has none. */
export type Asked<Name extends string> = Readonly<Record<Name, 'on' | 'off' | 'unset'>>;

/**
 * Reads `NCCL_ALGO` and `NCCL_PROTO` with NCCL's whole syntax.
 *
 *     list     entry ; collective : entry ; …        the first entry may stand for all collectives, later ones replace it
 *     entry    name , name , …                       these only
 *              ^ name , name , …                     all but these
 *
 *     ring,tree;allreduce:^ring     Ring or Tree, but for AllReduce all except Ring
 *
 * Case is ignored. Names that an entry does not exclude are `on`, which is stronger than `unset`: `NCCL_PROTO=^LL` uses LL128
 * even where NCCL would not.
 *
 * @throws InvalidUsageError for an unknown name, or a later entry without collective; NCCL then fails to make the communicator
 */
export function readNameList<const Name extends string>(
  variable: string,
  text: string | undefined,
  names: readonly Name[],
  { listsByCollective }: Pick<Rules, 'listsByCollective'> = defaultRules,
): Readonly<Record<Collective, Asked<Name>>> {
  const asked: Record<Collective, Asked<Name>> = byName(collectives, () => byName(names, () => 'unset'));
  if (!listsByCollective && text !== undefined) {
    const value = readKnownNames(text, names);
    return byName(collectives, () => value);
  }
  for (const { text: entry, start } of tokens(text ?? '', ';')) {
    // NCCL ignores text after the second colon.
    const [first, second] = tokens(entry, ':').map((token) => token.text);
    if (first === undefined)
      throw new InvalidUsageError('ENVIRONMENT', `${variable}=${text ?? ''}: an entry has nothing but colons`);
    if (second === undefined && start > 0) {
      throw new InvalidUsageError(
        'ENVIRONMENT',
        `${variable}=${text ?? ''}: only the first entry may leave out the collective; write for example allreduce:${entry}`,
      );
    }
    const value = readEntry(variable, text ?? '', second ?? first, names);
    for (const collective of second === undefined ? collectives : [collectiveNamed(variable, text ?? '', first)])
      asked[collective] = value;
  }
  return asked;
}

/** Collectives for which a list that {@link readNameList} takes names something: `^` alone names nothing. */
export function namedCollectives(variable: string, text: string | undefined): Readonly<Record<Collective, boolean>> {
  const named: Record<Collective, boolean> = byName(collectives, () => false);
  for (const { text: entry } of tokens(text ?? '', ';')) {
    const [first = '', second] = tokens(entry, ':').map((token) => token.text);
    const list = second ?? first;
    if (tokens(list.startsWith('^') ? list.slice(1) : list, ',').length === 0) continue;
    for (const collective of second === undefined ? collectives : [collectiveNamed(variable, text ?? '', first)])
      named[collective] = true;
  }
  return named;
}

/** One list for all collectives in older versions, which ignore unknown names. */
function readKnownNames<const Name extends string>(text: string, names: readonly Name[]): Asked<Name> {
  const except = text.startsWith('^');
  const listed = tokens(except ? text.slice(1) : text, ',').map((word) => word.text.toLowerCase());
  return byName(names, (name) => (listed.includes(name.toLowerCase()) !== except ? 'on' : 'off'));
}

function readEntry<const Name extends string>(
  variable: string,
  text: string,
  entry: string,
  names: readonly Name[],
): Asked<Name> {
  const except = entry.startsWith('^');
  const listed = tokens(except ? entry.slice(1) : entry, ',').map(({ text: word }) => {
    const name = names.find((known) => known.toLowerCase() === word.toLowerCase());
    if (name === undefined) {
      throw new InvalidUsageError(
        'UNKNOWN_NAME',
        `${variable}=${text}: no ${word}${didYouMean(word, names)} (there are ${names.join(', ')})`,
      );
    }
    return name;
  });
  return byName(names, (name) => (listed.includes(name) !== except ? 'on' : 'off'));
}

function collectiveNamed(variable: string, text: string, word: string): Collective {
  const collective = collectives.find((known) => known.toLowerCase() === word.toLowerCase());
  if (collective === undefined) {
    throw new InvalidUsageError(
      'UNKNOWN_NAME',
      `${variable}=${text}: no collective ${word}${didYouMean(word, collectives)} (there are ${collectives.join(', ')})`,
    );
  }
  return collective;
}

/** Words between separators, with their offsets; empty words are left out, as by C's strtok. */
function tokens(text: string, separator: ';' | ':' | ','): { readonly text: string; readonly start: number }[] {
  return [...text.matchAll(new RegExp(`[^${separator}]+`, 'g'))].map((match) => ({ text: match[0], start: match.index }));
}
