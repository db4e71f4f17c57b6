import fc from 'fast-check';

const SURROGATES = { from: 0xd800, count: 0x800 };

/**
 * Any character of Unicode, as the unit of `fc.string`. The library's own `binary` is the same, but makes a table of a million
 * characters to see which texts it can shorten.
 */
export const anyCharacter: fc.Arbitrary<string> = fc.integer({ min: 0, max: 0x10ffff - SURROGATES.count }).map(
  (number) => String.fromCodePoint(number < SURROGATES.from ? number : number + SURROGATES.count),
  (character) => {
    const code = typeof character === 'string' ? character.codePointAt(0) : undefined;
    if (code === undefined || character !== String.fromCodePoint(code)) throw new TypeError('not one character');
    return code < SURROGATES.from ? code : code - SURROGATES.count;
  },
);
