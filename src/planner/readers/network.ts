import type { TextPlace, ToolFormat, ToolLine } from './section.js';

/** `ip addr`, `ip link` and their short forms (`-br`). */
export interface Interfaces {
  readonly interfaces: readonly Interface[];
}

export interface Interface {
  readonly name: string;
  /** Undefined where the output does not say. */
  readonly isUp: boolean | undefined;
  readonly mtu: number | undefined;
  readonly addresses: readonly string[];
  readonly place: TextPlace;
}

type GrowingInterface = { -readonly [Key in keyof Interface]: Interface[Key] } & { addresses: string[] };

export const interfaceList: ToolFormat<'ip', Interfaces> = {
  name: 'ip',
  commands: ['ip addr', 'ip -br addr', 'ip link', 'ip -br link', 'ifconfig'],
  holds: /^\d+: |<[A-Z_,]+>|^\s+inet|\s(?:UP|DOWN|UNKNOWN)\s/,
  needles: ['<broadcast', '<loopback', ' mtu ', 'unknown ', ' up '],
  begins:
    /^\d+: \S{1,40}: <[A-Z_,-]{2,120}> mtu \d|^(?:lo|en\w{1,14}|eth\d{1,3}|ib\w{1,10}|bond\d{1,3}|docker0)\s+(?:UP|DOWN|UNKNOWN)\s|^\S{2,16}: flags=\d+</,
  parse: parseInterfaces,
};

function parseInterfaces(lines: readonly ToolLine[]): Interfaces | undefined {
  const interfaces: GrowingInterface[] = [];
  for (const { text, place } of lines) {
    const [, name, flags = '', mtu] =
      /^(?:\d+: )?([\w.@:-]{1,40}?)(?:@\S{1,40})?: (?:flags=\d+)?<([A-Za-z_,-]{2,120})> {1,2}mtu (\d+)/.exec(text) ?? [];
    if (name !== undefined) {
      // An interface without a carrier is administratively up.
      const isUp = /\bUP\b/.test(flags) && (/LOWER_UP|RUNNING|LOOPBACK/.test(flags) || !/NO-CARRIER/.test(flags));
      interfaces.push({ name, isUp, mtu: Number(mtu), addresses: [], place });
      continue;
    }
    const [, brief, state, rest = ''] = /^([\w.-]{1,40})(?:@\S{1,40})?\s+(UP|DOWN|UNKNOWN)\s*(.*)$/.exec(text) ?? [];
    if (brief !== undefined) {
      const addresses = rest.split(/\s+/).flatMap((word) => (/^[0-9a-f.:]+\/\d{1,3}$/i.test(word) ? [word] : []));
      interfaces.push({ name: brief, isUp: state !== 'DOWN', mtu: undefined, addresses, place });
      continue;
    }
    const [, address] = /^\s+inet6? ([0-9a-f.:]+(?:\/\d{1,3})?)/i.exec(text) ?? [];
    if (address !== undefined) interfaces.at(-1)?.addresses.push(address);
  }
  return interfaces.length === 0 ? undefined : { interfaces };
}

/** `ethtool` and `ethtool -S` of one or more interfaces. */
export interface EthernetPorts {
  readonly ports: readonly {
    /** Empty for counters, which do not name it. */
    readonly name: string;
    /** Mb/s. */
    readonly speed: number | undefined;
    /** Of its fastest supported link mode, Mb/s. */
    readonly fastest: number | undefined;
    readonly isHalfDuplex: boolean;
    readonly hasLink: boolean | undefined;
    readonly counters: ReadonlyMap<string, number>;
    readonly place: TextPlace;
  }[];
}

export const ethernetPorts: ToolFormat<'ethtool', EthernetPorts> = {
  name: 'ethtool',
  commands: ['ethtool', 'ethtool -S'],
  holds: /^Settings for |^NIC statistics:|^\s+\S.{0,80}:|^\s+\d{2,7}base/,
  needles: ['settings for ', 'nic statistics:'],
  begins: /^Settings for \S{1,40}:|^NIC statistics:/,
  parse: (lines) => {
    const ports: {
      name: string;
      speed: number | undefined;
      fastest: number | undefined;
      isHalfDuplex: boolean;
      hasLink: boolean | undefined;
      counters: Map<string, number>;
      place: TextPlace;
    }[] = [];
    let isSupported = false;
    for (const { text, place } of lines) {
      const [, name] = /^Settings for (\S{1,40}):/.exec(text) ?? [];
      if (name !== undefined || text.startsWith('NIC statistics:'))
        ports.push({
          name: name ?? '',
          speed: undefined,
          fastest: undefined,
          isHalfDuplex: false,
          hasLink: undefined,
          counters: new Map(),
          place,
        });
      const port = ports.at(-1);
      if (port === undefined) continue;
      // The list of modes goes on in lines without a name.
      if (text.includes(':')) isSupported = /^\s+Supported link modes:/.test(text);
      if (isSupported)
        for (const [, mode] of text.matchAll(/\b(\d{2,7})base/g)) port.fastest = Math.max(port.fastest ?? 0, Number(mode));
      if (/^\s+Duplex: Half\b/.test(text)) port.isHalfDuplex = true;
      const [, speed] = /^\s+Speed: (\d+)Mb\/s/.exec(text) ?? [];
      if (speed !== undefined) port.speed = Number(speed);
      const [, link] = /^\s+Link detected: (yes|no)/.exec(text) ?? [];
      if (link !== undefined) port.hasLink = link === 'yes';
      const [, counter, count] = /^\s+([\w[\]. -]{2,60}): (\d+)\s*$/.exec(text) ?? [];
      if (counter !== undefined && port.counters.size < 5000) port.counters.set(counter.trim(), Number(count));
    }
    return ports.length === 0 ? undefined : { ports };
  },
};
