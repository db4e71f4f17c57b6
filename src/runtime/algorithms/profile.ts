import { readFileSync } from '#platform/files';
import { cpus, homedir } from '#platform/system';
import { join } from '#platform/paths';
import { algorithms, type Algorithm, type CallKind } from './call.js';
import { callKinds } from '../device/kernels/kernels.js';
import { describeError, InputError, SystemError } from '../../errors.js';
import { value, type Environment } from '../launch/environment.js';
import { algorithmFor, type AlgorithmRange, type AlgorithmTable } from './choose-algorithm.js';

/** Measured times of one algorithm: pairs of bytes and microseconds of a call of that size, ascending in bytes. */
type Points = readonly (readonly [bytes: number, us: number])[];

/** Times of each algorithm for each kind of call, for one number of ranks. */
export type Times = Readonly<Partial<Record<CallKind, Readonly<Partial<Record<Algorithm, Points>>>>>>;

/**
 * Speed of the algorithms on a host, as measured by `tccl tune`. Bytes are the count of a call times the size of its
 * elements, as in the choice of an algorithm: for all-gather, a rank's own block.
 */
export interface Profile {
  readonly format: 'tccl profile';
  readonly formatVersion: 1;
  /** Measured machine: {@link machineName}. */
  readonly machine: string;
  /** Number of cores that the ranks could use. */
  readonly cores: number;
  /** By the number of ranks. */
  readonly times: Readonly<Record<string, Times>>;
}

/** An algorithm replaces the default one only if its time is below this share; smaller differences are noise. */
const WORTHWHILE = 0.95;

/** Name of a machine in profiles: profiles are shared by machines with the same name. */
export function machineName(): string {
  const all = cpus();
  return `${all[0]?.model.trim() ?? 'unknown processor'}, ${all.length} cores`;
}

/** Value of TCCL_PROFILE for no profile. */
export const NO_PROFILE = 'none';

/** Default file for `tccl tune` and init(), unless TCCL_PROFILE names another one. */
export function profilePath(env: Environment): string {
  return namedProfile(env) ?? join(env['XDG_CONFIG_HOME'] ?? join(homedir(), '.config'), 'tccl', 'profile.json');
}

function namedProfile(env: Environment): string | undefined {
  const name = value(env, 'TCCL_PROFILE');
  return name === NO_PROFILE ? undefined : name;
}

/**
 * The profile of this host, or undefined if there is none or none is wanted.
 *
 * @throws SystemError `FILE` when the file named by TCCL_PROFILE cannot be read; InputError `CONTENT` when it is not a
 *   profile
 */
export function readProfile(env: Environment): Profile | undefined {
  if (value(env, 'TCCL_PROFILE') === NO_PROFILE) return undefined;
  const path = profilePath(env);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    if (value(env, 'TCCL_PROFILE') === undefined) return undefined;
    throw new SystemError('FILE', `the profile that TCCL_PROFILE names cannot be read: ${describeError(cause)}`, {
      file: path,
      cause,
    });
  }
  try {
    return checked(JSON.parse(text));
  } catch (cause) {
    throw new InputError(
      'CONTENT',
      `this is not a profile that this version can read (${(cause as Error).message}); make a new one with tccl tune`,
      { file: path, cause },
    );
  }
}

/**
 * The profile for init(), and a doubt to report to the user. A profile in the default place may come from another machine
 * with the same home directory: then it is not used. A profile named by TCCL_PROFILE is used in any case.
 *
 * @throws as readProfile()
 */
export function profileFor(
  env: Environment,
  machine = machineName(),
): { readonly profile: Profile | undefined; readonly doubt?: string } {
  const profile = readProfile(env);
  if (profile === undefined || profile.machine === machine) return { profile };
  const taken = value(env, 'TCCL_PROFILE') !== undefined;
  return {
    profile: taken ? profile : undefined,
    doubt: `the profile ${profilePath(env)} was measured on another machine (${profile.machine}; this is ${machine}) and is ${taken ? 'used nevertheless' : 'not used'}: tccl tune measures this one`,
  };
}

