import { counted } from '../../counted.js';
import { TcclError } from '../../errors.js';
import { gpuOfProduct } from '../topology/catalogue/products.js';
import { hasPromise } from '../log/checks/bandwidth.js';
import type { LogFinding } from '../log/checks/finding.js';
import type { LogModel } from '../log/job/model.js';
import type { MeasuredTable } from '../log/job/table.js';
import { defaultParameters, type Parameters } from '../parameters.js';
import type { ChangeableCluster } from '../plan/changed-cluster.js';
import { prepareCluster } from '../plan/cluster.js';
import { simulatorOf } from '../plan/prediction.js';
import { collectivesOfTests } from '../schedule/schedule.js';
import type { Simulator } from '../simulate/simulate.js';
import type { GpuModel } from '../topology/catalogue/gpus.js';
import { type Machine, machines } from '../topology/catalogue/machines.js';
import { descendants, type XmlElement } from '../topology/xml/tree.js';
import { coveredVersions, nearestVersions } from '../versions/version.js';
import {
  comparedRows,
  type ExpectedTable,
  errorOf,
  expectTable,
  percent,
  ranked,
  type TriedHypothesis,
  tryHypothesis,
} from './expect.js';
import { hypothesesFor, type Hypothesis } from './hypotheses.js';
import type { Results } from './measured.js';
import { isAllReduceByFigures, rowsOf } from './results.js';

/** From this size on, bandwidth rather than latency decides, and a run's launch mode does not matter. */
const LARGE_BYTES = 32 * 2 ** 20;
/** A result is slow from this multiple of the expected time on, where it is outside of the interval, too. */
const SLOW_TIMES = 1.5;
/** Smaller parts of a board may be any machine. */
const WHOLE_BOARD = 8;

interface Expectation {
  readonly machine: Machine;
  readonly root: XmlElement;
  readonly parameters: Parameters;
  readonly simulator: Simulator;
}

/**
 * Compares tables of nccl-tests with the expected bandwidths where the log tells the machine: all GPUs of a board with
 * NVSwitches.
 * Inside a host, such machines differ by their GPUs only; between hosts the log does not name the cards.
 */
export function checkExpected(model: LogModel): LogFinding[] {
  const known = new Map<string, Expectation | undefined>();
  const compared = new Set<MeasuredTable>();
  const slow = model.tables.flatMap((table) => {
    const results = resultsOf(table);
    if (results === undefined) return [];
    const version = versionNear(
      table.run.nccl ?? model.processes.find((process) => process.version !== undefined)?.version?.text,
    );
    const key = `${results.gpu.id} ${table.nRanks ?? 0} ${version}`;
    if (!known.has(key)) known.set(key, expectationOf(results.gpu, table.nRanks ?? 0, version));
    const expectation = known.get(key);
    if (expectation === undefined) return [];
    compared.add(table);
    const expected = expectTable(results.results, expectation.simulator);
    const late = expected.rows.filter(
      ({ verdict, timeUs, expectedUs }) => verdict === 'slow' && timeUs > SLOW_TIMES * expectedUs,
    );
    return 2 * late.length > expected.rows.length ? [{ table, expected, expectation }] : [];
  });
  const [first] = slow;
  return [
    ...(first === undefined ? [] : [findingOf(model, first.table, first.expected, first.expectation, slow.length)]),
    ...notCompared(model, compared),
  ];
}

/** Says which speeds nothing judged, and the command that does. */
function notCompared(model: LogModel, compared: ReadonlySet<MeasuredTable>): LogFinding[] {
  const left = model.tables.filter(
    (table) =>
      (table.nRanks ?? 0) > 1 &&
      !table.run.isCpuTime &&
      !compared.has(table) &&
      !hasPromise(table, model.communicators) &&
      table.rows.some(({ bytes }) => bytes >= LARGE_BYTES),
  );
  const [table] = left;
  if (table === undefined) return [];
  const { hosts, nRanks = 0, run, rows } = table;
  const gpu = gpuOfProduct(run.gpus[0] ?? '');
  const machine =
    gpu === undefined ? undefined : machines.find((each) => isOf(each.build(), gpu, nRanks / Math.max(1, hosts.length)));
  const [place] = rows.map((row) => row.place);
  const file = place === undefined ? undefined : model.files[place.file];
  return [
    {
      code: 'speed-not-compared',
      severity: 'info',
      kind: 'note',
      problem: `the speed was not compared: ${hosts.length > 1 ? counted(hosts.length, 'host') : 'the machine is not known'}${left.length > 1 ? ` (${left.length} tables)` : ''}`,
      cause:
        hosts.length > 1
          ? 'the output of nccl-tests does not name the network cards between hosts'
          : 'the output of nccl-tests names GPUs that several machines have, in other ways',
      remedy: `tccl expect ${machine === undefined ? '<cluster file>' : `${machine.name}${hosts.length > 1 ? ` --nodes ${hosts.length}` : ''}`} ${file ?? '<file>'} compares it`,
      places: place === undefined ? [] : [place],
    },
  ];
}

