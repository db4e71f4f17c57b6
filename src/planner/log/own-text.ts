/** A copy of a text that was cut out of a larger one: what is cut out keeps all of the larger one in memory. */
export function ownText(text: string): string {
  return ` ${text}`.slice(1);
}
