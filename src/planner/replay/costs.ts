import type { Parameters } from '../parameters.js';
import { type Cluster, prepareCluster } from '../plan/cluster.js';
import { applyOverrides, gpuNumbers } from '../plan/overrides.js';
import { predictCall, type PredictedRow, predictMessages, simulatorOf } from '../plan/prediction.js';
import type { PairMessage } from '../schedule/pairs.js';
import type { Environment } from '../simulate/environment.js';
import { fairRates } from '../simulate/fair-share.js';
import type { Simulator } from '../simulate/simulate.js';
import { timelineOf, timelineOfMessages } from '../simulate/timeline.js';
import type { JobCall } from './job-call.js';
import type { CallCosts } from './run.js';

/** The cluster that a job is replayed on. */
export interface ReplayCluster {
  readonly title: string;
  /** Hosts as topology files: groups of some of their GPUs are planned, too. */
  readonly cluster: Cluster;
  readonly parameters: Parameters;
  readonly environment?: Environment;
}

/** A host with its first rank. */
interface Host {
  readonly machine: Cluster['hosts'][number]['machine'];
  readonly kind: number;
  readonly firstRank: number;
  readonly nRanks: number;
}

/** Ranks of a communicator on a host. */
interface Part {
  readonly host: number;
  /** GPUs by their place in the host, ascending. */
  readonly gpus: readonly number[];
}

/** A communicator's cost model; equal ones on other hosts share it. */
interface Group {
  readonly simulator: Simulator;
  readonly parts: readonly Part[];
}

/** A link and the part of its bandwidth that a call uses while it runs alone. */
interface LinkLoad {
  readonly key: string;
  readonly load: number;
}

/** Loads of links are computed on at most this much data; they are the same for more. */
const MOST_LOAD_BYTES = 2 ** 23;
/** The most ranks of a call whose loads are computed: every slice of every rank is executed for them. */
const MOST_LOAD_RANKS = 128;

/** The most ranks of an all-to-all whose parts are simulated one by one; those of more ranks are taken as equally large. */
export const MOST_UNEVEN_RANKS = 128;

/** Costs of a job's calls on a cluster: predicted, or where there is no prediction as they were measured. */
export class ClusterCosts implements CallCosts {
  readonly nRanks: number;
  readonly #of: ReplayCluster;
  readonly #measuredUs: (call: JobCall) => number;
  readonly #hosts: readonly Host[];
  readonly #groups = new Map<string, Group | undefined>();
  readonly #simulators = new Map<string, Simulator>();
  readonly #rows = new Map<string, PredictedRow | undefined>();
  readonly #loads = new Map<string, readonly LinkLoad[]>();

  /**
   * @param measuredUs time of a call that has no prediction
   * @throws InputError, InvalidArgumentError, InvalidUsageError as planning does
   */
  constructor(of: ReplayCluster, measuredUs: (call: JobCall) => number) {
    this.#of = of;
    this.#measuredUs = measuredUs;
    const prepared = prepareCluster(of.cluster, of.parameters);
    const hosts: Host[] = [];
    let firstRank = 0;
    of.cluster.hosts.forEach(({ machine, count }, kind) => {
      const nRanks = prepared[kind]?.host.nRanks ?? 0;
      for (let number = 0; number < count; number++, firstRank += nRanks) hosts.push({ machine, kind, firstRank, nRanks });
    });
    this.#hosts = hosts;
    this.nRanks = firstRank;
  }

  timeUs(call: JobCall): number {
    return this.predicted(call)?.timeUs ?? this.#measuredUs(call);
  }

  /** The prediction of a call; undefined where its kind, size or ranks are unknown, or NCCL has no way for it. */
  predicted(call: JobCall): PredictedRow | undefined {
    const { collective, bytes, type } = call;
    const group = bytes === 0 ? undefined : this.#groupOf(call);
    if (group === undefined) return undefined;
    const messages = messagesIn(call);
    if (messages === undefined && collective === undefined) return undefined;
    const key = `${this.#keyOf(group.parts)} ${messages === undefined ? `${collective ?? ''} ${bytes} ${type ?? ''}` : textOf(messages)}`;
    if (!this.#rows.has(key)) {
      const { environment } = this.#of;
      const given = environment === undefined ? {} : { environment };
      const [row] =
        messages !== undefined
          ? predictMessages(group.simulator, messages, given)
          : collective === undefined
            ? []
            : predictCall(group.simulator, collective, bytes, { ...given, ...(type === undefined ? {} : { dataType: type }) });
      this.#rows.set(key, row);
    }
    return this.#rows.get(key);
  }

