import { counted } from '../../../counted.js';
import type { LogFinding } from '../finding.js';
import type { LogPlace } from '../line.js';

/** A line of a tool's output, with its place. */
export interface ToolLine {
  readonly text: string;
  readonly place: LogPlace;
}

/** `nvidia-smi topo -m`: GPUs that should be linked like the others, and are not. */
export function checkTopoMatrix(lines: readonly ToolLine[]): LogFinding[] {
  const header = lines.find(({ text }) => /^\s*(?:\x1b\[\d*m)?\s*GPU0\b/.test(text));
  if (header === undefined) return [];
  const names = plain(header.text)
    .trim()
    .split(/\t+|\s{2,}/)
    .map((name) => name.trim())
    // A column `GPU NUMA ID` follows the devices.
    .filter((name) => /^(?:GPU\d+|NIC\d+|(?:mlx|bnxt|irdma|efa|hfi|cxi)\w*)$/i.test(name));
  const cells: { readonly from: string; readonly to: string; readonly link: string; readonly place: LogPlace }[] = [];
  for (const { text, place } of lines) {
    const [from = '', ...links] = plain(text).trim().split(/\s+/);
    if (!/^GPU\d+$/.test(from) || !links.some((link) => link === 'X')) continue;
    links.slice(0, names.length).forEach((link, index) => cells.push({ from, to: names[index] ?? '', link, place }));
  }
  const gpus = cells.filter(({ to, link }) => to.startsWith('GPU') && link !== 'X');
  const nvlinks = gpus.filter(({ link }) => link.startsWith('NV'));
  const findings: LogFinding[] = [];
  const without = gpus.filter(({ link }) => !link.startsWith('NV'));
  // On many machines some pairs have no NVLink by design: one GPU must be in all of them, or the others must all be linked.
  const linked = new Set(nvlinks.map(({ from }) => from));
  const lost = [...new Set(gpus.map(({ from }) => from))].filter((gpu) => !linked.has(gpu));
  const othersAreLinked = lost.length < linked.size && linked.size > 2 && nvlinks.length === linked.size * (linked.size - 1);
  if (without.length > 0 && (othersAreLinked || (nvlinks.length > without.length && hasCulprit(without)))) {
    const worst = mostCommon(without.map(({ from }) => from));
    findings.push({
      code: 'nvlink-degraded',
      severity: 'error',
      kind: 'fault',
      explains: ['bandwidth-low', 'shm-despite-nvlink'],
      problem: `nvidia-smi topo -m: ${worst ?? ''} has no NVLink to ${counted(without.filter(({ from }) => from === worst).length, 'GPU')} (${without[0]?.link ?? ''}), while other pairs have`,
      cause: 'NVLinks of that GPU are down',
      remedy: 'nvidia-smi nvlink -s; dmesg -T | grep -i xid; reset the GPU or drain the host',
      places: without.slice(0, 3).map(({ place }) => place),
    });
  }
  const counts = nvlinks.map(({ link }) => Number(link.slice(2)));
  const most = Math.max(0, ...counts);
  const fewer = nvlinks.filter(({ link }) => Number(link.slice(2)) < most);
  // On machines without NVSwitch pairs have different numbers by design; a pair must then agree both ways.
  const oneWay = nvlinks.find(({ from, to, link }) =>
    nvlinks.some((other) => other.from === to && other.to === from && other.link !== link),
  );
  const switched = fewer.length > 0 && fewer.length <= nvlinks.length / 2 && hasCulprit(fewer);
  if (oneWay !== undefined || switched) {
    const [first] = oneWay === undefined ? fewer : [oneWay];
    findings.push({
      code: oneWay === undefined ? 'nvlink-degraded' : 'nvlink-asymmetric',
      severity: 'error',
      kind: 'fault',
      explains: ['bandwidth-low'],
      problem:
        oneWay === undefined
          ? `nvidia-smi topo -m: ${mostCommon(fewer.map(({ from }) => from)) ?? ''} has ${first?.link ?? ''} to other GPUs, others have NV${most}`
          : `nvidia-smi topo -m: ${oneWay.from} and ${oneWay.to} do not have the same number of NVLinks both ways`,
      cause: 'NVLinks are down',
      remedy: 'nvidia-smi nvlink -s; reset the GPU; reseat or replace the bridge',
      places: first === undefined ? [] : [first.place],
    });
  }
  return findings;
}

/** One GPU is in every pair that has fewer links. */
function hasCulprit(pairs: readonly { readonly from: string; readonly to: string }[]): boolean {
  return [...new Set(pairs.map(({ from }) => from))].some((gpu) => pairs.every(({ from, to }) => from === gpu || to === gpu));
}

/** Counters that stay at zero on a link in order; those of corrected errors (FEC) and of traffic do not. */
const nvlinkTrouble =
  /(?:replay|recovery|crc|uncorrect\w*|fatal|effective|overrun|malformed packet|link integrity|rx(?: remote| general)?) errors?|recovery failed/i;

/** `nvidia-smi nvlink -s` and `-e`: links that are down on some GPUs, and errors. */
export function checkNvlink(lines: readonly ToolLine[]): LogFinding[] {
  const gpus: { readonly name: string; active: number; inactive: number; readonly place: LogPlace }[] = [];
  const errors: { readonly gpu: string; readonly text: string; readonly place: LogPlace }[] = [];
  for (const { text, place } of lines) {
    const [, name] = /^GPU (\d+):/.exec(text) ?? [];
    if (name !== undefined) gpus.push({ name: `GPU ${name}`, active: 0, inactive: 0, place });
    const gpu = gpus.at(-1);
    if (gpu === undefined) continue;
    if (/Link \d+: <?inactive/i.test(text)) gpu.inactive++;
    else if (/Link \d+: [\d.]+ GB\/s/.test(text)) gpu.active++;
    const [, kind, count] = /Link \d+: ([\w ]{3,40}): (\d+)\s*$/i.exec(text) ?? [];
    if (Number(count) > 0 && nvlinkTrouble.test(kind ?? '')) errors.push({ gpu: gpu.name, text: text.trim(), place });
  }
  const most = Math.max(0, ...gpus.map(({ active }) => active));
  const fewer = gpus.filter(({ active, inactive }) => active + inactive > 0 && active < most);
  const findings: LogFinding[] = [];
  if (fewer.length > 0) {
    findings.push({
      code: 'nvlink-degraded',
      severity: 'error',
      kind: 'fault',
      explains: ['bandwidth-low'],
      problem: `${fewer
        .map(({ name, active }) => `${name} has ${active}`)
        .slice(0, 4)
        .join(', ')} active NVLinks, others ${most}`,
      cause: 'links are down: GPU, bridge, NVSwitch',
      remedy: 'dmesg -T | grep -i xid; reset the GPU or drain the host',
      places: fewer.slice(0, 4).map(({ place }) => place),
    });
  }
  const [first] = errors;
  if (first !== undefined) {
    findings.push({
      code: 'nvlink-errors',
      severity: 'warning',
      kind: 'failure',
      explains: ['bandwidth-low'],
      problem: `NVLink counts errors on ${[...new Set(errors.map(({ gpu }) => gpu))].slice(0, 4).join(', ')}: ${first.text}`,
      cause: 'a bad link, connector or bridge',
      remedy: 'nvidia-smi nvlink -re, run again, and see whether they grow',
      places: errors.slice(0, 4).map(({ place }) => place),
    });
  }
  return findings;
}

interface Port {
  readonly name: string;
  active: boolean | undefined;
  physical: string;
  rate: number | undefined;
  layer: string;
  /** Type of the card, as `MT4129`. */
  readonly card: { type: string };
  readonly place: LogPlace;
}

/** `ibstat`, `ibstatus`, `ibv_devinfo` and `rdma link`: ports that are down or slower than their like. */
export function checkPorts(lines: readonly ToolLine[]): LogFinding[] {
  const all = readPorts(lines);
  // The ports of the fabric are alike; others, such as those for management, may be slow or unused.
  const kindOf = ({ layer, card }: Port) => `${layer} ${card.type}`;
  const fabric = mostCommon(all.filter(({ active }) => active === true).map(kindOf));
  const ports = fabric === undefined ? all : all.filter((port) => kindOf(port) === fabric);
  const up = ports.filter(({ active }) => active === true);
  const down = ports.filter(({ active }) => active === false);
  const findings: LogFinding[] = [];
  if (down.length > 0) {
    findings.push({
      code: 'port-down',
      severity: 'warning',
      kind: up.length > down.length ? 'fault' : 'risk',
      explains: ['ib-retry-exceeded', 'nic-unused', 'net-mismatch', 'bandwidth-low'],
      problem: `${down
        .map(({ name, physical }) => `${name}${physical === '' ? '' : ` (${physical})`}`)
        .slice(0, 6)
        .join(', ')} ${down.length === 1 ? 'is' : 'are'} not active, ${
        up.length === 0 ? 'and no other port is' : `${counted(up.length, 'other port')} ${up.length === 1 ? 'is' : 'are'}`
      }`,
      cause: 'cable, transceiver, switch port or subnet manager; or a port that is meant to be unused',
      remedy: "mlxlink -d <device> -m; the switch's port; sminfo for the subnet manager",
      places: down.slice(0, 4).map(({ place }) => place),
    });
  }
  const best = Math.max(0, ...up.map(({ rate = 0 }) => rate));
  const slow = up.filter(({ rate }) => rate !== undefined && rate < best);
  if (slow.length > 0 && slow.length < up.length / 2) {
    findings.push({
      code: 'port-slow',
      severity: 'warning',
      kind: 'cost',
      explains: ['bandwidth-low', 'nic-unused'],
      problem: `${slow
        .map(({ name, rate }) => `${name} has ${rate ?? ''} Gb/s`)
        .slice(0, 4)
        .join(', ')}, others ${best}`,
      cause: 'a management or storage NIC, or a link that trained down',
      remedy: 'leave it out with NCCL_IB_HCA if it is not meant for NCCL; else check cable and switch port',
      places: slow.slice(0, 4).map(({ place }) => place),
    });
  }
  return findings;
}

function readPorts(lines: readonly ToolLine[]): Port[] {
  const ports: Port[] = [];
  let device = '';
  let card = { type: '' };
  const begin = (name: string, place: LogPlace) =>
    ports.push({ name, active: undefined, physical: '', rate: undefined, layer: '', card, place });
  for (const { text, place } of lines) {
    const [, next] = /^(?:CA '|hca_id:\s*)([^\s']+)/.exec(text) ?? [];
    if (next !== undefined) {
      device = next;
      card = { type: '' };
    }
    card.type = /^\s*(?:CA type|vendor_part_id):\s*(\S+)/.exec(text)?.[1] ?? card.type;
    const [, number] = /^\s*(?:Port |port:\s*)(\d+):?\s*$/.exec(text) ?? [];
    if (number !== undefined) begin(`${device}:${number}`, place);
    const [, status, port] = /^Infiniband device '(\S{1,40})' port (\d+) status/i.exec(text) ?? [];
    if (status !== undefined) begin(`${status}:${port ?? ''}`, place);
    const [, link, index] = /^(?:\d+: )?link (\S{1,40})\/(\d+) /.exec(text) ?? [];
    if (link !== undefined) begin(`${link}:${index ?? ''}`, place);
    const last = ports.at(-1);
    if (last === undefined) continue;
    const [, state] =
      /^\s*state:\s*(?:\d: )?(?:PORT_)?(\w+)/i.exec(text) ?? (link === undefined ? null : / state (\w+)/.exec(text)) ?? [];
    if (state !== undefined) last.active = /^active/i.test(state);
    last.physical =
      /^\s*phys(?:ical)? state:\s*(?:\d: )?(\S+)/i.exec(text)?.[1] ?? / physical_state (\S+)/.exec(text)?.[1] ?? last.physical;
    last.layer =
      /^\s*link_?\s?layer:\s*(\S+)/i.exec(text)?.[1] ??
      (link === undefined ? last.layer : text.includes(' netdev ') ? 'Ethernet' : 'InfiniBand');
    const [, rate] = /^\s*Rate:\s*(\d+)/i.exec(text) ?? [];
    if (rate !== undefined) last.rate = Number(rate);
  }
  return ports;
}

function plain(text: string): string {
  return text.replaceAll(/\u001b\[[0-9;]*m/g, '');
}

function mostCommon(names: readonly string[]): string | undefined {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0];
}
