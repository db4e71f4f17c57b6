/** What a message says of a value that should have been another: `"3"`, `3n`, `-1`, `null`, `a function`, `an object of class Map`. */
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
      return value === null ? 'null' : `an object of class ${(value.constructor as { name: string } | undefined)?.name ?? 'none'}`;
    default:
      return String(value);
  }
}
