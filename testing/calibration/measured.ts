import { InputError } from '../../src/errors.js';
import { parametersFromEnvironment } from '../../src/planner/parameters.js';
import type { ScheduledCollective } from '../../src/planner/schedule/schedule.js';
import type { Measurement } from './fit-physics.js';
import { machine } from '../../src/planner/topology/catalogue/machines.js';
import { busFactor, choose } from '../../src/planner/tuning/choose.js';
import { generationOf } from '../../src/planner/tuning/constants.js';
import { type Collective, collectives, type DataTypeName } from '../../src/planner/tuning/names.js';
import { type Tuning, tune } from '../../src/planner/tuning/tune.js';
import { prepareCluster } from '../../src/planner/plan/cluster.js';
import { parsePublishedResults } from '../accuracy/published.js';
import { applyOverrides, type Overrides } from '../../src/planner/plan/overrides.js';
import { planPrepared } from '../../src/planner/plan/plan.js';
import { simulatorOf } from '../../src/planner/plan/prediction.js';

/** A measured time with what the tables of errors need to know. */
export interface MeasuredCall extends Measurement {
  readonly hosts: number;
  readonly tuning: Tuning;
  /** True if a fit takes it: sizes and repetitions between two that it takes tell little more. */
  readonly isForFit: boolean;
  /** Reason to distrust it, if there is one. */
  readonly doubt: string | undefined;
}

/** The texts of the files in docs/notes/. */
export interface MeasuredFiles {
  readonly aiconfigurator: string;
  readonly hosts: string;
  readonly published: string;
}

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
export function readMeasured({ aiconfigurator, hosts, published }: MeasuredFiles): MeasuredCall[] {
  const machines = new MachineCache();
  return [...readDomains(aiconfigurator, machines), ...readHosts(hosts, machines), ...readPublished(published, machines)];
}

/** One NVLink domain each; the L40S box, whose GPUs meet in host memory, is no machine of the catalogue. */
function readDomains(text: string, machines: MachineCache): MeasuredCall[] {
  return rowsOf(text, ['system', 'folder_version', 'row_version', 'op', 'gpus', 'type', 'bytes', 'time_us_median']).flatMap(
    (row) => {
      const [system = '', folder = '', version = '', op = '', gpus = '', type = '', bytes = '', time = ''] = row;
      const name = machineOfSystem[system];
      const collective = collectiveNames[op];
      if (name === undefined || collective === undefined) return [];
      const size = Number(bytes);
      // Versions of one machine differ in choices: 2.28.9 takes LL128 where the planner's 2.30.7 does, 2.29.2 takes Simple.
      const isNearest = system !== 'b200_sxm' || folder === '2.28.9';
      const doubt =
        folder === '2.23'
          ? version === ''
            ? 'the row names no version'
            : `the folder says NCCL 2.23, the row ${version}`
          : undefined;
      return [
        {
          ...machines.of(name, 1, { gpus: Number(gpus) }, {}),
          machine: system,
          hosts: 1,
          collective,
          bytes: size,
          type: type === 'half' ? 'float16' : 'int8',
          launch: 'queued',
          timeUs: Number(time),
          doubt,
          isForFit: type === 'half' && isNearest && doubt === undefined && (Math.log2(size) % 3 === 0 || size === 2 ** 29),
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
        ...machines.of('dgx-h100', Number(hosts), { gpus: Number(ranks) / Number(hosts) }, {}),
        machine: 'H100 hosts',
        hosts: Number(hosts),
        collective,
        bytes: size,
        type: 'float64',
        launch: 'processes',
        timeUs: Number(time),
        doubt,
        isForFit: doubt === undefined && [2 ** 26, 2 ** 30].some((usual) => Math.abs(size / usual - 1) < 0.01),
      } satisfies MeasuredCall,
    ];
  });
}

function readPublished(text: string, machines: MachineCache): MeasuredCall[] {
  return parsePublishedResults(text)
    .filter(({ source }) => source !== undefined)
    .flatMap((result) => {
      const kept = machines.of(result.machine, result.nodes, result.overrides, result.environment);
      const factor = busFactor(result.collective, kept.tuning.input.nRanks);
      return result.sizes.map(
        ({ bytes, gbps }) =>
          ({
            ...kept,
            machine: 'published',
            hosts: result.nodes,
            collective: result.collective,
            bytes,
            type: result.type,
            launch: 'processes',
            timeUs: (bytes / gbps / 1000) * factor,
            doubt: undefined,
            // Round figures tell too little of what limits a call. The 72 ranks of a rack take as long to simulate as all
            // others; they test the fit only.
            isForFit: kept.tuning.input.nRanks <= 64 && !result.isRound,
          }) satisfies MeasuredCall,
      );
    });
}

/** Simulators by machine, because planning one takes longer than simulating a call. */
class MachineCache {
  readonly #known = new Map<string, Pick<MeasuredCall, 'simulator' | 'tuning' | 'generation'>>();

  of(
    name: string,
    hosts: number,
    overrides: Overrides,
    environment: Readonly<Record<string, string>>,
  ): Pick<MeasuredCall, 'simulator' | 'tuning' | 'generation'> {
    const key = JSON.stringify([name, hosts, overrides, environment]);
    let known = this.#known.get(key);
    if (known === undefined) {
      const { parameters } = parametersFromEnvironment(environment);
      const prepared = prepareCluster(
        { hosts: [{ machine: applyOverrides(machine(name), overrides), count: hosts }] },
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

function isCollective(name: ScheduledCollective): name is Collective {
  return (collectives as readonly string[]).includes(name);
}
