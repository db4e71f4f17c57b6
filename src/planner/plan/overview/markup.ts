/** Coordinates with at most one digit after the point. */
export function at(value: number): string {
  return String(Number(value.toFixed(1)));
}
