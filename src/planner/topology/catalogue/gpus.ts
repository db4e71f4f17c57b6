/** Models of GPUs that NCCL distinguishes. */

/** Wiring of the NVLinks of a model. */
type NvlinkKind =
  /** No NVLink. */
  | 'none'
  /** All to NVSwitches. */
  | 'switch'
  /** To other GPUs on the board; the wiring differs by machine. */
  | 'board'
  /** To one other GPU, over a bridge that is plugged on two cards. */
  | 'pair';

/** A GPU of the catalogue. */
export interface GpuModel {
  /** Name in the catalogue: lower case, words joined by -. */
  readonly id: string;
  /** The maker's name. */
  readonly name: string;
  /** Other spellings, lower case. */
  readonly aliases: readonly string[];
  /** Compute capability × 10, which determines the bandwidth of an NVLink (`nvLinkGBps`). */
  readonly sm: number;
  /** PCI device of vendor 0x10de. */
  readonly device: number;
  /** 0x0302 for cards without a display, 0x0300 with one. */
  readonly pciClass: '0x030200' | '0x030000';
  readonly pciGeneration: 3 | 4 | 5 | 6;
  readonly nvlink: NvlinkKind;
  /** NVLinks of one GPU, all together. */
  readonly nvlinks: number;
  /** True if NICs can read and write its memory (GPU Direct RDMA); GeForce cards cannot. */
  readonly gdr: boolean;
  /** The chip-to-chip links to the CPU: MB/s of one and their number, from NVML. */
  readonly c2c?: { readonly bandwidthMBps: number; readonly count: number };
}

/** Links of Grace: a GH200 and a GB300 tray report 44712 MB/s for a link; a Grace has ten, which two Blackwells share. */
const hopperC2c = { bandwidthMBps: 44_712, count: 10 };
const blackwellC2c = { bandwidthMBps: 44_712, count: 5 };
/** Assumed: twice Blackwell's, as the data sheet of Vera says for all of it. */
const rubinC2c = { bandwidthMBps: 44_712, count: 10 };

/** Stands for a device that no public source names. */
const UNKNOWN_DEVICE = 0xffff;

/** The model of a device of a host, of vendor 0x10de. */
export function modelOfDevice(device: number): GpuModel | undefined {
  return device === UNKNOWN_DEVICE ? undefined : gpuModels.find((model) => model.device === device);
}

/**
 * The models. NVLinks and PCI generations are from NVIDIA's data sheets, compute capabilities from
 * developer.nvidia.com/cuda-gpus, devices from the PCI ID repository (pci-ids.ucw.cz).
 */
