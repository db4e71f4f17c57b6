import { InvalidArgumentError } from 'commander';

const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Milliseconds of `500ms`, `5s`, `5`, `2m` or `1h`. */
export function duration(text: string): number {
  const [, number, unit = 's'] = /^(\d+(?:\.\d+)?) ?(ms|s|m|h)?$/.exec(text) ?? [];
  const ms = Number(number) * (units[unit] ?? 1000);
  if (number === undefined || ms <= 0) throw new InvalidArgumentError('expected a time: 500ms, 5s, 2m or 1h');
  return ms;
}

/** As {@link duration}, for reports that ask all processes of a job. */
export function atLeastOneSecond(text: string): number {
  const ms = duration(text);
  if (ms < 1000) throw new InvalidArgumentError('at least 1s: every report asks all processes of the job');
  return ms;
}

/** `40 s`, `3 min 20 s`, `2 h 5 min`. */
export function seconds(ms: number): string {
  const total = Math.round(ms / 1000);
  if (total < 60) return `${total} s`;
  const [hours, minutes] = [Math.floor(total / 3600), Math.floor(total / 60) % 60];
  if (hours > 0) return `${hours} h ${minutes} min`;
  return `${minutes} min ${total % 60} s`;
}
