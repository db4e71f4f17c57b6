import type { DeviceEdit } from '../planner/plan/device-edits.js';
import { formatBusId } from '../planner/topology/format.js';
import type { Device } from './messages.js';

/** Changes that a link of the machine's drawing can have. */
export interface LinkEdits {
  readonly name: string;
  readonly edits: readonly (DeviceEdit & { readonly label: string })[];
}

/** Changes of a link, whose subject is `link/FROM>TO`: those of the device that it belongs to, or of a pair of GPUs. */
export function linkEdits(subject: string, devices: readonly Device[]): LinkEdits {
  const ends = subject.slice('link/'.length).split('>');
  const named = ends.map((end) => devices.find(({ subject: own, card }) => own === end || card === end));
  const [a, b] = named;
  const name = `Link from ${a?.name ?? ends[0] ?? ''} to ${b?.name ?? ends[1] ?? ''}`;
  const gpus = named.flatMap((each) => (each !== undefined && 'gpu' in each.off ? [each] : []));
  const [gpu] = gpus;
  if (gpu !== undefined && (gpus.length === 2 || ends.some((end) => end.startsWith('NVS')))) {
    const device = gpus.map(({ key }) => key).join('+');
    return {
      name,
      edits: [
        { what: 'half-nvlinks', device, label: 'Half of it' },
        { what: 'no-nvlinks', device, label: 'Remove it' },
      ],
    };
  }
  const net = named.find((each) => each !== undefined && 'nic' in each.off);
  if (net !== undefined && ends.includes(net.subject))
    return { name, edits: [{ what: 'half-speed', device: net.key, label: 'Half its speed' }] };
  const device = (gpu ?? net)?.key ?? switchOf(ends[0] ?? '');
  return { name, edits: device === undefined ? [] : [{ what: 'half-lanes', device, label: 'Half its PCIe lanes' }] };
}

/** Bus id of a PCI switch by its name in the drawing, `PCI/0-1b000`. */
function switchOf(end: string): string | undefined {
  const [, id] = /^PCI\/[\da-f]+-([\da-f]{1,12})$/.exec(end) ?? [];
  return id === undefined ? undefined : formatBusId(BigInt(`0x${id}`));
}
