import { counted } from '../../counted.js';
import type { Diagnosis } from '../../planner/log/verdict/diagnosis.js';
import { excerpt } from '../../planner/log/lines/excerpt.js';
import { type LogFinding, rankRanges } from '../../planner/log/checks/finding.js';
import { channelsByNic } from '../../planner/log/checks/nics.js';
import type { LogPlace } from '../../planner/log/lines/line.js';
import { type LoggedCommunicator, type LoggedRank, type LogModel, TREE_STRIDE, UNKNOWN } from '../../planner/log/job/model.js';
import { type Colors, colorsFor, print } from '../output.js';

/** Limits that fit a screen; `--json` has all. */
const SHOWN_CAUSES = 3;
const SHOWN_PLACES = 3;
const SHOWN_TABLES = 2;
const SHOWN_REMARKS = 6;
/** A line of text is no longer than this. */
const WIDTH = 150;

/** The verdict, then the description of the job, as text. */
export function printLog(model: LogModel, diagnosis: Diagnosis): void {
  const paint = colorsFor(process.stdout);
  printVerdict(model, diagnosis, paint);
  printJob(model, paint);
}

/** Describes the job: its largest communicator, and measurements. */
export function printJob({ communicators, tables, lines }: LogModel, paint: Colors): void {
  // The largest communicator comes first.
  const [shown] = [...communicators].sort((a, b) => b.ranks.size - a.ranks.size);
  if (shown !== undefined) print(...summary(shown, paint));
  if (communicators.length > 1 && shown !== undefined)
    print(`and ${counted(communicators.length - 1, 'more communicator')} (${sizes(communicators, [shown])}); --json has all`);
  for (const table of tables.slice(0, SHOWN_TABLES)) {
    const best = table.rows.reduce((a, b) => (b.busGBps > a.busGBps ? b : a), table.rows[0] ?? { busGBps: 0, bytes: 0 });
    print(
      `nccl-tests ${table.collective ?? '(a test without a name)'}: ${counted(table.rows.length, 'row')}, at best ${best.busGBps} GB/s of bus bandwidth at ${best.bytes} bytes`,
    );
  }
  if (tables.length > SHOWN_TABLES) print(`and ${counted(tables.length - SHOWN_TABLES, 'more table')}`);
  print(paint.dim(`${counted(lines.nccl, 'line')} of NCCL in ${lines.all}`));
}

/** The outcome: causes with their evidence, or what is not known; then consequences and remarks. */
export function printVerdict(model: Pick<LogModel, 'files'>, { outcome, verdict, open }: Diagnosis, paint: Colors): void {
  const { causes, consequences, remarks } = verdict;
  const groups = byCode(causes);
  // It belongs to the words of a verdict that finds nothing.
  const unjudged = open === undefined && causes.length === 0 ? remarks.find(isUnjudged) : undefined;
  const notes = unjudged === undefined ? remarks : remarks.filter((remark) => remark !== unjudged);
  const [[first, ...others] = []] = groups;
  if (open !== undefined) {
    print(`${paint.yellow('Undecided:')} ${paint.bold(open.problem)}`);
    print(`  why    ${open.cause}`, `  run    ${open.command}`, `  do     ${open.remedy}`, '');
  } else if (first === undefined) {
    print(
      `${paint.green('Verdict:')} ${paint.bold(`nothing wrong found${outcome === 'healthy' ? '; all that began was seen to end' : ''}${unjudged === undefined ? '' : `; ${unjudged.problem}`}`)}${notes.length === 0 ? '' : '; worth knowing:'}`,
      ...(unjudged === undefined ? [] : [`  why    ${unjudged.cause}`, `  do     ${unjudged.remedy}`]),
      '',
    );
  } else {
    const colour = first.severity === 'error' ? paint.red : paint.yellow;
    print(`${colour('Verdict:')} ${paint.bold(first.problem)}`);
    printCause(model, first, others, paint);
    for (const [index, [cause, ...more]] of groups.slice(1, SHOWN_CAUSES).entries()) {
      if (cause === undefined) continue;
      print(`${paint.yellow(`Also possible, ${index + 2}:`)} ${cause.problem}`);
      printCause(model, cause, more, paint);
    }
  }
  const rest = groups.slice(SHOWN_CAUSES).flat();
  if (rest.length > 0) print(`and ${counted(rest.length, 'less likely finding')}: ${codesOf(rest)}`);
  if (consequences.length > 0) print(`Consequences of these: ${codesOf(consequences)}`);
  for (const { code, problem } of notes.slice(0, SHOWN_REMARKS)) print(`${paint.cyan('info')} ${code}: ${short(problem)}`);
  if (notes.length > SHOWN_REMARKS) print(`and ${counted(notes.length - SHOWN_REMARKS, 'more remark')}; --json has all`);
  if (rest.length + consequences.length + notes.length > 0) print('');
}

