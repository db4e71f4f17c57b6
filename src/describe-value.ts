/**
 * Describes a wrong value in a message: `"3"`, `3n`, `-1`, `null`, `a function`, `an object of
 * class Map`.
 */
export function describeValue(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value);
    case 'bigint':
      return `${value}n`;
    case 'function':
    case 'symbol':
      return `a ${typeof value}`;
    case 'object':
      return value === null
        ? 'null'
        : `an object of class ${(value.constructor as { name: string } | undefined)?.name ?? 'none'}`;
    default:
      return String(value);
  }
}

/** The beginning of a quoted text: it may be long, or a damaged unique id, whose end is secret. */
export function describeText(text: string): string {
  return JSON.stringify(text.length <= 40 ? text : `${text.slice(0, 37)}…`);
}