function checked(json: unknown): Profile {
  const profile = json as Partial<Profile> | null;
  if (profile?.format !== 'tccl profile' || profile.formatVersion !== 1)
    throw new Error('it does not begin with "format": "tccl profile", "formatVersion": 1');
  if (!isRecord(profile.times) || typeof profile.cores !== 'number' || typeof profile.machine !== 'string')
    throw new Error('machine, cores or times are missing');
  for (const [ranks, times] of Object.entries<unknown>(profile.times)) {
    if (!(Number.isInteger(Number(ranks)) && Number(ranks) > 0)) throw new Error(`times.${ranks} is not a number of ranks`);
    for (const [kind, byAlgorithm] of entries(times, `times.${ranks}`)) {
      if (!Object.hasOwn(callKinds, kind)) throw new Error(`${kind} is not a collective`);
      for (const [algorithm, points] of entries(byAlgorithm, `times.${ranks}.${kind}`)) {
        if (!(algorithms as readonly string[]).includes(algorithm)) throw new Error(`${algorithm} is not an algorithm`);
        if (!arePoints(points)) throw new Error(`times.${ranks}.${kind}.${algorithm} is not a list of [bytes, µs] that ascends`);
      }
    }
  }
  return profile as Profile;
}

function isRecord(json: unknown): json is Record<string, unknown> {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

function entries(json: unknown, where: string): [string, unknown][] {
  if (!isRecord(json)) throw new Error(`${where} is not an object`);
  return Object.entries(json);
}

function arePoints(json: unknown): json is Points {
  if (!Array.isArray(json) || json.length === 0) return false;
  let before = -1;
  return json.every((point: unknown) => {
    const [bytes, us] = (Array.isArray(point) ? point : []) as unknown[];
    if (typeof bytes !== 'number' || typeof us !== 'number' || bytes <= before || !(us > 0)) return false;
    before = bytes;
    return true;
  });
}

/**
 * The times for a number of ranks: those of the most similar number that was measured. Measurements with a core for each rank
 * are not valid for ranks that outnumber the cores, and vice versa.
 */
export function timesFor(profile: Profile, nRanks: number, nCores: number): Times | undefined {
  const distance = (measured: number): number => Math.abs(Math.log2(measured / nRanks));
  const [nearest] = Object.keys(profile.times)
    .map(Number)
    .filter((measured) => measured > profile.cores === nRanks > nCores)
    .sort((a, b) => distance(a) - distance(b));
  return nearest === undefined ? undefined : profile.times[nearest];
}

/**
 * Time of a call of `bytes` bytes, µs: interpolated between measured sizes in logarithms, extrapolated with the bandwidth
 * beyond them.
 */
export function timeAt(points: Points, bytes: number): number {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined) return Infinity;
  if (bytes <= first[0]) return first[1];
  if (bytes >= last[0]) return (last[1] * bytes) / last[0];
  const above = points.findIndex(([size]) => size >= bytes);
  const [[b0, t0], [b1, t1]] = [points[above - 1] ?? first, points[above] ?? last];
  return t0 * (t1 / t0) ** (Math.log(bytes / b0) / Math.log(b1 / b0));
}

/**
 * The table of algorithms by a profile: the default table, except where another algorithm was measured to be faster.
 *
 * @param usual table without a profile
 * @param isAllowed returns true if these ranks can use an algorithm for a kind
 */
export function tableOf(
  times: Times,
  usual: AlgorithmTable,
  isAllowed: (algorithm: Algorithm, kind: CallKind) => boolean,
): AlgorithmTable {
  const ofKind = (kind: CallKind, ranges: readonly AlgorithmRange[]): readonly AlgorithmRange[] => {
    const measured = Object.entries(times[kind] ?? {}) as [Algorithm, Points][];
    const candidates = measured.filter(([algorithm]) => isAllowed(algorithm, kind));
    const sizes = [...new Set(candidates.flatMap(([, points]) => points.map(([bytes]) => bytes)))].sort((a, b) => a - b);
    const chosen = sizes.map((bytes) => {
      const usually = algorithmFor(ranges, bytes);
      const timeOf = (algorithm: Algorithm): number => timeAt(candidates.find(([name]) => name === algorithm)?.[1] ?? [], bytes);
      const [best] = candidates.map(([algorithm]) => algorithm).sort((a, b) => timeOf(a) - timeOf(b));
      return best !== undefined && timeOf(best) < WORTHWHILE * timeOf(usually) ? best : usually;
    });
    const made = chosen.flatMap((algorithm, i): AlgorithmRange[] => {
      const next = sizes[i + 1];
      if (next !== undefined && chosen[i + 1] === algorithm) return [];
      // Between two measured sizes, the change is in the middle of their logarithms.
      return [{ algorithm, upToBytes: next === undefined ? Infinity : Math.floor(Math.sqrt(Math.max(1, sizes[i] ?? 1) * next)) }];
    });
    return made.at(-1)?.upToBytes === Infinity ? made : ranges;
  };
  return Object.fromEntries(
    Object.entries(usual).map(([kind, ranges]) => [kind, ofKind(kind as CallKind, ranges)]),
  ) as unknown as AlgorithmTable;
}