function isUnjudged({ code }: LogFinding): boolean {
  return code === 'speed-not-compared';
}

/** Findings of one code together, where the first of them stands. */
function byCode(findings: readonly LogFinding[]): LogFinding[][] {
  const groups = new Map<string, LogFinding[]>();
  for (const finding of findings) groups.set(finding.code, [...(groups.get(finding.code) ?? []), finding]);
  return [...groups.values()];
}

/** @param others findings of the same code */
function printCause(model: Pick<LogModel, 'files'>, finding: LogFinding, others: readonly LogFinding[], paint: Colors): void {
  const { code, cause, remedy, source } = finding;
  print(`  why    ${cause}`);
  printEvidence(model, finding, paint);
  for (const other of others.slice(0, SHOWN_CAUSES)) {
    print(`  also   ${other.problem}`);
    printEvidence(model, other, paint);
  }
  if (others.length > SHOWN_CAUSES) print(`  also   ${others.length - SHOWN_CAUSES} more like these; --json has all`);
  print(`  do     ${remedy}`);
  print(paint.dim(`  code   ${code}${source === undefined ? '' : `, as in ${source}`}`), '');
}

function printEvidence(model: Pick<LogModel, 'files'>, { places, quote, context }: LogFinding, paint: Colors): void {
  const at = places
    .slice(0, SHOWN_PLACES)
    .map((place) => placeText(model, place))
    .join(', ');
  if (at !== '') print(`  where  ${at}${places.length > SHOWN_PLACES ? ', …' : ''}`);
  if (context !== undefined && context.length > 1) for (const line of context) print(paint.dim(`         | ${short(line)}`));
  else if (quote !== undefined) print(paint.dim(`         | ${short(quote)}`));
}

function codesOf(findings: readonly LogFinding[]): string {
  return [...new Set(findings.map(({ code }) => code))].join(', ');
}

function short(text: string): string {
  return excerpt(text, WIDTH);
}

function placeText(model: Pick<LogModel, 'files'>, { file, line }: LogPlace): string {
  return `${model.files[file] ?? ''}:${line}`;
}

