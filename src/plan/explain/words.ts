import type { Algorithm, Protocol } from '../../tuning/names.js';

/** Numbers and lists as answers write them. */

/** `12.3 us`, `4.56 ms`, `1.2 s`: three digits. */
export function time(us: number): string {
  if (us >= 999_500) return `${three(us / 1e6)} s`;
  return us >= 999.5 ? `${three(us / 1e3)} ms` : `${three(us)} us`;
}

/** `64 KiB`, `1.5 MiB`. */
export function size(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;
  const unit = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log2(bytes) / 10)));
  return `${Number((bytes / 1024 ** unit).toPrecision(4))} ${units[unit] ?? 'B'}`;
}

/** `370.8 GB/s`. */
export function rate(gbps: number): string {
  return `${Number(gbps.toPrecision(4))} GB/s`;
}

/** `Tree LL128`. */
export function wayName(way: { readonly algorithm: Algorithm; readonly protocol: Protocol } | null): string {
  return way === null ? 'nothing' : `${way.algorithm} ${way.protocol}`;
}

/** `1 channel`, `8 channels`. */
export function count(number: number, noun: string, plural = `${noun}s`): string {
  return `${number} ${number === 1 ? noun : plural}`;
}

/** `a`, `a and b`, `a, b and c`. */
export function list(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1) ?? ''}`;
}

/** `15 % more`, `2.3 times as much`. */
export function more(value: number, than: number): string {
  const ratio = value / than;
  return ratio >= 2 ? `${three(ratio)} times as much` : `${three((ratio - 1) * 100)} % more`;
}

function three(value: number): string {
  return String(Number(value.toPrecision(3)));
}
