import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError } from '../../errors.js';

type Parameter = 'operator' | 'root' | 'options' | 'none of these';

/** Parameters of calls in their order; an output in brackets may be left out. */
const forms: Readonly<Record<string, string>> = {
  allReduce: 'input [output] operator options',
  reduce: 'input [output] operator root options',
  reduceScatter: 'input output operator options',
  scan: 'input [output] operator options',
  exscan: 'input [output] operator options',
  broadcast: 'input [output] root options',
  gather: 'input output root options',
  scatter: 'input output root options',
  allGather: 'input output options',
  allToAll: 'input [output] options',
};

/** The same of calls that combine a number. */
const formsOfNumbers: typeof forms = {
  allReduce: 'number operator options',
  reduce: 'number operator root options',
  scan: 'number operator options',
  exscan: 'number operator options',
};

/**
 * The error for a value that belongs in another place of a call, as in `allReduce(x, 'max')`; undefined if none is known.
 * @param place of the value among the call's parameters
 * @param ofNumber true for a call that combines a number
 */
export function misplaced(call: string, value: unknown, place: number, ofNumber = false): InvalidArgumentError | undefined {
  const parameters = ((ofNumber ? formsOfNumbers : forms)[call.replace(/Sync$/, '')] ?? '').split(' ');
  const { parameter, text } = meant(value);
  const right = parameters.indexOf(parameter);
  const isWrong = right >= 0 && (right !== place || text !== literal(value));
  if (!isWrong) return undefined;
  const before = parameters.slice(0, right).map((name, i) => (i === 0 ? 'x' : name === 'output' ? 'output' : 'undefined'));
  const what = (parameters[place] ?? 'options').replace(/[[\]]/g, '');
  return new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `${call}: ${literal(value)} is where the ${what} belongs; pass the ${parameter} so: ${call}(${[...before, text].join(', ')})`,
  );
}

/** Throws for a call without its output, and as {@link checkOutputPlace}. */
export function checkOutputGiven(call: string, value: unknown): void {
  if (value === undefined) {
    throw new InvalidArgumentError('ARGUMENT_TYPE', `${call}: there is no output; pass an array for it after the input`);
  }
  checkOutputPlace(call, value);
}

/** Throws for an output that is no array but belongs in another place. */
export function checkOutputPlace(call: string, value: unknown): void {
  if (value === null || ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return;
  const error = misplaced(call, value, 1);
  if (error !== undefined) throw error;
}

/** The parameter that a value was probably meant for, with the value's text there. */
function meant(value: unknown): { readonly parameter: Parameter; readonly text: string } {
  if (typeof value === 'string') return { parameter: 'operator', text: literal(value) };
  if (typeof value === 'function') return { parameter: 'operator', text: literal(value) };
  if (typeof value === 'number') return { parameter: 'root', text: literal(value) };
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { parameter: 'none of these', text: '' };
  const named = value as Record<string, unknown>;
  const operator = named['op'] ?? named['operator'];
  if (operator !== undefined) return { parameter: 'operator', text: literal(operator) };
  if (typeof named['root'] === 'number') return { parameter: 'root', text: literal(named['root']) };
  if ('premulSum' in named || 'combine' in named) return { parameter: 'operator', text: literal(value) };
  const isOptions = typeof named['type'] === 'string' || 'signal' in named || 'timeoutMs' in named;
  return isOptions ? { parameter: 'options', text: literal(value) } : { parameter: 'none of these', text: '' };
}

/** Source text of a value. */
function literal(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`;
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return /^[\w$]{1,40}$/.test(value.name) ? value.name : '(a, b) => …';
  if (typeof value !== 'object' || value === null) return String(value);
  const fields = Object.entries(value);
  if (Object.getPrototypeOf(value) !== Object.prototype || fields.length > 3) return describeValue(value);
  return `{ ${fields.map(([name, field]) => `${name}: ${literal(field)}`).join(', ')} }`;
}
