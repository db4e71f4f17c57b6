import { NVSWITCH_CLASS, setMissing } from '../catalogue/build.js';
import { modelOfDevice } from '../catalogue/gpus.js';
import { childNamed, childrenNamed, createElement, type XmlElement } from '../xml/tree.js';
import { hasGpuDirect, type MachineFiles, type ProbedGpu } from './machine-files.js';

/** A GPU of the machine. */
export interface FoundGpu {
  /** In the form of /sys: `0000:1b:00.0`. */
  readonly busId: string;
  readonly dev: number;
  /** Compute capability × 10. */
  readonly sm: number;
  /** True if NICs can reach its memory. */
  readonly gdr: boolean;
  /** The driver's answer; undefined if the driver is not available. */
  readonly probed: ProbedGpu | undefined;
}

interface FoundGpus {
  /** In the order of their ranks. */
  readonly gpus: readonly FoundGpu[];
  /** Bus ids of NVIDIA's display and 3D controllers that are not in the catalogue. */
  readonly unknown: readonly string[];
  /** Notes for the user, one line each. */
  readonly notes: readonly string[];
}

/** The GPUs that the driver lists, otherwise those with known PCI ids. */
export function findGpus(
  files: MachineFiles,
  options: { readonly gpus?: readonly ProbedGpu[]; readonly noDriver?: string },
): FoundGpus {
  const fallbackGdr = hasGpuDirect(files);
  if (options.gpus !== undefined) {
    const gpus = [...options.gpus]
      .sort((a, b) => a.dev - b.dev)
      .map((probed): FoundGpu => {
        const { busId, dev, sm, pciIds } = probed;
        const model = modelOfDevice(pciIds?.device ?? Number(idOf(files, busId, 'device')));
        return { busId, dev, sm, gdr: model?.gdr ?? fallbackGdr, probed };
      });
    return { gpus, unknown: [], notes: [] };
  }
  const gpus: FoundGpu[] = [];
  const unknown: string[] = [];
  for (const busId of files.list('/sys/bus/pci/devices')) {
    if (idOf(files, busId, 'vendor') !== '0x10de' || !idOf(files, busId, 'class').startsWith('0x03')) continue;
    const model = modelOfDevice(Number(idOf(files, busId, 'device')));
    if (model === undefined) unknown.push(busId);
    else gpus.push({ busId, dev: gpus.length, sm: model.sm, gdr: model.gdr, probed: undefined });
  }
  const names = unknown.map((busId) => `${busId} (device ${idOf(files, busId, 'device')})`).join(', ');
  return {
    gpus,
    unknown,
    notes: [
      ...(gpus.length === 0
        ? []
        : [
            `${options.noDriver ?? 'NVML was not asked'}: NVLinks are not in it, and compute capabilities are those of the catalogue`,
          ]),
      ...(unknown.length === 0
        ? []
        : [`GPUs that the catalogue does not know have no <gpu>: ${names}; tccl topo complete --hardware adds them`]),
    ],
  };
}

/** Sets missing attributes of the `<gpu>` of a PCI device, adds one if necessary, and marks it as in use. */
export function addGpu(files: MachineFiles, pci: XmlElement, gpu: FoundGpu, rank: number): void {
  const element = childNamed(pci, 'gpu') ?? createElement('gpu', pci);
  setMissing(element, [
    ['dev', String(gpu.dev)],
    ['sm', String(gpu.sm)],
  ]);
  if (childNamed(element, 'nvlink') === undefined) {
    for (const { target, count } of gpu.probed?.nvlinks ?? [])
      createElement('nvlink', element, [
        ['target', target],
        ['count', String(count)],
      ]);
  }
  const c2c = gpu.probed?.c2c;
  if (c2c !== undefined && childNamed(element, 'c2c') === undefined) {
    createElement('c2c', element, [
      ['bw', String(c2c.bandwidthMBps)],
      ['count', String(c2c.count)],
    ]);
  }
  for (const link of childrenNamed(element, 'nvlink')) {
    // An invisible end is an NVSwitch, as in NCCL.
    setMissing(link, [['tclass', idOf(files, link.attributes.get('target') ?? '', 'class') || NVSWITCH_CLASS]]);
  }
  element.attributes.set('rank', String(rank)).set('keep', '1');
  setMissing(element, [['gdr', gpu.gdr ? '1' : '0']]);
  // Not a part of a split GPU.
  element.attributes.set('mlopart', '-1');
}

function idOf(files: MachineFiles, busId: string, name: string): string {
  return files.readText(`/sys/bus/pci/devices/${busId}/${name}`) ?? '';
}
