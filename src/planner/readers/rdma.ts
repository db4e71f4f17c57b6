import type { TextPlace, ToolFormat, ToolLine } from './section.js';

/** Ports of RDMA devices, as `ibstat`, `ibstatus`, `ibv_devinfo`, `rdma link` and `ibdev2netdev` show them. */
export interface RdmaPorts {
  readonly ports: readonly RdmaPort[];
}

export interface RdmaPort {
  readonly device: string;
  readonly port: number;
  /** Undefined where the tool does not say. */
  readonly isActive: boolean | undefined;
  /** `Polling`, `Disabled`, `LinkUp`; empty where unknown. */
  readonly physical: string;
  /** Gb/s */
  readonly rate: number | undefined;
  /** `InfiniBand`, `Ethernet`; empty where unknown. */
  readonly layer: string;
  /** Type of the card, as `MT4129`. */
  readonly card: string;
  readonly activeMtu: number | undefined;
  readonly maxMtu: number | undefined;
  /** The network interface of the port. */
  readonly netdev: string | undefined;
  readonly gids: readonly Gid[];
  readonly place: TextPlace;
}

/** A row of a GID table. */
export interface Gid {
  readonly device: string;
  readonly port: number;
  readonly index: number;
  readonly gid: string;
  /** `v1`, `v2`, `IB`; empty where unknown. */
  readonly version: string;
  readonly netdev: string | undefined;
  readonly place: TextPlace;
}

type GrowingPort = { -readonly [Key in keyof RdmaPort]: RdmaPort[Key] } & { gids: Gid[] };

const bigRate = /^\s*Rate:\s*(\d+)/i;

