import { InputError } from '../../../errors.js';
import { isWholeInteger, parseBigInteger, parseFloat32 } from '../c-numbers.js';
import { describeElement, type XmlElement } from '../xml/tree.js';

/**
 * Reading of attributes as NCCL reads them: a missing one that it needs is an error, a number is what `strtol` makes of
 * the text, cut to 32 bits. (`validateTopology` refuses numbers that make no sense; here they count as they do in NCCL.)
 */

/** NCCL's `ncclInternalError`, which it returns for everything that it misses in an XML. */
const NCCL_INTERNAL_ERROR = 3;

/** An error about an element, with its place. */
export function elementError(element: XmlElement, problem: string, code: 'CONTENT' | 'TOO_LARGE' = 'CONTENT'): InputError {
  const place = element.line > 0 ? { line: element.line, column: element.column } : {};
  return new InputError(code, `${describeElement(element)}: ${problem}`, { ...place, ncclResult: NCCL_INTERNAL_ERROR });
}

/** The attribute's text, which must be there. */
export function requiredText(element: XmlElement, name: string): string {
  const text = element.attributes.get(name);
  if (text === undefined) {
    throw elementError(element, `attribute ${name} is missing, and NCCL needs it; add it, or leave the element out`);
  }
  return text;
}

/** The attribute as an integer of 32 bits, which must be there. */
export function requiredInteger(element: XmlElement, name: string): number {
  return toInteger(requiredText(element, name));
}

/** The attribute as an integer of 32 bits, or `fallback` where it is not there. */
export function integerOr(element: XmlElement, name: string, fallback: number): number {
  const text = element.attributes.get(name);
  return text === undefined ? fallback : toInteger(text);
}

/** The attribute as a C float, or 0 where it is not there. */
export function floatOrZero(element: XmlElement, name: string): number {
  const text = element.attributes.get(name);
  return text === undefined ? 0 : parseFloat32(text);
}

function toInteger(text: string): number {
  // Nearly all are short and decimal.
  if (/^(0|[1-9][0-9]{0,8})$/.test(text)) return Number(text);
  const value = parseBigInteger(text, 0);
  const saturated = value > maxLong ? maxLong : value < -maxLong ? -maxLong - 1n : value;
  return Number(BigInt.asIntN(32, saturated));
}

/** Index where `strtol` stops. */
const maxLong = 2n ** 63n - 1n;

/** True where the text of an integer attribute is there and holds more, or less, than an integer. */
export function isDoubtfulInteger(element: XmlElement, name: string): boolean {
  const text = element.attributes.get(name);
  return text !== undefined && text !== '' && !isWholeInteger(text);
}

/**
 * A bus id as a number: its hexadecimal digits without colons and dots, up to 16 of them, up to the first other
 * character.
 */
export function busIdNumber(text: string): bigint {
  let digits = '';
  for (const character of text) {
    if (character === ':' || character === '.') continue;
    if (!/[0-9a-fA-F]/.test(character) || digits.length === 16) break;
    digits += character;
  }
  const value = digits === '' ? 0n : BigInt(`0x${digits}`);
  return value > maxLong ? maxLong : value;
}

/** The value of the first key that begins the text, or `fallback`: how NCCL looks up every name in an XML. */
export function lookUp<Value>(text: string, dictionary: readonly (readonly [string, Value])[], fallback: Value): Value {
  return dictionary.find(([key]) => text.startsWith(key))?.[1] ?? fallback;
}
