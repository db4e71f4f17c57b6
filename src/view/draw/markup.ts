import { printable } from '../../printable.js';

/**
 * Escapes text for content or double-quoted attributes. XML has no control characters, not even escaped: they are shown as
 * `\\x1b`.
 */
export function escape(text: string): string {
  return printable(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
