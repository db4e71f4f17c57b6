import { InputError } from '../../src/errors.js';
import { parametersFromEnvironment } from '../../src/planner/parameters.js';
import type { ScheduledCollective } from '../../src/planner/schedule/schedule.js';
import { defaultEnvironment, type Environment, type Network } from '../../src/planner/simulate/environment.js';
import { H100_BOARD, h100Board, L40S_BOX, l40sBox, l40sEnvironment } from './boxes.js';
import type { Measurement } from './fit-physics.js';
import { machine } from '../../src/planner/topology/catalogue/machines.js';
import type { XmlElement } from '../../src/planner/topology/xml/tree.js';
import { busFactor, choose } from '../../src/planner/tuning/choose.js';
import { generationOf } from '../../src/planner/tuning/constants.js';
import { type Collective, collectives, type DataTypeName } from '../../src/planner/tuning/names.js';
import { type Tuning, tune } from '../../src/planner/tuning/tune.js';
import { prepareCluster } from '../../src/planner/plan/cluster.js';
import { parsePublishedResults } from '../accuracy/published.js';
import { applyOverrides, type Overrides } from '../../src/planner/plan/overrides.js';
import { planPrepared } from '../../src/planner/plan/plan.js';
import { simulatorOf } from '../../src/planner/plan/prediction.js';
import { defaultVersion, nearestVersions } from '../../src/planner/versions/version.js';

/** A measured time with what the tables of errors need to know. */
export interface MeasuredCall extends Measurement {
  readonly hosts: number;
  /** Network between the hosts, as the source names it; `NVLink` on one host. All of it are left out together. */
  readonly fabric: string;
  readonly tuning: Tuning;
  /** True if a fit uses it: sizes and repetitions between two used ones add little. */
  readonly isForFit: boolean;
  /** Reason to distrust it, if there is one. */
  readonly doubt: string | undefined;
}

/** The texts of the files in docs/notes/. */
export interface MeasuredFiles {
  readonly aiconfigurator: string;
  readonly hosts: string;
  readonly moreHosts: string;
  readonly betweenHosts: string;
  readonly published: string;
}

/** The texts of all files. @param read gives the text of a file by its name relative to docs/notes/ */
export function readMeasuredFiles(read: (name: string) => string): MeasuredFiles {
  return {
    aiconfigurator: read('measured/aiconfigurator.csv'),
    hosts: read('measured/h100-hosts.csv'),
    moreHosts: read('measured/more-hosts.csv'),
    betweenHosts: read('measured/between-hosts.csv'),
    published: read('published-results.yaml'),
  };
}

/** Boxes without NVLinks, which no parameter is fitted to. */
export const PCIE = 'PCIe';

const machineOfSystem: Readonly<Record<string, string>> = {
  a100_sxm: 'dgx-a100',
  h100_sxm: 'dgx-h100',
  b200_sxm: 'dgx-b200',
  gb200: 'gb200-tray',
};

const collectiveNames: Readonly<Record<string, ScheduledCollective>> = {
  all_reduce: 'AllReduce',
  all_gather: 'AllGather',
  reduce_scatter: 'ReduceScatter',
  alltoall: 'AllToAll',
  sendrecv: 'SendRecv',
};

/**
 * All measurements on machines that the catalogue has.
 *
 * @throws InputError for a file that does not read
 */
export function readMeasured({ aiconfigurator, hosts, moreHosts, betweenHosts, published }: MeasuredFiles): MeasuredCall[] {
  const machines = new MachineCache();
  return [
    ...readDomains(aiconfigurator, machines),
    ...readHosts(hosts, machines),
    ...readMoreHosts(moreHosts, machines),
    ...readBetweenHosts(betweenHosts, machines),
    ...readPublished(published, machines),
  ];
}

/** Sizes at which NCCL's belief counts: machines differ most in the cost of small calls. */
const BELIEVED_BYTES = [2 ** 10, 2 ** 14, 2 ** 17, 2 ** 19];
/** Share of a measurement that a believed time counts as. */
const BELIEF_WEIGHT = 0.1;

/**
 * Times that NCCL's model believes of small calls on one node of each generation. They count a little in fits, so that a
 * generation of which nothing was measured takes these.
 */