/** One communicator in a few lines. */
function summary(communicator: LoggedCommunicator, paint: Colors): string[] {
  const { id, nRanks, nRanksKnown, ranks } = communicator;
  const records = [...ranks.values()];
  const done = records.filter(({ completed }) => completed !== undefined).length;
  const versions = [...new Set(records.flatMap(({ process }) => process.version?.text ?? []))];
  const seconds = records.reduce((longest, { initSeconds = -1 }) => Math.max(longest, initSeconds), -1);
  const hosts = new Map<string, number[]>();
  for (const { process, rank } of records) hosts.set(process.host, [...(hosts.get(process.host) ?? []), rank]);
  const row = (name: string, text: string) => (text === '' ? [] : [`  ${name.padEnd(10)}${short(text)}`]);
  const nodes = communicator.nNodes ?? hosts.size;
  return [
    paint.bold(
      `communicator ${id}: ${nRanksKnown ? '' : 'at least '}${counted(nRanks, 'rank')} on ${counted(nodes, 'host')}${versions.length === 0 ? '' : `, NCCL ${versions.slice(0, 3).join(', ')}`}`,
    ) + `, init finished on ${done} of ${nRanks}${seconds < 0 ? '' : ` in ${seconds} s`}`,
    ...row(
      'hosts',
      [...hosts]
        .slice(0, 8)
        .map(([host, list]) => `${host} ${rankRanges(list)}`)
        .join('; '),
    ),
    ...row('channels', channelsText(records)),
    ...row('rings', ringsText(records)),
    ...row('search', searchText(records)),
    ...row(
      'inside',
      linksText(records, (link) => link.transport.family !== 'NET' && link.transport.family !== 'COLLNET'),
    ),
    ...row(
      'between',
      linksText(records, (link) => link.transport.family === 'NET' || link.transport.family === 'COLLNET'),
    ),
    ...row('NICs', nicsText(records)),
    ...row('tuning', tuningText(records)),
  ];
}

function sizes(communicators: readonly LoggedCommunicator[], shown: readonly LoggedCommunicator[]): string {
  const counts = new Map<number, number>();
  for (const communicator of communicators)
    if (!shown.includes(communicator)) counts.set(communicator.nRanks, (counts.get(communicator.nRanks) ?? 0) + 1);
  return [...counts].map(([nRanks, count]) => `${count} of ${nRanks} ranks`).join(', ');
}

function channelsText(records: readonly LoggedRank[]): string {
  const counts = records.find(({ channelCounts }) => channelCounts !== undefined)?.channelCounts;
  if (counts !== undefined)
    return `${counts.coll} for collectives, ${counts.nvls === undefined ? '' : `${counts.nvls} for NVLS, `}${counts.p2p} for send and receive`;
  const order = records.flatMap(({ ringOrders }) => [...ringOrders.values()])[0];
  return order === undefined ? '' : `${order.nChannels} for collectives`;
}

function ringsText(records: readonly LoggedRank[]): string {
  const orders = new Map<string, number[]>();
  for (const { ringOrders } of records) {
    for (const [channel, { ranks, cut }] of ringOrders) {
      const text = `${ranks.join(' ')}${cut ? ' …' : ''}`;
      orders.set(text, [...(orders.get(text) ?? []), channel]);
    }
  }
  const [first, ...others] = [...orders];
  if (first === undefined) return '';
  return `${rankRanges(first[1])}: ${first[0]}${others.length === 0 ? '' : `  (and ${counted(others.length, 'other order')})`}`;
}

const patternNames: Readonly<Record<number, string>> = { 1: 'tree', 2: 'tree', 3: 'tree', 4: 'ring', 5: 'NVLS', 6: 'CollNet' };

function searchText(records: readonly LoggedRank[]): string {
  const searches = records.find((record) => record.searches.size > 0)?.searches;
  const seen = new Set<string>();
  return [...(searches?.values() ?? [])]
    .flatMap(({ result }) => {
      const name = patternNames[result.pattern] ?? String(result.pattern);
      if (result.nChannels === 0 || seen.has(name)) return [];
      seen.add(name);
      return [
        `${name} ${result.nChannels} × ${result.bwIntra.toFixed(1)}/${result.bwInter.toFixed(1)} GB/s ${result.typeIntra}/${result.typeInter}`,
      ];
    })
    .join(', ');
}

function linksText(records: readonly LoggedRank[], wanted: (link: LoggedRank['links'][number]) => boolean): string {
  const counts = new Map<string, number>();
  for (const { links } of records) {
    for (const link of links) {
      if (!wanted(link)) continue;
      const { name, gdr, via } = link.transport;
      const text = `${name}${gdr === true ? '/GDRDMA' : ''}${via === undefined ? '' : ' via another GPU (PXN)'}`;
      counts.set(text, (counts.get(text) ?? 0) + link.channels);
    }
  }
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([text, count]) => `${text} ${counted(count, 'connection')}`)
    .join(', ');
}

