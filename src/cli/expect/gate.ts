import { counted } from '../../counted.js';
import { inFile, InputError, InvalidArgumentError } from '../../errors.js';
import { environmentOf, expectTable } from '../../planner/expect/expect.js';
import { healthChecks } from '../../planner/expect/gate/health-checks.js';
import { type GatePart, type Missing, missingParts } from '../../planner/expect/gate/missing.js';
import { type HostNeeds, needsOf, weakest } from '../../planner/expect/gate/needs.js';
import { gateCollectives, gateSizes, SURE, type Threshold, thresholdsOf } from '../../planner/expect/gate/thresholds.js';
import { judge, type JudgedTable, slowPart } from '../../planner/expect/gate/verdict.js';
import type { Results } from '../../planner/expect/measured.js';
import { collectiveNamed, readResults } from '../../planner/expect/results.js';
import { readTorchResults } from '../../planner/expect/torch-results.js';
import type { LogModel } from '../../planner/log/job/model.js';
import { NcclLogReader } from '../../planner/log/job/read-log.js';
import { type ClusterHosts, prepareCluster } from '../../planner/plan/cluster.js';
import { formatBytes, formatRate } from '../../planner/plan/overview/format.js';
import { simulatorOf } from '../../planner/plan/prediction.js';
import { isXml } from '../../planner/readers/classify.js';
import type { Simulator } from '../../planner/simulate/simulate.js';
import { devicesOf } from '../../planner/topology/doctor/inventory.js';
import { didYouMean } from '../../suggest.js';
import { type ClusterInput, readCluster } from '../cluster-input.js';
import { colorsFor, print, printData, printJson, printNotes } from '../output.js';
import { sizesOf } from '../plan/plan.js';
import { type NamedText, readText } from '../topo/input.js';
import { clusterOptionsOf, type ExpectOptions } from './options.js';

/** A cluster with the facts that a gate compares. */
interface Gate {
  readonly input: ClusterInput;
  readonly needs: HostNeeds;
  readonly nHosts: number;
  readonly simulator: Simulator;
}

/** `tccl expect --gate`. @returns whether the results pass; true without results */
export async function showGate(name: string, files: readonly string[], options: ExpectOptions): Promise<boolean> {
  const check = healthCheckNamed(options.for);
  if (check !== undefined && files.length > 0)
    throw new InvalidArgumentError('ARGUMENT_TYPE', '--for prints thresholds for a health check: it takes no results');
  const texts = files.flatMap(textsOf);
  const results = texts.flatMap((text) => resultsIn(text, options.collective));
  const { clusterOptions, notes } = clusterOptionsOf(results, options);
  const gate = gateOf(await readCluster([name], clusterOptions));
  if (check !== undefined) printData(`${checkLines(gate, check).join('\n')}\n`);
  else if (files.length === 0) showThresholds(gate, options);
  else {
    const passes = showVerdict(gate, texts, results, options);
    printNotes([...notes, ...gate.input.notes]);
    return passes;
  }
  printNotes(gate.input.notes);
  return true;
}

function gateOf(input: ClusterInput): Gate {
  const { cluster, machines, parameters, given } = input;
  const hostsOf = (root: (typeof machines)[number]['root']) =>
    Math.max(1, new Set(devicesOf(root).gpus.map(({ host }) => host)).size);
  const nHosts = cluster.hosts.reduce((sum, { machine, count }) => {
    const root = machines.find(({ system }) => system === machine)?.root;
    return sum + count * (root === undefined ? 1 : hostsOf(root));
  }, 0);
  return {
    input,
    needs: weakest(machines.map(({ root }) => needsOf(root))),
    nHosts,
    simulator: inFile(input.fileName, () => simulatorOf(prepareCluster(cluster, parameters, given), parameters)),
  };
}

function healthCheckNamed(name: string | undefined): (typeof healthChecks)[number] | undefined {
  if (name === undefined) return undefined;
  const found = healthChecks.find((each) => each.name === name);
  if (found !== undefined) return found;
  const names = healthChecks.map((each) => each.name);
  throw new InvalidArgumentError(
    'UNKNOWN_NAME',
    `--for ${name} is no health check that tccl knows${didYouMean(name, names) || `; these are: ${names.join(', ')}`}`,
  );
}

/** The thresholds of a check; that of one host is the least of all kinds of hosts. */
function checkLines(gate: Gate, check: (typeof healthChecks)[number]): string[] {
  const { input, needs, nHosts } = gate;
  const { parameters, cluster } = input;
  const calls = { collectives: ['AllReduce'] as const, sizes: [check.bytes] };
  const alone = (host: ClusterHosts) =>
    thresholdsOf(simulatorOf(prepareCluster({ hosts: [{ ...host, count: 1 }] }, parameters), parameters), calls);
  const found = check.isOneHost ? cluster.hosts.flatMap(alone) : thresholdsOf(gate.simulator, calls, input.simulated);
  const [first, ...others] = found;
  if (first === undefined) throw new InputError('CONTENT', `${input.title} has one rank: there is nothing to measure`);
  const threshold = others.reduce((a, b) => (b.leastGBps < a.leastGBps ? b : a), first);
  return [
    `# ${check.isOneHost ? `one host of ${input.title}` : input.title}, NCCL ${parameters.ncclVersion}: ${thresholdText(threshold)}`,
    ...check.lines(threshold, { nHosts, gpusPerHost: needs.gpus, nicsPerHost: needs.nets, netGbps: needs.netGbps }),
  ];
}

