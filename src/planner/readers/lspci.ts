import type { TextPlace, ToolFormat, ToolLine } from './section.js';

/** `lspci -vvv`, whole or in parts: devices with their links and access control (ACS). */
export interface PciList {
  readonly devices: readonly PciDevice[];
}

export interface PciDevice {
  /** `0000:3b:00.0`, or without the domain as lspci prints it. */
  readonly busId: string;
  /** `PCI bridge: Broadcom / LSI PEX890xx …`; empty where only capabilities were kept. */
  readonly description: string;
  readonly isBridge: boolean;
  /** The link of the slot and card at best, and as it is. */
  readonly capable: PciLinkState | undefined;
  readonly actual: PciLinkState | undefined;
  /** Flags of `ACSCtl` that are on: `SrcValid`, `ReqRedir` … */
  readonly acs: readonly string[] | undefined;
  /** Vendor and device of the board, where `-nn` shows them. */
  readonly subsystem: readonly [vendor: number, device: number] | undefined;
  /** The first bus behind a bridge, as `1a`; undefined where it was not kept. */
  readonly secondary: string | undefined;
  /** Number of the NUMA node; undefined where it was not kept. */
  readonly numa: number | undefined;
  readonly place: TextPlace;
}

interface PciLinkState {
  readonly gtps: number;
  readonly width: number;
  /** True where lspci itself adds `(downgraded)`. */
  readonly isDowngraded: boolean;
}

const deviceForm = /^((?:[0-9a-f]{4,5}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (\S.*)$/i;

export const pciList: ToolFormat<'lspci', PciList> = {
  name: 'lspci',
  commands: ['lspci -vvv', 'lspci -vv', 'lspci -nn', 'lspci'],
  holds:
    /^(?:[0-9a-f]{4,5}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] |^\s*(?:ACSCtl|ACSCap|LnkCap|LnkSta|NUMA node|Subsystem):|^\s*Bus: primary=/i,
  patience: 300,
  needles: ['acsctl:', 'acscap:', 'lnkcap:', 'lnksta:', 'bridge: ', 'bridge [0', 'controller: ', 'controller [0'],
  begins:
    /^(?:[0-9a-f]{4,5}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] \w.{0,60}(?:bridge|controller)\b|^\s*(?:ACSCtl|ACSCap|LnkCap|LnkSta):\s/i,
  parse,
};

type Growing = { -readonly [Key in keyof PciDevice]: PciDevice[Key] };

function parse(lines: readonly ToolLine[]): PciList | undefined {
  const devices: Growing[] = [];
  const begin = (busId: string, description: string, place: TextPlace) =>
    devices.push({
      busId,
      description,
      isBridge: /\bbridge\b/i.test(description),
      capable: undefined,
      actual: undefined,
      acs: undefined,
      subsystem: undefined,
      secondary: undefined,
      numa: undefined,
      place,
    });
  let facts = 0;
  for (const { text, place } of lines) {
    const [, busId, description = ''] = deviceForm.exec(text) ?? [];
    if (busId !== undefined) {
      begin(busId.toLowerCase(), description, place);
      continue;
    }
    const [, secondary] = /^\s*Bus: primary=[0-9a-f]+, secondary=([0-9a-f]{2})/i.exec(text) ?? [];
    const [, numa] = /^\s*NUMA node: (\d+)/.exec(text) ?? [];
    const [, vendor, board] = /^\s*Subsystem: .*\[([0-9a-f]{4}):([0-9a-f]{4})\]/i.exec(text) ?? [];
    const open = devices.at(-1);
    if (open !== undefined && vendor !== undefined && board !== undefined)
      open.subsystem = [Number.parseInt(vendor, 16), Number.parseInt(board, 16)];
    if (open !== undefined && secondary !== undefined) open.secondary = secondary.toLowerCase();
    if (open !== undefined && numa !== undefined) open.numa = Number(numa);
    const [, kind, value = ''] = /^\s*(ACSCtl|LnkCap|LnkSta):\s*(.*)$/.exec(text) ?? [];
    if (kind === undefined) continue;
    facts++;
    // `lspci -vvv | grep ACSCtl` keeps no device.
    const last = devices.at(-1);
    if (last === undefined || (kind === 'ACSCtl' && last.acs !== undefined)) begin('', '', place);
    const device = devices.at(-1);
    if (device === undefined) continue;
    if (kind === 'ACSCtl') {
      device.acs = [...value.matchAll(/(\w+)\+/g)].map(([, flag = '']) => flag);
      continue;
    }
    const [, speed, width] = /Speed ([\d.]+)GT\/s.{0,30}?Width x(\d+)/.exec(value) ?? [];
    if (speed === undefined) continue;
    const state = { gtps: Number(speed), width: Number(width), isDowngraded: value.includes('downgraded') };
    if (kind === 'LnkCap') device.capable ??= state;
    else device.actual ??= state;
  }
  const isList = devices.length > 1 || devices[0]?.description.includes('NVIDIA') === true;
  return facts === 0 && !isList ? undefined : { devices };
}
