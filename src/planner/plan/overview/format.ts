import type { Choice } from '../../tuning/choose.js';
import type { Collective } from '../../tuning/names.js';
import type { PredictedRow } from '../prediction.js';
import type { Forecast } from './forecast.js';
import type { HostOverview } from './overview.js';
import { linkKindNames } from './fullest-link.js';
import { heldBackText } from './ring-use.js';
import { formatGBps } from '../../topology/format.js';

/** Text of names and numbers for the terminal, pages and charts. */

/** `12.3 us`, `4.56 ms`, `1.20 s`: three digits. */
export function formatTime(us: number): string {
  if (us >= 999_500) return `${threeDigits(us / 1e6)} s`;
  return us >= 999.5 ? `${threeDigits(us / 1e3)} ms` : `${threeDigits(us)} us`;
}

/** GB/s in three digits. */
export function formatRate(gbps: number): string {
  return gbps > 0 && gbps < 0.01 ? gbps.toFixed(4) : threeDigits(gbps);
}

function threeDigits(value: number): string {
  return value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

/** `64 KiB`, `1.5 MiB`. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;
  const unit = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log2(bytes) / 10)));
  return `${Number((bytes / 1024 ** unit).toPrecision(4))} ${units[unit] ?? 'B'}`;
}

/** `Tree LL128`, the name of a symmetric kernel, or `copy engines`. */
export function formatWay(way: Pick<Choice, 'algorithm' | 'protocol'> | { readonly kernel: string } | null | undefined): string {
  if (way === null || way === undefined) return 'nothing left';
  return 'kernel' in way ? way.kernel : `${way.algorithm} ${way.protocol}`;
}

/** Name of the algorithm or kernel of a predicted call; undefined for messages between pairs of ranks. */
export function predictedWay({ choice, kernel }: Pick<PredictedRow, 'choice' | 'kernel'>): string | undefined {
  return kernel ?? (choice && formatWay(choice));
}

/** Name of the link that limits the rings of a host. */
export function limitText({
  loads,
  ringGBps,
  searchedGBps,
  heldBackBy,
  rings,
}: Pick<HostOverview, 'loads' | 'ringGBps' | 'searchedGBps' | 'heldBackBy' | 'rings'>): string {
  const [fullest] = loads;
  if (fullest === undefined) return 'nothing: there is one rank';
  const { kind, count, usedGBps, gbps } = fullest;
  const used = { rings: rings.flatMap(({ channels }) => channels), heldBackBy };
  const less = heldBackBy === undefined ? '' : `; its search found ${formatGBps(searchedGBps)} GB/s, but ${heldBackText(used)}`;
  return `${linkKindNames[kind]}: rings take ${formatGBps(usedGBps)} of ${formatGBps(gbps)} GB/s on ${count}, ${formatGBps(ringGBps)} GB/s in all${less}`;
}

/** A sentence that begins with a word of the language, not with a name. */
export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Groups collectives with the same choices and times. */
export function alike(
  forecasts: readonly Forecast[],
): (Forecast & { readonly title: string; readonly names: readonly Collective[] })[] {
  const groups = new Map<string, { readonly forecast: Forecast; readonly names: Collective[] }>();
  for (const forecast of forecasts) {
    const key = JSON.stringify([
      forecast.busFactor,
      forecast.rows.map(({ choice }) => [choice?.algorithm, choice?.protocol, choice?.timeUs]),
    ]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { forecast, names: [forecast.collective] });
    else group.names.push(forecast.collective);
  }
  return [...groups.values()].map(({ forecast, names }) => ({ ...forecast, names, title: names.join(', ') }));
}
