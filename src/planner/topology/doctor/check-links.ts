import { pciLink } from '../bandwidths.js';
import { isWholeInteger } from '../c-numbers.js';
import { linkSpeeds } from '../catalogue/build.js';
import { gpuModels } from '../catalogue/gpus.js';
import { formatGBps } from '../format.js';
import type { Gain } from './measure.js';
import { gpuName, integer, type NetDevice, type Inventory, type PciDevice } from './inventory.js';

/** Checks PCI links: their attributes, and NCCL's reading of them. */
export function checkLinks(inventory: Inventory): void {
  for (const pci of inventory.pcis) {
    checkSpeedText(inventory, pci);
    checkWidth(inventory, pci);
    checkBottleneck(inventory, pci);
  }
  checkGpuLinks(inventory);
  for (const net of inventory.nets) checkNicLink(inventory, net);
}

/** Gb/s of one lane and direction, by GT/s: generations 1 and 2 lose a fifth to their code. */
const laneGbps = new Map([
  [2.5, 1.5],
  [5, 3],
  [8, 6],
  [16, 12],
  [32, 24],
  [64, 48],
]);

function checkSpeedText({ findings }: Inventory, { element, bandwidthGBps }: PciDevice): void {
  const speed = element.attributes.get('link_speed');
  if (speed === undefined || pciLink(16, speed).known) return;
  const width = integer(element, 'link_width', 0);
  const meant = laneGbps.get(Number.parseFloat(speed));
  const couldBe = meant === undefined ? undefined : ((width === 0 ? 16 : width) * meant) / 8;
  const fitting = Object.values(linkSpeeds).find((text) => Number.parseFloat(text) === Number.parseFloat(speed));
  findings.add(element, {
    code: 'link-speed-unknown',
    severity: couldBe !== undefined && couldBe > bandwidthGBps ? 'warning' : speed === '' ? 'info' : 'warning',
    problem: `link_speed="${speed}" matches none of the texts that NCCL knows`,
    consequence: `it silently counts as Gen3: ${formatGBps(bandwidthGBps)}${couldBe === undefined ? '' : ` instead of ${formatGBps(couldBe)}`} GB/s`,
    ...(couldBe === undefined ? {} : { gbps: { is: bandwidthGBps, couldBe } }),
    remedy:
      fitting === undefined
        ? `write what the device has: ${Object.values(linkSpeeds)
            .map((text) => `"${text}"`)
            .join(', ')}`
        : `write "${fitting}"`,
  });
}

function checkWidth({ findings }: Inventory, { element, bandwidthGBps }: PciDevice): void {
  const text = element.attributes.get('link_width');
  if (text === undefined) return;
  const width = integer(element, 'link_width', 0);
  const isGarbled = text !== '' && !isWholeInteger(text);
  if (width > 0 && width <= 32 && !isGarbled) return;
  // Speed "" and width 0 together are those of a virtual machine, and have a finding already.
  const consequence =
    width === 0
      ? `NCCL counts it as 16 lanes: ${formatGBps(bandwidthGBps)} GB/s`
      : `NCCL counts ${width} lanes: ${formatGBps(bandwidthGBps)} GB/s`;
  findings.add(element, {
    code: 'link-width-unknown',
    severity: isGarbled || width > 32 ? 'warning' : 'info',
    problem: `link_width="${text}" is no number of lanes`,
    consequence,
    remedy: 'write the lanes that lspci -vv shows as LnkSta Width: 1, 4, 8 or 16',
  });
}

/** Checks for a link up with less than half of the bandwidth of a device below it. */
function checkBottleneck({ findings, graph }: Inventory, pci: PciDevice): void {
  const { element, bandwidthGBps, children } = pci;
  const fastest = Math.max(0, ...children.map((child) => child.bandwidthGBps));
  if (bandwidthGBps <= 0 || bandwidthGBps * 2 > fastest) return;
  const model = children.find((child) => child.bandwidthGBps === fastest)?.element;
  const gain = graph?.measure.gain((copyOf) => {
    for (const name of ['link_speed', 'link_width']) copyOf(element).attributes.set(name, model?.attributes.get(name) ?? '');
  });
  const isTrap = bandwidthGBps < 1;
  findings.add(element, {
    code: 'link-bottleneck',
    severity: isTrap ? 'error' : bandwidthGBps * 2 < fastest ? 'warning' : 'info',
    problem: `the link of this switch has ${formatGBps(bandwidthGBps)} GB/s (${element.attributes.get('link_speed') ?? ''} x${
      element.attributes.get('link_width') ?? ''
    }), devices below it have ${formatGBps(fastest)} GB/s`,
    consequence: gain === undefined ? 'what goes to the CPU or to another switch gets no more than that' : describeGain(gain),
    ...(gain === undefined ? {} : { gbps: { is: gain.is, couldBe: gain.couldBe } }),
    remedy: isTrap
      ? 'a virtual switch shows a link that does not exist: write the physical link_speed and link_width, and pass the file as NCCL_TOPO_FILE'
      : 'check with lspci -vv that the link is trained at its full speed and width; write what it has if the file is wrong',
  });
}

