/** A copy of a part of a larger text: a slice would keep all of the larger one in memory. */
export function ownText(text: string): string {
  return ` ${text}`.slice(1);
}