export const rdmaPorts: ToolFormat<'ports', RdmaPorts> = {
  name: 'ports',
  commands: ['ibstat', 'ibstatus', 'ibv_devinfo', 'ibv_devinfo -v', 'rdma link', 'ibdev2netdev'],
  holds: /^(?:CA '|hca_id:|Infiniband device |(?:\d+: )?link |\S{2,40} port \d+ ==> )|^\s+\S/,
  needles: ["ca '", 'hca_id:', 'infiniband device ', ' physical_state ', ' ==> ', '\tport:', 'gid['],
  begins:
    /^(?:CA '[^'\n]{1,40}'|hca_id:\s|Infiniband device '[^'\n]{1,40}' port \d+ status|(?:\d+: )?link \S{1,40}\/\d+ .{0,200}state \w|\S{2,40} port \d+ ==> \S+ \()|^\s+port:\s+\d+\s*$|^\s*GID\[ *\d+\]:/,
  parse: parsePorts,
};

function parsePorts(lines: readonly ToolLine[]): RdmaPorts | undefined {
  const ports: GrowingPort[] = [];
  let device = '';
  let card = '';
  const begin = (name: string, port: number, place: TextPlace): GrowingPort => {
    const made: GrowingPort = {
      device: name,
      port,
      isActive: undefined,
      physical: '',
      rate: undefined,
      layer: '',
      card,
      activeMtu: undefined,
      maxMtu: undefined,
      netdev: undefined,
      gids: [],
      place,
    };
    ports.push(made);
    return made;
  };
  for (const { text, place } of lines) {
    const [, next] = /^(?:CA '|hca_id:\s*)([^\s']+)/.exec(text) ?? [];
    if (next !== undefined) {
      device = next;
      card = '';
    }
    card = /^\s*(?:CA type|vendor_part_id):\s*(\S+)/.exec(text)?.[1] ?? card;
    const [, mapped, mappedPort, netdev, up] = /^(\S{2,40}) port (\d+) ==> (\S+) \((Up|Down)\)/i.exec(text) ?? [];
    if (mapped !== undefined) {
      const made = begin(mapped, Number(mappedPort), place);
      made.netdev = netdev;
      made.isActive = up?.toLowerCase() === 'up';
      continue;
    }
    const [, number] = /^\s*(?:Port |port:\s*)(\d+):?\s*$/.exec(text) ?? [];
    if (number !== undefined) begin(device, Number(number), place);
    const [, status, port] = /^Infiniband device '(\S{1,40})' port (\d+) status/i.exec(text) ?? [];
    if (status !== undefined) begin(status, Number(port), place);
    const [, link, index] = /^(?:\d+: )?link (\S{1,40})\/(\d+) /.exec(text) ?? [];
    if (link !== undefined) begin(link, Number(index), place);
    let last = ports.at(-1);
    const [, gidIndex, gid, gidVersion = ''] =
      /^\s*GID\[ *(\d+)\]:\s*([0-9a-fA-F:.]+)(?:,? ?\(?(RoCE v[12]|IB\/RoCE v1|InfiniBand)?)/.exec(text) ?? [];
    if (gidIndex !== undefined && gid !== undefined) {
      last ??= begin(device, 1, place);
      const version = /v2/.test(gidVersion) ? 'v2' : /v1/.test(gidVersion) ? 'v1' : '';
      last.gids.push({ device: last.device, port: last.port, index: Number(gidIndex), gid, version, netdev: undefined, place });
      continue;
    }
    if (last === undefined) continue;
    const [, state] =
      /^\s*state:\s*(?:\d: )?(?:PORT_)?(\w+)/i.exec(text) ?? (link === undefined ? null : / state (\w+)/.exec(text)) ?? [];
    if (state !== undefined) last.isActive = /^active/i.test(state);
    last.physical =
      /^\s*phys(?:ical)? state:\s*(?:\d: )?(\S+)/i.exec(text)?.[1] ?? / physical_state (\S+)/.exec(text)?.[1] ?? last.physical;
    last.layer =
      /^\s*link_?\s?layer:\s*(\S+)/i.exec(text)?.[1] ??
      (link === undefined ? last.layer : text.includes(' netdev ') ? 'Ethernet' : 'InfiniBand');
    last.netdev = / netdev (\S+)/.exec(text)?.[1] ?? last.netdev;
    const [, rate] = bigRate.exec(text) ?? [];
    if (rate !== undefined) last.rate = Number(rate);
    const [, kind, mtu] = /^\s*(active|max)_mtu:\s*(\d+)/.exec(text) ?? [];
    if (kind === 'active') last.activeMtu = Number(mtu);
    else if (kind === 'max') last.maxMtu = Number(mtu);
  }
  return ports.length === 0 ? undefined : { ports };
}

/** `show_gids`: the GID tables of a host. */
export interface GidTable {
  readonly gids: readonly Gid[];
}

export const gidTable: ToolFormat<'gids', GidTable> = {
  name: 'gids',
  commands: ['show_gids'],
  holds: /^\S+\s+\d+\s+\d+\s+[0-9a-f:]+/i,
  needles: ['dev\tport\tindex', 'dev     port', 'ipv4'],
  begins: /^DEV\s+PORT\s+INDEX\s+GID\b/,
  parse: parseGids,
};

function parseGids(lines: readonly ToolLine[]): GidTable | undefined {
  const gids: Gid[] = [];
  for (const { text, place } of lines) {
    const words = text.trim().split(/\s+/);
    const [device = '', port = '', index = '', gid = '', ...more] = words;
    if (!/^\d+$/.test(port) || !/^\d+$/.test(index) || !/^[0-9a-f]{1,4}:[0-9a-f:]{2,40}$/i.test(gid)) continue;
    const version = more.find((word) => /^v[12]$/i.test(word)) ?? '';
    const netdev = more.at(-1);
    gids.push({
      device,
      port: Number(port),
      index: Number(index),
      gid,
      version: version.toLowerCase(),
      netdev: netdev === undefined || netdev === version || /^\d+\.\d+\./.test(netdev) ? undefined : netdev,
      place,
    });
  }
  return { gids };
}

/** Kind of a GID's address. */
export function gidKind(gid: string): 'none' | 'link-local' | 'ipv4' | 'global' {
  const digits = expanded(gid);
  if (/^0*$/.test(digits)) return 'none';
  if (digits.startsWith('fe80')) return /^0{16}$/.test(digits.slice(16)) ? 'none' : 'link-local';
  return digits.startsWith(`${'0'.repeat(20)}ffff`) ? 'ipv4' : 'global';
}

/** `10.0.1.7` of a GID that stands for it. */
export function ipv4OfGid(gid: string): string | undefined {
  if (gidKind(gid) !== 'ipv4') return undefined;
  const tail = expanded(gid).slice(24);
  return [0, 2, 4, 6].map((at) => Number.parseInt(tail.slice(at, at + 2), 16)).join('.');
}

/** The 32 hexadecimal digits of an IPv6 address, short forms and an IPv4 tail included. */
function expanded(gid: string): string {
  const [, head = gid, tail] = /^(.*:)(\d{1,3}(?:\.\d{1,3}){3})$/.exec(gid) ?? [];
  const ipv4 = tail
    ?.split('.')
    .map((part) => Number(part).toString(16).padStart(2, '0'))
    .join('');
  const text = ipv4 === undefined ? gid : `${head}${ipv4.slice(0, 4)}:${ipv4.slice(4)}`;
  const [before = '', after] = text.split('::');
  const parts = (side: string) => side.split(':').filter((part) => part !== '');
  const [left, right] = [parts(before), parts(after ?? '')];
  const missing = after === undefined ? 0 : Math.max(0, 8 - left.length - right.length);
  return [...left, ...Array.from({ length: missing }, () => '0'), ...right]
    .map((part) => part.padStart(4, '0'))
    .join('')
    .toLowerCase();
}
