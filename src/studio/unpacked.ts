/** First character that stands for a word. */
const FIRST_CODE = 0x80;

/** The text of `packedWords` (`scripts/packed-words.mjs`): characters of two bytes are words of the table in the first line. */
export function unpackedWords(packed: string): string {
  const start = packed.indexOf('\n') + 1;
  const words = packed.slice(0, Math.max(0, start - 1)).split(' ');
  const pieces: string[] = [];
  let from = start;
  // A loop takes half the time of replace() with a function.
  for (let index = start; index < packed.length; index++) {
    const word = words[packed.charCodeAt(index) - FIRST_CODE];
    if (word === undefined) continue;
    pieces.push(packed.slice(from, index), word);
    from = index + 1;
  }
  pieces.push(packed.slice(from));
  return pieces.join('');
}
