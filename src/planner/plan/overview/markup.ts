/** Text for between tags or within double quotes. */
export function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

/** Coordinates with at most one digit after the point. */
export function at(value: number): string {
  return String(Number(value.toFixed(1)));
}
