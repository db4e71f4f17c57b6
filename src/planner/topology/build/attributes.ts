import { InputError } from '../../../errors.js';
import { isWholeInteger, parseBigInteger, parseFloat32 } from '../c-numbers.js';
import { describeElement, type XmlElement } from '../xml/tree.js';

/**
 * Reads attributes as NCCL does: a required one that is missing is an error; numbers are those of `strtol`, cut to 32 bits.
 * (`validateTopology` refuses numbers that make no sense.)
 */

/** NCCL's `ncclInternalError`, which it returns for everything missing in an XML. */
const NCCL_INTERNAL_ERROR = 3;

/** An error about an element, with its place. */
export function elementError(element: XmlElement, problem: string, code: 'CONTENT' | 'TOO_LARGE' = 'CONTENT'): InputError {
  const place = element.line > 0 ? { line: element.line, column: element.column } : {};
  return new InputError(code, `${describeElement(element)}: ${problem}`, { ...place, ncclResult: NCCL_INTERNAL_ERROR });
}

/** The text of a required attribute. */
export function requiredText(element: XmlElement, name: string): string {
  const text = element.attributes.get(name);
  if (text === undefined) {
    throw elementError(element, `attribute ${name} is missing, and NCCL needs it; add it, or leave the element out`);
  }
  return text;
}

/** A required attribute as an integer of 32 bits. */
export function requiredInteger(element: XmlElement, name: string): number {
  return toInteger(requiredText(element, name));
}

/** The attribute as an integer of 32 bits, or `fallback` if it is missing. */
export function integerOr(element: XmlElement, name: string, fallback: number): number {
  const text = element.attributes.get(name);
  return text === undefined ? fallback : toInteger(text);
}

/** The attribute as a C float, or 0 if it is missing. */
export function floatOrZero(element: XmlElement, name: string): number {
  const text = element.attributes.get(name);
  return text === undefined ? 0 : parseFloat32(text);
}

function toInteger(text: string): number {
  // The usual case: short and decimal.
  if (/^(0|[1-9][0-9]{0,8})$/.test(text)) return Number(text);
  const value = parseBigInteger(text, 0);
  const saturated = value > maxLong ? maxLong : value < -maxLong ? -maxLong - 1n : value;
  return Number(BigInt.asIntN(32, saturated));
}

/** Index where `strtol` stops. */
const maxLong = 2n ** 63n - 1n;

/** True if an integer attribute has a text that is not exactly an integer. */
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

/** The value of the first key that begins the text, or `fallback`: NCCL's lookup of every name in an XML. */
export function lookUp<Value>(text: string, dictionary: readonly (readonly [string, Value])[], fallback: Value): Value {
  return dictionary.find(([key]) => text.startsWith(key))?.[1] ?? fallback;
}