  /** Max-min fair speeds: calls slow each other down where together they would use more than a link has. */
  speeds(running: readonly JobCall[]): Float64Array {
    const loads = running.map((call) => this.#loadsOf(call));
    const numbers = new Map<string, number>();
    const sums: number[] = [];
    for (const all of loads)
      for (const { key, load } of all) {
        let number = numbers.get(key);
        if (number === undefined) numbers.set(key, (number = sums.push(0) - 1));
        sums[number] = (sums[number] ?? 0) + load;
      }
    const most = new Float64Array(running.length).fill(1);
    if (!sums.some((sum) => sum > 1)) return most;
    const first = new Int32Array(running.length + 1);
    loads.forEach((all, place) => (first[place + 1] = (first[place] ?? 0) + all.length));
    const uses = loads.flat();
    const link = Int32Array.from(uses, ({ key }) => numbers.get(key) ?? 0);
    const weight = Float64Array.from(uses, ({ load }) => load);
    return fairRates({ first, link, weight, most }, new Float64Array(sums.length).fill(1));
  }

  #loadsOf(call: JobCall): readonly LinkLoad[] {
    const row = this.predicted(call);
    const group = this.#groupOf(call);
    const { collective, bytes } = call;
    if (row === undefined || group === undefined || call.size > MOST_LOAD_RANKS) return [];
    const messages = messagesIn(call);
    const what = messages === undefined ? `${collective ?? ''} ${bytes}` : textOf(messages);
    const key = `${group.parts.map(({ host, gpus }) => `${host}: ${gpus.join()}`).join(' ')} ${what}`;
    let loads = this.#loads.get(key);
    if (loads === undefined) {
      const part = Math.min(bytes, MOST_LOAD_BYTES);
      const { environment } = this.#of;
      const given = environment === undefined ? {} : { environment };
      const timeline =
        messages !== undefined
          ? timelineOfMessages(group.simulator, scaled(messages, part / bytes), given)
          : collective === undefined
            ? undefined
            : timelineOf(group.simulator, collective, part, {
                ...given,
                ...(row.choice === undefined ? {} : { choice: row.choice }),
              });
      loads = (timeline?.links ?? []).map(({ node, name, load, meanLoad }) => ({
        key: `${group.parts[node]?.host ?? -1 - node} ${name}`,
        load: Math.min(1, (meanLoad * load.length * (timeline?.stepUs ?? 0) * (bytes / part)) / row.timeUs),
      }));
      this.#loads.set(key, loads);
    }
    return loads;
  }

  #groupOf({ group, members }: JobCall): Group | undefined {
    if (members === undefined) return undefined;
    if (!this.#groups.has(group)) this.#groups.set(group, this.#makeGroup(members));
    return this.#groups.get(group);
  }

  #makeGroup(members: readonly number[]): Group | undefined {
    const parts = this.#hosts.flatMap(({ firstRank, nRanks }, host): Part[] => {
      const gpus = members.filter((rank) => rank >= firstRank && rank < firstRank + nRanks).map((rank) => rank - firstRank);
      return gpus.length === 0 ? [] : [{ host, gpus: gpus.sort((a, b) => a - b) }];
    });
    const found = parts.reduce((sum, { gpus }) => sum + gpus.length, 0);
    const hosts = parts.map((part) => this.#machineOf(part));
    if (found !== members.length || found < 2 || hosts.includes(undefined)) return undefined;
    const key = this.#keyOf(parts);
    let simulator = this.#simulators.get(key);
    if (simulator === undefined) {
      const { parameters } = this.#of;
      const cluster = { hosts: hosts.flatMap((machine) => (machine === undefined ? [] : [{ machine, count: 1 }])) };
      simulator = simulatorOf(prepareCluster(withRuns(cluster), parameters), parameters);
      this.#simulators.set(key, simulator);
    }
    return { simulator, parts };
  }

  /** The host with the GPUs of a communicator. */
  #machineOf({ host, gpus }: Part): Host['machine'] | undefined {
    const known = this.#hosts[host];
    if (known === undefined || known.nRanks === gpus.length) return known?.machine;
    if (!('attributes' in known.machine)) return undefined;
    const key = `${known.kind} ${gpus.join()}`;
    let machine = this.#cut.get(key);
    if (machine === undefined) {
      const numbers = gpuNumbers(known.machine);
      machine = applyOverrides(known.machine, { gpus: gpus.map((gpu) => numbers[gpu] ?? gpu) });
      this.#cut.set(key, machine);
    }
    return machine;
  }

  readonly #cut = new Map<string, Host['machine']>();

  #keyOf(parts: readonly Part[]): string {
    return parts.map(({ host, gpus }) => `${this.#hosts[host]?.kind ?? -1}: ${gpus.join()}`).join(' ');
  }
}

/** The messages of a call by the places of its ranks in the communicator; undefined of collectives whose parts are alike. */
function messagesIn({ messages, members = [], size, collective }: JobCall): readonly PairMessage[] | undefined {
  if (messages === undefined || (collective !== undefined && size > MOST_UNEVEN_RANKS)) return undefined;
  const places = new Map([...members].sort((a, b) => a - b).map((rank, place) => [rank, place]));
  const placed = messages.map(({ from, to, bytes }) => ({ from: places.get(from) ?? -1, to: places.get(to) ?? -1, bytes }));
  return placed.some(({ from, to }) => from < 0 || to < 0) ? undefined : placed;
}

function scaled(messages: readonly PairMessage[], share: number): PairMessage[] {
  return messages.map((message) => ({ ...message, bytes: Math.ceil(message.bytes * share) }));
}

function textOf(messages: readonly PairMessage[]): string {
  return messages.map(({ from, to, bytes }) => `${from}>${to}:${bytes}`).join(' ');
}

/** Equal hosts in sequence as one entry with a count, which planning folds. */
function withRuns({ hosts }: Cluster): Cluster {
  const runs: { machine: Cluster['hosts'][number]['machine']; count: number }[] = [];
  for (const { machine, count } of hosts) {
    const last = runs.at(-1);
    if (last?.machine === machine) last.count += count;
    else runs.push({ machine, count });
  }
  return { hosts: runs };
}