export function believedCalls(): Measurement[] {
  const machines = new MachineCache();
  return ['dgx-a100', 'dgx-h100', 'dgx-b200'].flatMap((name) =>
    [2, 4, 8].flatMap((gpus) => {
      const kept = machines.of(name, 1, { gpus }, {}, defaultVersion);
      return (['AllReduce', 'AllGather', 'ReduceScatter'] as const).flatMap((collective) =>
        BELIEVED_BYTES.flatMap((bytes) => {
          const time = choose(kept.tuning, collective, bytes, { dataType: 'float16' })?.timeUs;
          return time === undefined
            ? []
            : [
                {
                  ...kept,
                  machine: 'belief',
                  collective,
                  bytes,
                  type: 'float16',
                  environment: environmentOf(1),
                  timeUs: time,
                  weight: BELIEF_WEIGHT,
                  isBelief: true,
                } satisfies Measurement,
              ];
        }),
      );
    }),
  );
}

/** µs by which launches on one GPU differ from CPU to CPU. */
const LAUNCH_SPREAD_US = 1;
/** Error of a measurement that counts in full. */
const USUAL_ERROR = 0.1;

/** Weight of a run whose threads launch on several GPUs: little where launches, which depend on the CPU, make the time. */
function weightOfLaunches(gpusPerThread: number, timeUs: number): number {
  const spreadUs = gpusPerThread > 1 ? gpusPerThread * LAUNCH_SPREAD_US : 0;
  return 1 / (1 + (spreadUs / timeUs / USUAL_ERROR) ** 2);
}

/** The version whose decisions stand for those of the version that was measured. */
function coveredVersion(version: string | undefined): string {
  if (version === undefined) return defaultVersion;
  const { older, newer } = nearestVersions(version === '2.23' ? '2.23.4' : version);
  return older ?? newer ?? defaultVersion;
}

/** One NVLink domain each, and boxes of PCIe cards. */
function readDomains(text: string, machines: MachineCache): MeasuredCall[] {
  return rowsOf(text, ['system', 'folder_version', 'row_version', 'op', 'gpus', 'type', 'bytes', 'time_us_median']).flatMap(
    (row) => {
      const [system = '', folder = '', version = '', op = '', gpus = '', type = '', bytes = '', time = ''] = row;
      const box = system === 'l40s' ? L40S_BOX : undefined;
      const name = box ?? machineOfSystem[system];
      const collective = collectiveNames[op];
      if (name === undefined || collective === undefined) return [];
      const size = Number(bytes);
      // The other folders of B200 have the same results.
      const isNearest = system !== 'b200_sxm' || folder === '2.28.9' || folder === '2.29.2';
      return [
        {
          ...machines.of(
            name,
            1,
            { gpus: Number(gpus) },
            box === undefined ? {} : l40sEnvironment(Number(gpus)),
            coveredVersion(version === '' ? folder : version),
          ),
          machine: system,
          fabric: box === undefined ? 'NVLink' : PCIE,
          hosts: 1,
          collective,
          bytes: size,
          type: type === 'half' ? 'float16' : 'int8',
          environment: environmentOf(1),
          timeUs: Number(time),
          weight: 1,
          isBelief: false,
          doubt: undefined,
          isForFit:
            box === undefined &&
            isNearest &&
            folder !== '2.23' &&
            (type === 'half' || (reduces(collective) && size >= 2 ** 20)) &&
            (Math.log2(size) % 3 === 0 || size === 2 ** 29),
        } satisfies MeasuredCall,
      ];
    },
  );
}

function readHosts(text: string, machines: MachineCache): MeasuredCall[] {
  return rowsOf(text, ['source', 'hosts', 'ranks', 'coll', 'bytes', 'timeUs']).flatMap((row) => {
    const [source = '', hosts = '', ranks = '', coll = '', bytes = '', time = ''] = row;
    const collective = collectiveNames[coll];
    if (collective === undefined) return [];
    const size = Number(bytes);
    // Between these two hosts a NIC carries 14 GB/s; between two others of the same cluster 46.
    const doubt = source.includes('cluster00')
      ? 'other hosts of the cluster, with NICs or a fabric of a third of the speed'
      : undefined;
    return [
      {
        ...machines.of('dgx-h100', Number(hosts), { gpus: Number(ranks) / Number(hosts) }, {}, '2.29.2'),
        machine: 'H100 hosts',
        fabric: Number(hosts) > 1 ? 'unknown' : 'NVLink',
        hosts: Number(hosts),
        collective,
        bytes: size,
        type: 'float64',
        environment: environmentOf(1),
        timeUs: Number(time),
        weight: 1,
        isBelief: false,
        doubt,
        isForFit: doubt === undefined && [2 ** 26, 2 ** 30].some((usual) => Math.abs(size / usual - 1) < 0.01),
      } satisfies MeasuredCall,
    ];
  });
}