/** The large rows of a table whose host and GPUs are known. */
function resultsOf(table: MeasuredTable): { readonly results: Results; readonly gpu: GpuModel } | undefined {
  const { collective, isNamed, hosts, nRanks = 0, run, rows } = table;
  const named = isNamed && collective !== undefined ? collectivesOfTests[collective] : undefined;
  const simulated = isNamed ? named : isAllReduceByFigures(table) ? 'AllReduce' : undefined;
  const [product, ...others] = run.gpus;
  if (simulated === undefined || hosts.length !== 1 || nRanks < WHOLE_BOARD || run.isCpuTime) return undefined;
  if (product === undefined || others.length > 0) return undefined;
  const gpu = gpuOfProduct(product);
  const large = rows.filter(({ bytes, wrong }) => bytes >= LARGE_BYTES && !(wrong > 0));
  if (gpu?.nvlink !== 'switch' || large.length === 0) return undefined;
  return { results: { collective: simulated, nRanks, hosts, run, variables: {}, rows: rowsOf(large) }, gpu };
}

function versionNear(measured: string | undefined): string {
  const release = measured?.split('+', 1)[0];
  if (release === undefined) return defaultParameters.ncclVersion;
  if (coveredVersions.includes(release)) return release;
  const { older, newer } = nearestVersions(release);
  return older ?? newer ?? defaultParameters.ncclVersion;
}

function expectationOf(gpu: GpuModel, nRanks: number, ncclVersion: string): Expectation | undefined {
  for (const machine of machines) {
    const root = machine.build();
    if (!isOf(root, gpu, nRanks)) continue;
    const parameters: Parameters = { ...defaultParameters, ncclVersion };
    try {
      return {
        machine,
        root,
        parameters,
        simulator: simulatorOf(prepareCluster({ hosts: [{ machine: root, count: 1 }] }, parameters), parameters),
      };
    } catch (error) {
      if (!(error instanceof TcclError)) throw error;
      return undefined;
    }
  }
  return undefined;
}

/** True if the machine has so many GPUs, all of the model. */
function isOf(root: XmlElement, { device, sm }: GpuModel, count: number): boolean {
  const gpus = [...descendants(root)].filter(({ name }) => name === 'gpu');
  return (
    gpus.length === count &&
    gpus.every(({ attributes, parent }) => {
      const pci = parent?.attributes.get('device');
      return attributes.get('sm') === String(sm) && pci !== undefined && Number(pci) === device;
    })
  );
}

function findingOf(
  model: LogModel,
  { collective, rows }: MeasuredTable,
  expected: ExpectedTable,
  expectation: Expectation,
  nSlow: number,
): LogFinding {
  const { machine, parameters } = expectation;
  const largest = expected.rows.reduce((a, b) => (b.bytes >= a.bytes ? b : a));
  const { place } = rows.find(({ bytes }) => bytes === largest.bytes) ?? { place: { file: 0, line: 0 } };
  const [best, second] = explanationsOf(model, expectation, expected);
  const compared = comparedRows(expected).filter(({ verdict }) => verdict === 'slow').length;
  const explanation = best !== undefined && 2 * best.explained >= compared ? best.hypothesis : undefined;
  const near = ({ hypothesis, error, explained }: TriedHypothesis) =>
    `${hypothesis.what} (off by ${percent(error)}, explains ${explained} of ${counted(compared, 'row')})`;
  return {
    code: 'slower-than-expected',
    severity: 'warning',
    kind: 'outcome',
    explains: ['bandwidth-low'],
    problem: `${collective ?? ''} reaches ${largest.busGBps.toFixed(1)} GB/s of bus bandwidth at ${Math.round(largest.bytes / 2 ** 20)} MiB; ${largest.expectedGBps.toFixed(1)} GB/s are expected of ${machine.name} with NCCL ${parameters.ncclVersion}${nSlow > 1 ? ` (${nSlow} tables are slow)` : ''}`,
    cause:
      explanation === undefined
        ? best === undefined
          ? 'no single setting or part of the machine that tccl tries would explain these times: other jobs on the GPUs, throttled clocks, a virtual machine'
          : `no single explanation fits; the nearest: ${[best, ...(second === undefined ? [] : [second])].map(near).join('; ')}`
        : `these times fit best: ${explanation.what}`,
    remedy: `${explanation === undefined ? '`nvidia-smi -q` (clocks, throttle reasons) and `nvidia-smi nvlink -s`' : explanation.check}; tccl expect ${machine.name} with this file shows every size`,
    places: [place],
  };
}

/** Explanations of a table, the best first; where the log shows settings, only those that it has. */
function explanationsOf(model: LogModel, { root, parameters }: Expectation, table: ExpectedTable): TriedHypothesis[] {
  const input: ChangeableCluster = {
    cluster: { hosts: [{ machine: root, count: 1 }] },
    roots: new Map([[root, root]]),
    parameters,
    environment: {},
  };
  const settings = new Set(model.processes.flatMap(({ environment }) => [...environment.keys()]));
  const isAllowed = ({ variable }: Hypothesis) =>
    variable === undefined || settings.has(variable.name) || model.processes.every(({ version }) => version === undefined);
  const tried = hypothesesFor([root], 1)
    .filter(isAllowed)
    .map((hypothesis) => tryHypothesis(input, [table], hypothesis));
  return ranked(tried, errorOf([table]));
}
