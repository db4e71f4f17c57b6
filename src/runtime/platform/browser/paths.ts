export const join = (...parts: readonly string[]): string => parts.join('/');