function thresholdText({ test, bytes, leastGBps, isMeasured }: Threshold): string {
  return `${test} >= ${formatRate(leastGBps)} GB/s at ${formatBytes(bytes)}, ${isMeasured ? SURE_TEXT : NOT_MEASURED}`;
}

const SURE_TEXT = `${100 * SURE} % sure`;
const NOT_MEASURED = 'an estimate: no measurement of such a call and cluster supports it';

function showThresholds({ input, nHosts, needs, simulator }: Gate, options: ExpectOptions): void {
  const named = options.collective === undefined ? undefined : collectiveNamed(options.collective, '--collective');
  const calls = {
    collectives: named === undefined ? gateCollectives : [named],
    sizes: options.sizes === undefined ? gateSizes : sizesOf({ sizes: options.sizes }),
  };
  const thresholds = thresholdsOf(simulator, calls, input.simulated);
  if (options.json === true) {
    printJson({
      format: 'tccl gate',
      formatVersion: 1,
      title: input.title,
      nccl: input.parameters.ncclVersion,
      sure: SURE,
      hosts: nHosts,
      needs,
      thresholds,
    });
    return;
  }
  const paint = colorsFor(process.stdout);
  const cells = thresholds.map((each) => [
    each.test,
    formatBytes(each.bytes),
    formatRate(each.leastGBps),
    formatRate(each.expectedGBps),
    each.isMeasured ? SURE_TEXT : 'estimate',
  ]);
  const heads = ['test', 'size', 'at least', 'expected', ''];
  const widths = heads.map((head, column) => Math.max(head.length, ...cells.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) =>
        column === 0 || column === 4 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd();
  print(
    `${paint.bold(input.title)}  NCCL ${input.parameters.ncclVersion}: bus bandwidths (GB/s) of a healthy cluster`,
    `${counted(nHosts, 'host')} of ${partsText(needs)}`,
    '',
    paint.dim(line(heads)),
    ...cells.map(line),
    '',
    `${SURE_TEXT}: nine of ten measurements of other clusters were at or above this bound.`,
    ...(thresholds.some((each) => !each.isMeasured)
      ? ['estimate: no measurement of such a call on such a cluster supports the bound; --gate does not fail results for it.']
      : []),
  );
}

function partsText({ gpus, nets, netGbps, gpuLink, nvlinks }: HostNeeds): string {
  return [
    counted(gpus, 'GPU'),
    ...(nvlinks > 0 ? [`${counted(nvlinks, 'NVLink')} each`] : []),
    ...(gpuLink === undefined ? [] : [`PCIe ${gpuLink.gtps} GT/s x ${gpuLink.lanes}`]),
    ...(nets > 0 ? [`${counted(nets, 'NIC')} of ${netGbps} Gb/s`] : []),
  ].join(', ');
}

/** A file, or the files of a folder. */
function textsOf(name: string): readonly NamedText[] {
  const text = readText(name);
  if (text === undefined) throw new InvalidArgumentError('FILE', 'there is no such file', { file: name });
  return text.parts ?? [text];
}

/** Tables of a file; none in a file of other outputs. */
function resultsIn({ text, fileName }: NamedText, collective: string | undefined): Results[] {
  if (isXml(text) || isCopyJson(text)) return [];
  return inFile(fileName, () => {
    if (/^\s*[[{]/.test(text) || modelOf([{ text, fileName }]).tables.length > 0) return readResults(text, collective);
    return readTorchResults(text, collective === undefined ? undefined : collectiveNamed(collective, '--collective'));
  });
}

/** True for the JSON of `nvbandwidth -j`. */
function isCopyJson(text: string): boolean {
  return /^\s*\{\s*"nvbandwidth"/.test(text);
}

function modelOf(texts: readonly NamedText[]): LogModel {
  const reader = new NcclLogReader();
  for (const { text, fileName } of texts) {
    const isCopies = isCopyJson(text);
    if (/^\s*[[{]/.test(text) && !isCopies) continue;
    reader.openFile(fileName);
    if (isXml(text) || isCopies) inFile(fileName, () => reader.readWhole(isCopies ? 'json' : 'xml', Buffer.from(text)));
    else for (const line of text.split(/\r?\n/)) reader.readLine(line);
  }
  return reader.finish();
}

/** Parts that a gate names where the results do not show them, with the output that would. */
const shownBy: readonly (readonly [part: GatePart, by: string])[] = [
  ['gpus', 'nvidia-smi'],
  ['nics', 'ibstat, or NCCL_DEBUG=INFO'],
  ['pcie', 'lspci -vv'],
  ['nvlinks', 'nvidia-smi nvlink -s'],
  ['bandwidth', 'nccl-tests'],
];

function showVerdict(
  { input, needs, nHosts, simulator }: Gate,
  texts: readonly NamedText[],
  results: readonly Results[],
  options: ExpectOptions,
): boolean {
  const model = modelOf(texts);
  const parts = missingParts(model, needs, nHosts);
  const missing = [...parts.missing];
  const planned = simulator.nRanks;
  const fewer = results.find(({ nRanks }) => nRanks !== undefined && nRanks !== planned);
  if (missing.length === 0 && fewer !== undefined)
    missing.push({
      part: (fewer.nRanks ?? 0) < planned ? 'gpus' : 'hosts',
      host: undefined,
      problem: `${counted(fewer.nRanks ?? 0, 'rank')} measured, ${counted(planned, 'rank')} in ${input.title} (${fewer.rows[0]?.place ?? ''})`,
      check: 'nvidia-smi -L on each host; or give the cluster that was measured',
      place: undefined,
    });
  const tables =
    fewer === undefined ? results.map((each) => judge(expectTable(each, simulator, environmentOf(each, input.simulated)))) : [];
  missing.push(...tables.filter(({ isSlow }) => isSlow).flatMap(slowPart));
  const isShown = (part: GatePart) =>
    parts.shown.has(part) || (part === 'bandwidth' && tables.some(({ judged }) => judged.length > 0));
  const notShown = shownBy.filter(([part]) => !isShown(part) && isNeeded(part, needs));
  if (parts.shown.size === 0 && tables.length === 0)
    throw new InputError(
      'CONTENT',
      'the files show no part of a cluster: give what nccl-tests printed, nvidia-smi, ibstat, lspci -vv, NCCL_DEBUG=INFO or NCCL_TOPO_DUMP_FILE',
    );
  if (options.json === true)
    printJson({
      format: 'tccl gate',
      formatVersion: 1,
      title: input.title,
      nccl: input.parameters.ncclVersion,
      passes: missing.length === 0,
      missing: missing.map(({ place, ...each }) => ({
        ...each,
        host: each.host ?? null,
        place: placeText(place, model) ?? null,
      })),
      tables: tables.map(({ table, judged, isSlow }) => ({
        collective: table.collective,
        slow: isSlow,
        judged: judged.length,
        rows: table.rows,
      })),
      notShown: notShown.map(([part]) => part),
    });
  else print(...verdictLines({ input, needs, nHosts, missing, tables, notShown, model }));
  return missing.length === 0;
}

function isNeeded(part: GatePart, { nets, nvlinks }: HostNeeds): boolean {
  return part === 'nics' ? nets > 0 : part === 'nvlinks' ? nvlinks > 0 : true;
}

interface Verdict {
  readonly input: ClusterInput;
  readonly needs: HostNeeds;
  readonly nHosts: number;
  readonly missing: readonly Missing[];
  readonly tables: readonly JudgedTable[];
  readonly notShown: typeof shownBy;
  readonly model: LogModel;
}

function verdictLines({ input, needs, nHosts, missing, tables, notShown, model }: Verdict): string[] {
  const paint = colorsFor(process.stdout);
  const [first, ...others] = missing;
  const open = notShown.map(([part, by]) => `${part} (${by})`).join(', ');
  const tail = open === '' ? [] : [paint.dim(`Not shown by these files: ${open}.`)];
  if (first !== undefined)
    return [
      `${paint.red('FAIL')} ${input.title}: ${missingText(first, model)}`,
      `     check: ${first.check}`,
      ...others.map((each) => `also ${missingText(each, model)}`),
      ...tail,
    ];
  const measured = tables.flatMap(({ table, shown, judged }) =>
    shown === undefined
      ? []
      : [
          `${table.collective} ${formatRate(shown.busGBps)} GB/s at ${formatBytes(shown.bytes)}${judged.length === 0 ? ` (${NOT_MEASURED})` : ''}`,
        ],
  );
  return [
    `${paint.green('PASS')} ${input.title}: ${counted(nHosts, 'host')} of ${partsText(needs)}${measured.length === 0 ? '' : `; ${measured.join(', ')}`}`,
    ...tail,
  ];
}

function missingText({ host, problem, place }: Missing, model: LogModel): string {
  const at = placeText(place, model);
  return `${host === undefined ? '' : `${host}: `}${problem}${at === undefined ? '' : ` (${at})`}`;
}

function placeText(place: Missing['place'], { files }: LogModel): string | undefined {
  return place === undefined ? undefined : `${files[place.file] ?? ''} line ${place.line}`;
}