export const gpuModels: readonly GpuModel[] = [
  sxm('v100-sxm', 'V100 SXM', ['v100', 'v100 sxm2', 'v100 sxm3', 'tesla v100'], 70, 0x1db1, 3, 6, 'board'),
  pcie('v100-pcie', 'V100 PCIe', [], 70, 0x1db4, 3),
  sxm('a100-sxm', 'A100 SXM', ['a100', 'a100 sxm4'], 80, 0x20b2, 4, 12, 'switch'),
  pcie('a100-pcie', 'A100 PCIe', [], 80, 0x20b5, 4, 12),
  pcie('t4', 'T4', ['tesla t4'], 75, 0x1eb8, 3),
  pcie('a30', 'A30', [], 80, 0x20b7, 4, 4),
  pcie('a40', 'A40', [], 86, 0x2235, 4, 4),
  pcie('a5000', 'RTX A5000', ['rtx-a5000', 'rtx a5000'], 86, 0x2231, 4, 4),
  pcie('a10g', 'A10G', ['a10'], 86, 0x2237, 4),
  pcie('a6000', 'RTX A6000', ['rtx-a6000', 'rtx a6000'], 86, 0x2230, 4, 4),
  pcie('l4', 'L4', [], 89, 0x27b8, 4),
  pcie('l20', 'L20', [], 89, 0x26ba, 4),
  pcie('l40s', 'L40S', ['l40'], 89, 0x26b9, 4),
  ...geforces(86, 4, [
    ['3060', 0x2504],
    ['3070', 0x2484],
    ['3080', 0x2206],
    // With a bridge to another it has four NVLinks, which a matrix of nvidia-smi shows; most are without.
    ['3090', 0x2204],
  ]),
  ...geforces(89, 4, [
    ['4060', 0x2882],
    ['4070', 0x2786],
    ['4080', 0x2704],
    ['4090', 0x2684],
  ]),
  pcie('rtx6000-ada', 'RTX 6000 Ada', ['rtx 6000 ada', 'rtx 6000 ada generation'], 89, 0x26b1, 4),
  sxm('h100-sxm', 'H100 SXM', ['h100', 'h100 sxm5', 'h100 80gb hbm3'], 90, 0x2330, 5, 18, 'switch'),
  pcie('h100-pcie', 'H100 PCIe', [], 90, 0x2331, 5, 12),
  pcie('h100-nvl', 'H100 NVL', [], 90, 0x2321, 5, 12),
  // An H100 with 8 of its 18 links: 400 instead of 900 GB/s.
  sxm('h800-sxm', 'H800 SXM', ['h800'], 90, 0x2324, 5, 8, 'switch'),
  sxm('h20', 'H20', ['h20 sxm'], 90, 0x2329, 5, 18, 'switch'),
  sxm('h200-sxm', 'H200 SXM', ['h200'], 90, 0x2335, 5, 18, 'switch'),
  sxm('b200', 'B200', ['b200 sxm', 'hgx b200'], 100, 0x2901, 5, 18, 'switch'),
  sxm('b300', 'B300', ['b300 sxm', 'hgx b300'], 103, 0x3182, 6, 18, 'switch'),
  // The single GH200 has no NVLink to others; in boards of four, every pair has six.
  { ...sxm('gh200', 'GH200', ['grace hopper'], 90, 0x2342, 5, 18, 'board'), c2c: hopperC2c },
  { ...sxm('gb200', 'GB200', ['grace blackwell'], 100, 0x2941, 5, 18, 'switch'), c2c: blackwellC2c },
  { ...sxm('gb300', 'GB300', [], 103, 0x31c2, 6, 18, 'switch'), c2c: blackwellC2c },
  // Assumed: compute capability and number of links, 3.6 TB/s being 36 of the links of Blackwell's speed.
  { ...sxm('vr200', 'VR200 (Rubin)', ['rubin', 'vera rubin'], 107, UNKNOWN_DEVICE, 6, 36, 'switch'), c2c: rubinC2c },
  ...geforces(120, 5, [
    ['5060', 0x2d05],
    ['5070', 0x2f04],
    ['5080', 0x2c02],
    ['5090', 0x2b85],
  ]),
  pcie('rtx-pro-6000', 'RTX PRO 6000 Blackwell', ['rtx pro 6000', 'rtx6000pro'], 120, 0x2bb5, 5),
  // NICs of a DGX Spark cannot read its memory directly: NCCL logs GDR 0.
  { ...pcie('gb10', 'GB10', ['dgx spark gpu'], 121, 0x2e12, 5), pciClass: '0x030000', gdr: false },
];

/** GeForce cards; Ti, SUPER, D and those of laptops are the same for NCCL. */
function geforces(sm: number, generation: GpuModel['pciGeneration'], cards: readonly (readonly [string, number])[]): GpuModel[] {
  return cards.map(([number, device]) => ({
    ...pcie(`rtx${number}`, `GeForce RTX ${number}`, [`rtx ${number}`, number, `geforce rtx ${number}`], sm, device, generation),
    pciClass: '0x030000',
    gdr: false,
  }));
}

/** `h100` of `h100-pcie`: models that differ by their form. */
export function familyOf({ id }: Pick<GpuModel, 'id'>): string {
  return id.replace(/-(?:sxm|pcie|nvl)$/, '');
}

function sxm(
  id: string,
  name: string,
  aliases: readonly string[],
  sm: number,
  device: number,
  pciGeneration: GpuModel['pciGeneration'],
  nvlinks: number,
  nvlink: NvlinkKind,
): GpuModel {
  return { id, name, aliases, sm, device, pciClass: '0x030200', pciGeneration, nvlink, nvlinks, gdr: true };
}

/** A card; its NVLinks, if any, go over a bridge to another card. */
function pcie(
  id: string,
  name: string,
  aliases: readonly string[],
  sm: number,
  device: number,
  pciGeneration: GpuModel['pciGeneration'],
  nvlinks = 0,
): GpuModel {
  return sxm(id, name, aliases, sm, device, pciGeneration, nvlinks, nvlinks > 0 ? 'pair' : 'none');
}
