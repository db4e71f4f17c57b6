import { describeValue } from './describe-value.js';
import { InvalidArgumentError } from './errors.js';
import { didYouMean } from './suggest.js';

/**
 * Refuses options that do not exist: a misspelt one would be without effect.
 *
 * @param call the call with the options
 * @param example of valid options
 * @throws InvalidArgumentError `ARGUMENT_TYPE`, `UNKNOWN_NAME`
 */
export function checkOptionNames(call: string, options: unknown, names: readonly string[], example: string): void {
  if (typeof options !== 'object' || options === null) {
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `${call}: its options are an object, as in ${example}, not ${describeValue(options)}`,
    );
  }
  // Unlike Object.keys() makes no array: messages check their options each time.
  for (const name in options) {
    if (names.includes(name)) continue;
    const all = `there ${names.length === 1 ? 'is' : 'are'} ${names.join(', ')}`;
    throw new InvalidArgumentError(
      'UNKNOWN_NAME',
      `${call}: there is no option ${JSON.stringify(name)}${didYouMean(name, names)}; ${all}`,
    );
  }
}