/** Sources of more-hosts.csv with PyTorch's own timer, whose calls do not wait on the stream. */
const timedByTorch: ReadonlySet<string> = new Set(['ml-engineering']);

function readMoreHosts(text: string, machines: MachineCache): MeasuredCall[] {
  const columns = ['source', 'machine', 'hosts', 'gpus', 'nccl', 'collective', 'type', 'bytes', 'timeUs', 'env', 'processes'];
  const seen = new Set<string>();
  return rowsOf(text, columns).map((row) => {
    const [source = '', name = '', hosts = '', gpus = '', nccl, collective, type, bytes = '', time = '', env = '', processes] =
      row;
    // A second table of the same run, in place, adds no size to the fit.
    const call = [source, type, bytes].join(' ');
    const isFirst = !seen.has(call);
    seen.add(call);
    const gpusPerThread = processes === 'one a host' ? Number(gpus) : 1;
    return {
      ...machines.of(name, Number(hosts), { gpus: Number(gpus) }, variablesOf(env), coveredVersion(nccl)),
      machine: source,
      fabric: Number(hosts) > 1 ? 'RoCE' : 'NVLink',
      hosts: Number(hosts),
      collective: collective as ScheduledCollective,
      bytes: Number(bytes),
      type: type as DataTypeName,
      environment: environmentOf(gpusPerThread, timedByTorch.has(source) ? 'single' : 'queued', 'roce'),
      timeUs: Number(time),
      weight: weightOfLaunches(gpusPerThread, Number(time)),
      isBelief: false,
      doubt: undefined,
      // One process a host does not tell how many GPUs each of its threads launches on, which makes the time of small calls.
      isForFit: isFirst && Math.log2(Number(bytes)) % 2 === 0 && (gpusPerThread === 1 || Number(bytes) >= 2 ** 20),
    } satisfies MeasuredCall;
  });
}

function readBetweenHosts(text: string, machines: MachineCache): MeasuredCall[] {
  const columns = [
    'source',
    'machine',
    'hosts',
    'gpus',
    'nccl',
    'collective',
    'network',
    'type',
    'bytes',
    'timeUs',
    'env',
    'nicMbps',
  ];
  return rowsOf(text, columns).map((row) => {
    const [source = '', name = '', hosts = '', gpus = '', nccl, collective, network, type, size = '', time = ''] = row;
    const [env = '', nicMbps = ''] = row.slice(10);
    const bytes = Number(size);
    const overrides = { gpus: Number(gpus), ...(nicMbps === '' ? {} : { nicSpeedMbps: Number(nicMbps) }) };
    // Eight hosts take longer to simulate than all others together, and what limits the cards of Perlmutter, 18.6 of 25 GB/s, is
    // not known: both test the fit only.
    const isKnown = Number(hosts) < 8 && (source !== 'Perlmutter' || bytes < 2 ** 23);
    return {
      ...machines.of(name, Number(hosts), overrides, variablesOf(env), coveredVersion(nccl)),
      machine: source,
      fabric: fabricNames[network as Network],
      hosts: Number(hosts),
      collective: collective as ScheduledCollective,
      bytes,
      type: type as DataTypeName,
      environment: environmentOf(1, 'queued', network as Network),
      timeUs: Number(time),
      weight: 1,
      isBelief: false,
      doubt: undefined,
      isForFit: isKnown && Math.log2(bytes) % 2 === 0,
    } satisfies MeasuredCall;
  });
}

/** `NCCL_PROTO=Simple NCCL_BUFFSIZE=8388608` as variables. */
function variablesOf(env: string): Readonly<Record<string, string>> {
  const settings = env.split(' ').filter((setting) => setting !== '');
  return Object.fromEntries(settings.map((setting) => setting.split('=') as [string, string]));
}

const fabricNames: Readonly<Record<Network, string>> = {
  verbs: 'unknown',
  infiniband: 'InfiniBand',
  roce: 'RoCE',
  efa: 'EFA',
  'efa-v1': 'EFA of the first generation',
  slingshot: 'Slingshot',
  sockets: 'sockets',
  tcpx: 'TCPX',
};
const networkOfFabric: Readonly<Record<string, Network>> = { InfiniBand: 'infiniband', RoCE: 'roce' };

