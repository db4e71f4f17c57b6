/**
 * The text of UTF-8 bytes; invalid bytes become U+FFFD. The planner uses no TextDecoder, because it also runs outside of Node and
 * browsers.
 */
export function utf8Text(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length;) {
    const first = bytes[at++] ?? 0;
    const more = first < 0x80 ? 0 : first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : -1;
    let code = more === 0 ? first : more < 0 ? -1 : first & (0x3f >> more);
    for (let left = more; left > 0; left--) {
      const next = bytes[at] ?? 0;
      if ((next & 0xc0) !== 0x80) {
        code = -1;
        break;
      }
      code = code * 64 + (next & 0x3f);
      at++;
    }
    text += code < 0 || code > 0x10ffff ? '\ufffd' : String.fromCodePoint(code);
  }
  return text;
}
