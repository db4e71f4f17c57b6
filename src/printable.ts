/**
 * Characters that control a terminal, an editor or a browser: C0 and C1 controls, format characters such as bidi overrides, line
 * separators, lone surrogates. Joiners (U+200C, U+200D) belong to the spelling of words.
 */
const unprintable = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** One line of text whose unprintable characters are shown as `\x1b`, `\u202e` or `\n`: names in files may hold any. */
export function printable(line: string): string {
  return line.replace(unprintable, shown);
}

const short: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function shown(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  return (
    short[character] ??
    (code <= 0xff ? `\\x${hex.padStart(2, '0')}` : code <= 0xffff ? `\\u${hex.padStart(4, '0')}` : `\\u{${hex}}`)
  );
}

/** JSON of one value with these characters escaped, safe on a terminal. */
export function printableJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replace(unprintable, (character) =>
    character === '\n'
      ? character // between the lines; JSON.stringify escapes those within texts
      : Array.from(
          { length: character.length },
          (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
        ).join(''),
  );
}