const environments = new Map<string, Environment>();

/** The same object each time, because the simulator keeps rates by environment. */
function environmentOf(gpusPerThread: number, launch: Environment['launch'] = 'queued', network: Network = 'verbs'): Environment {
  const key = `${gpusPerThread} ${launch} ${network}`;
  let environment = environments.get(key);
  if (environment === undefined) environments.set(key, (environment = { ...defaultEnvironment, gpusPerThread, launch, network }));
  return environment;
}

function readPublished(text: string, machines: MachineCache): MeasuredCall[] {
  return parsePublishedResults(text)
    .filter(({ source }) => source !== undefined)
    .flatMap((result) => {
      const kept = machines.of(result.machine, result.nodes, result.overrides, result.environment, coveredVersion(result.nccl));
      const factor = busFactor(result.collective, kept.tuning.input.nRanks);
      return result.sizes.map(({ bytes, gbps }) => {
        const timeUs = (bytes / gbps / 1000) * factor;
        return {
          ...kept,
          machine: 'published',
          fabric: result.nodes > 1 ? result.fabric : 'NVLink',
          hosts: result.nodes,
          collective: result.collective,
          bytes,
          type: result.type,
          environment: environmentOf(result.gpusPerThread, 'queued', networkOfFabric[result.fabric]),
          timeUs,
          weight: weightOfLaunches(result.gpusPerThread, timeUs),
          isBelief: false,
          doubt: undefined,
          // Round figures show too little of the limits of a call. A protocol that was forced is at work on sizes that NCCL
          // gives to another, where the two such runs contradict each other. Racks take longer to simulate than all others
          // together; they test the fit only.
          isForFit: kept.tuning.input.nRanks < 64 && !result.isRound && result.environment['NCCL_PROTO'] === undefined,
        } satisfies MeasuredCall;
      });
    });
}

/** Machines that the catalogue does not have. */
const boxes: Readonly<Record<string, () => XmlElement>> = { [L40S_BOX]: l40sBox, [H100_BOARD]: h100Board };

/** Simulators by machine, because planning one takes longer than simulating a call. */
class MachineCache {
  readonly #known = new Map<string, Pick<MeasuredCall, 'simulator' | 'tuning' | 'generation'>>();

  of(
    name: string,
    hosts: number,
    overrides: Overrides,
    environment: Readonly<Record<string, string>>,
    version: string,
  ): Pick<MeasuredCall, 'simulator' | 'tuning' | 'generation'> {
    const key = JSON.stringify([name, hosts, overrides, environment, version]);
    let known = this.#known.get(key);
    if (known === undefined) {
      const { parameters } = parametersFromEnvironment(environment, version);
      const prepared = prepareCluster(
        { hosts: [{ machine: applyOverrides(boxes[name]?.() ?? machine(name), overrides), count: hosts }] },
        parameters,
      );
      const made = planPrepared(prepared, parameters);
      const tuning = tune(made, parameters);
      this.#known.set(
        key,
        (known = {
          simulator: simulatorOf(prepared, parameters, made, tuning),
          tuning,
          generation: generationOf(tuning.input.minCompCap),
        }),
      );
    }
    return known;
  }
}

/** Rows of a table, cut to the named columns. */
function rowsOf(text: string, columns: readonly string[]): string[][] {
  const [head = '', ...lines] = text.trim().split('\n');
  const names = head.split(',');
  const places = columns.map((column) => {
    const place = names.indexOf(column);
    if (place < 0)
      throw new InputError('CONTENT', `the table of measurements has no column ${column} (it has ${names.join(', ')})`);
    return place;
  });
  return lines.map((line) => {
    const cells = line.split(',');
    return places.map((place) => cells[place] ?? '');
  });
}

/** NCCL's belief for a measured call, µs; undefined for messages between pairs. */
export function believedUs({
  tuning,
  collective,
  bytes,
  type,
}: MeasuredCall & { readonly type: DataTypeName }): number | undefined {
  return isCollective(collective) ? choose(tuning, collective, bytes, { dataType: type })?.timeUs : undefined;
}

function reduces(collective: ScheduledCollective): boolean {
  return collective === 'AllReduce' || collective === 'ReduceScatter';
}

function isCollective(name: ScheduledCollective): name is Collective {
  return (collectives as readonly string[]).includes(name);
}
