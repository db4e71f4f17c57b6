import { nvLinkGBps } from '../bandwidths.js';
import { gpuModels } from '../catalogue/gpus.js';
import { formatGBps } from '../format.js';
import { childrenNamed, type XmlElement } from '../xml/tree.js';
import { describeGain } from './check-links.js';
import { deviceKey, type GpuDevice, gpuName, integer, type Inventory } from './inventory.js';

/** Checks NVLinks and C2C: compares a GPU with others of its kind, and the targets of its links. */
export function checkNvlinks(inventory: Inventory): void {
  // The first of ranks that share a GPU represents all.
  const gpus = inventory.gpus.filter((gpu) => childrenNamed(gpu.pci.element, 'gpu')[0] === gpu.element);
  const used = gpus.filter(({ element }) => element.attributes.has('rank'));
  checkCounts(inventory, used.length > 0 ? used : gpus);
  for (const gpu of gpus) checkTargets(inventory, gpu, gpus);
}

function checkCounts({ findings, graph }: Inventory, gpus: readonly GpuDevice[]): void {
  for (const gpu of gpus) {
    const { element, pci } = gpu;
    const sm = integer(element, 'sm', 0);
    const model = gpuModels.find(({ device }) => device === integer(pci.element, 'device', -1));
    const count = linkCount(element);
    const twins = gpus.filter((other) => integer(other.element, 'sm', 0) === sm);
    // The number that most others have; corners of a mesh may have fewer.
    const most = Math.max(...twins.map((other) => linkCount(other.element)));
    const isOutlier = twins.filter((other) => linkCount(other.element) < most).length * 2 <= twins.length;
    const richest = twins.find((other) => linkCount(other.element) === most);
    if (count < most && isOutlier && richest !== undefined) {
      const toSwitch = childrenNamed(richest.element, 'nvlink').every(
        (link) => link.attributes.get('tclass')?.startsWith('0x0680') ?? false,
      );
      const gain = toSwitch
        ? graph?.measure.gain((copyOf) => {
            const copy = copyOf(element);
            copy.children.splice(0, copy.children.length, ...childrenNamed(richest.element, 'nvlink'));
          })
        : undefined;
      findings.add(element, {
        code: 'nvlink-unequal',
        severity: count === 0 ? 'error' : 'warning',
        problem: `it has ${count === 0 ? 'no NVLink' : `${count} NVLinks`}, ${gpuName(richest)} of the same kind has ${most}`,
        consequence:
          gain !== undefined
            ? `${describeGain(gain)}${count === 0 ? '; NVLink SHARP is off for all' : ''}`
            : `${formatGBps(count * nvLinkGBps(sm))} instead of ${formatGBps(most * nvLinkGBps(sm))} GB/s over NVLink`,
        gbps:
          gain === undefined
            ? { is: count * nvLinkGBps(sm), couldBe: most * nvLinkGBps(sm) }
            : { is: gain.is, couldBe: gain.couldBe },
        remedy: 'nvidia-smi nvlink -s shows which links are down; restart the fabric manager or reset the GPU, then dump again',
      });
    } else if (model !== undefined && (model.nvlink === 'switch' || count > 0) && count < model.nvlinks && gpus.length > 1) {
      findings.add(element, {
        code: 'nvlink-missing',
        severity: 'warning',
        problem: `it has ${count === 0 ? 'no NVLink' : `${count} NVLinks`} in the file, and ${model.name} has ${model.nvlinks}`,
        consequence: `${formatGBps(count * nvLinkGBps(sm))} instead of ${formatGBps(model.nvlinks * nvLinkGBps(sm))} GB/s over NVLink`,
        gbps: { is: count * nvLinkGBps(sm), couldBe: model.nvlinks * nvLinkGBps(sm) },
        remedy:
          count === 0
            ? 'a file without <nvlink> lets NCCL ask the driver; one for planning needs them: tccl topo complete adds them'
            : 'nvidia-smi nvlink -s shows which links are down',
      });
    }
    if (model?.c2c !== undefined && childrenNamed(element, 'c2c').length === 0) {
      const couldBe = (model.c2c.bandwidthMBps * model.c2c.count) / 1000;
      findings.add(element, {
        code: 'c2c-missing',
        severity: 'warning',
        problem: `it has no <c2c>, and ${model.name} has one`,
        consequence: `it reaches its CPU with ${formatGBps(pci.bandwidthGBps)} instead of ${formatGBps(couldBe)} GB/s`,
        gbps: { is: pci.bandwidthGBps, couldBe },
        remedy: `add <c2c bw="${model.c2c.bandwidthMBps}" count="${model.c2c.count}"/>, or leave NVLinks and C2C to NCCL`,
      });
    }
  }
}

function linkCount(gpu: XmlElement): number {
  return childrenNamed(gpu, 'nvlink').reduce((sum, link) => sum + integer(link, 'count', 0), 0);
}

function checkTargets({ findings }: Inventory, gpu: GpuDevice, gpus: readonly GpuDevice[]): void {
  const bandwidth = (count: number) => count * nvLinkGBps(integer(gpu.element, 'sm', 0));
  for (const link of childrenNamed(gpu.element, 'nvlink')) {
    if (!(link.attributes.get('tclass')?.startsWith('0x03') ?? false)) continue;
    const key = deviceKey(gpu.pci.cpu, link.attributes.get('target') ?? '');
    const target = gpus.find((other) => other.pci.key === key);
    const count = integer(link, 'count', 0);
    if (target === gpu) {
      findings.add(link, {
        code: 'nvlink-to-itself',
        severity: 'warning',
        problem: 'the NVLink leads to the GPU that it leaves',
        consequence: `its ${formatGBps(bandwidth(count))} GB/s join nothing: the GPU reaches others over PCI with ${formatGBps(gpu.pci.bandwidthGBps)} GB/s`,
        gbps: { is: gpu.pci.bandwidthGBps, couldBe: bandwidth(count) },
        remedy: 'write the bus id of the GPU at the other end (nvidia-smi nvlink -p), or remove the link',
      });
    } else if (target === undefined) {
      findings.add(link, {
        code: 'nvlink-gpu-absent',
        severity: 'info',
        problem: 'the NVLink leads to a GPU that the file does not name',
        consequence: `NCCL leaves it out: ${formatGBps(bandwidth(count))} GB/s fewer`,
        gbps: { is: 0, couldBe: bandwidth(count) },
        remedy: 'nothing to do if the file is about some of the GPUs only; else write its bus id as the file has it',
      });
    } else {
      const back = childrenNamed(target.element, 'nvlink')
        .filter((other) => deviceKey(target.pci.cpu, other.attributes.get('target') ?? '') === gpu.pci.key)
        .reduce((sum, other) => sum + integer(other, 'count', 0), 0);
      if (back >= count) continue;
      findings.add(link, {
        code: 'nvlink-one-way',
        severity: 'warning',
        problem: `${count} NVLink${count > 1 ? 's' : ''} to ${gpuName(target)}, ${back === 0 ? 'none' : String(back)} back`,
        consequence: `${gpuName(target)} sends to ${gpuName(gpu)} with ${formatGBps(bandwidth(back))} instead of ${formatGBps(bandwidth(count))} GB/s`,
        gbps: { is: bandwidth(back), couldBe: bandwidth(count) },
        remedy:
          'nvidia-smi nvlink -s on both GPUs: a link that is up at one end only is broken; in a file, write both directions',
      });
    }
  }
}