function nicsText(records: readonly LoggedRank[]): string {
  const [first] = records;
  if (first === undefined) return '';
  const local = records.filter(({ process }) => process.host === first.process.host);
  const nics = [...channelsByNic(local)].sort(([a], [b]) => a - b);
  return nics.length === 0
    ? ''
    : `${first.process.host} sends on ${nics.map(([nic, count]) => `${nic}: ${count}`).join(', ')} (NIC: channels)`;
}

function tuningText(records: readonly LoggedRank[]): string {
  const choices = records.find((record) => record.choices.size > 0)?.choices;
  const runs: { name: string; from: number; text: string }[] = [];
  for (const [key, { algorithm, protocol, channels }] of choices ?? []) {
    const [name = '', bytes] = key.split(' ');
    const text = [algorithm, protocol, `${channels} ch`].filter((part) => part !== '').join(' ');
    if (!runs.some((run) => run.name === name && run.text === text)) runs.push({ name, from: Number(bytes), text });
  }
  return runs.map(({ name, from, text }) => `${name} from ${from} B ${text}`).join(', ');
}

/** All details of one rank, on every communicator that has it. */
export function printRank(model: LogModel, rank: number): void {
  const paint = colorsFor(process.stdout);
  for (const { id, ranks, nRanks } of model.communicators) {
    const record = ranks.get(rank);
    if (record === undefined) continue;
    const {
      process: { host, pid, environment, devices },
      cudaDev,
      nvmlDev,
      busId,
      started,
      completed,
      last,
    } = record;
    print(paint.bold(`rank ${rank} of ${nRanks}, communicator ${id}`));
    print(
      `  process   ${host}:${pid}, CUDA device ${cudaDev}${nvmlDev === undefined ? '' : `, NVML device ${nvmlDev}`}${busId === undefined ? '' : `, bus id ${busId}`}`,
    );
    print(
      `  init      ${started === undefined ? '' : `began at ${placeText(model, started)}, `}${completed === undefined ? `not finished; last line ${placeText(model, last)}` : `finished at ${placeText(model, completed)}`}`,
    );
    for (const [name, { value }] of environment) print(`  setting   ${name}=${value}`);
    for (const [network, { devices: list }] of devices)
      print(`  devices   ${network}: ${list.map(({ name }) => name).join(' ') || 'none'}`);
    for (let channel = 0; channel * 2 < record.ring.length; channel++) {
      if ((record.ring[channel * 2] ?? -1) >= 0)
        print(
          `  ring ${String(channel).padEnd(5)}${record.ring[channel * 2] ?? ''} -> ${rank} -> ${record.ring[channel * 2 + 1] ?? ''}`,
        );
    }
    for (let channel = 0; channel * TREE_STRIDE < record.trees.length; channel++) {
      const [first = UNKNOWN, ...others] = record.trees.subarray(channel * TREE_STRIDE, channel * TREE_STRIDE + 4);
      if (first !== UNKNOWN)
        print(`  tree ${String(channel).padEnd(5)}${[first, ...others.slice(0, 2)].join('/')} -> ${rank} -> ${others[2] ?? ''}`);
    }
    for (const { peer, end, transport, channels, place } of record.links) {
      const nic =
        transport.nic === undefined
          ? ''
          : `/${transport.nic}${transport.via === undefined ? '' : `(${transport.via})`}${transport.gdr === true ? '/GDRDMA' : ''}`;
      print(
        `  link      ${end === 'send' ? 'to' : 'from'} ${peer} on ${counted(channels, 'channel')}: ${transport.name}${nic}  ${paint.dim(placeText(model, place))}`,
      );
    }
    print('');
  }
}