/** `GPU 3 to CPU 0 gets 0.1875 instead of 48 GB/s (and 7 more pairs)`. */
export function describeGain({ between, is, couldBe, pairs }: Gain): string {
  const more = pairs > 1 ? ` (and ${pairs - 1} more pair${pairs > 2 ? 's' : ''})` : '';
  return is === 0
    ? `${between}: no path, where there could be ${formatGBps(couldBe)} GB/s${more}`
    : `${between} gets ${formatGBps(is)} instead of ${formatGBps(couldBe)} GB/s${more}`;
}

/** Checks for GPUs whose link is slower than that of their model, or of others of the same kind. */
function checkGpuLinks({ findings, gpus }: Inventory): void {
  const seen = new Set<PciDevice>();
  for (const gpu of gpus) {
    const { pci } = gpu;
    // POWER9 gives its GPUs 8 lanes, because data use NVLink.
    if (seen.has(pci) || pci.cpu.attributes.get('arch') === 'ppc64') continue;
    seen.add(pci);
    const device = integer(pci.element, 'device', -1);
    const model =
      integer(pci.element, 'vendor', 0x10de) === 0x10de ? gpuModels.find((candidate) => candidate.device === device) : undefined;
    const twins = gpus.filter((other) => other.pci.element.attributes.get('device') === pci.element.attributes.get('device'));
    const couldBe = Math.max(
      model === undefined ? 0 : pciLink(16, linkSpeeds[model.pciGeneration]).bandwidthGBps,
      ...twins.map((other) => other.pci.bandwidthGBps),
    );
    if (!pciLink(16, pci.element.attributes.get('link_speed') ?? '').known || pci.bandwidthGBps * 1.5 > couldBe) continue;
    findings.add(pci.element, {
      code: 'gpu-link-slow',
      severity: 'warning',
      problem: `its link is ${pci.element.attributes.get('link_speed') ?? ''} x${pci.element.attributes.get('link_width') ?? ''}, and ${
        model === undefined ? 'others of the same kind have more' : `${model.name} has Gen${model.pciGeneration} x16`
      }`,
      consequence: `${gpuName(gpu)} reaches its CPU and NICs with ${formatGBps(pci.bandwidthGBps)} instead of ${formatGBps(couldBe)} GB/s`,
      gbps: { is: pci.bandwidthGBps, couldBe },
      remedy:
        'an idle GPU shows its sleeping link: dump again while it works; if it stays, look at the slot, riser and BIOS (lspci -vv, LnkSta)',
    });
  }
}

/** Checks for a port that is faster than the link of its card. */
function checkNicLink({ findings }: Inventory, { element, pci, bandwidthGBps }: NetDevice): void {
  if (pci === undefined || integer(element, 'speed', 0) <= 0 || pci.bandwidthGBps === 0) return;
  if (!pciLink(16, pci.element.attributes.get('link_speed') ?? '').known || pci.bandwidthGBps >= bandwidthGBps * 0.9) return;
  findings.add(pci.element, {
    code: 'nic-link-slow',
    severity: 'warning',
    problem: `its port has ${formatGBps(bandwidthGBps)} GB/s, its PCI link ${formatGBps(pci.bandwidthGBps)} GB/s`,
    consequence: `the card moves ${formatGBps(pci.bandwidthGBps)} instead of ${formatGBps(bandwidthGBps)} GB/s`,
    gbps: { is: pci.bandwidthGBps, couldBe: bandwidthGBps },
    remedy:
      'put it into a slot of its generation with 16 lanes; if it is in one, the file has the wrong link_speed or link_width',
  });
}

/** PCI devices from `pci` up to its CPU, itself first. */
export function upwards(pci: PciDevice | undefined): PciDevice[] {
  return pci === undefined ? [] : [pci, ...upwards(pci.parent)];
}
