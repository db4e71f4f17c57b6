/** Most bytes of a value beside its long typed arrays: V8 needs as much again while it encodes or decodes one. */
export const BODY_LIMIT = 2 ** 30;

/** `1,024 bytes`, `64 KiB`, `1 GiB`. */
export function bytesText(bytes: number): string {
  for (const [name, unit] of [
    ['GiB', 2 ** 30],
    ['MiB', 2 ** 20],
    ['KiB', 2 ** 10],
  ] as const)
    if (bytes >= unit && bytes % unit === 0) return `${bytes / unit} ${name}`;
  return `${bytes.toLocaleString('en')} bytes`;
}
