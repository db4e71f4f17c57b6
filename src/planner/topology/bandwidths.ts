import { defaultRules, type Rules } from '../versions/rules.js';
import { CpuArch, CpuModel, CpuVendor } from './system.js';

/** Bandwidths that NCCL assumes where a file has none, in GB/s, as C floats, from its `topo.h`. */

/** Within a GPU, and between a CPU and a NIC that is no PCI device. */
export const LOCAL_GBPS = 5000;

/** Between the two halves of a split GPU. */
export const SPLIT_GPU_GBPS = 2618;

/** One NVLink, in one direction, by compute capability. */
export function nvLinkGBps(sm: number, { blackwellNvLinkGBps, hopperNvLinkGBps, rubinNvLinkGBps }: Rules = defaultRules): number {
  if (isRubin(sm) && rubinNvLinkGBps !== 'as blackwell') return Math.fround(rubinNvLinkGBps);
  if (sm >= 100) return Math.fround(blackwellNvLinkGBps);
  if (sm >= 90) return Math.fround(hopperNvLinkGBps);
  if (sm === 86) return 12;
  if (sm >= 70) return 20;
  if (sm >= 60) return 18;
  return 20;
}

/** Assumed: 10.7 to 10.9. Later numbers that are known (11.0, 12.0, 12.1) are Blackwell's. */
export function isRubin(sm: number): boolean {
  return sm >= 107 && sm < 110;
}

/** The interconnect from a NUMA domain to another of its host. */
export function interCpuGBps(
  cpu: { readonly arch: number; readonly vendor: number; readonly model: number },
  { amdInterconnectGBps }: Rules = defaultRules,
): number {
  if (cpu.arch === CpuArch.POWER) return 32;
  if (cpu.arch === CpuArch.ARM) return 6;
  if (cpu.arch === CpuArch.X86) {
    if (cpu.vendor === CpuVendor.INTEL) return intelInterconnectGBps.get(cpu.model) ?? 6;
    if (cpu.vendor === CpuVendor.AMD) {
      if (cpu.model === CpuModel.AMD_ZEN5) return amdInterconnectGBps.zen5;
      return cpu.model === CpuModel.AMD_ZEN34 ? amdInterconnectGBps.zen4 : amdInterconnectGBps.zen2;
    }
    if (cpu.vendor === CpuVendor.ZHAOXIN) return cpu.model === CpuModel.YONGFENG ? 9 : 6;
  }
  return LOCAL_GBPS;
}

const intelInterconnectGBps = new Map<number, number>([
  [CpuModel.INTEL_SKL, 10],
  [CpuModel.INTEL_SRP, 22],
  [CpuModel.INTEL_ERP, 40],
]);

/** PCI link speeds in the form of /sys, in 100 Mb/s per lane; the first that begins the text counts. */
const pciLaneSpeeds: readonly (readonly [string, number])[] = [
  ['2.5 GT/s', 15],
  ['5 GT/s', 30],
  ['8 GT/s', 60],
  ['16 GT/s', 120],
  ['32 GT/s', 240],
  ['5.0 GT/s PCIe', 30],
  ['8.0 GT/s PCIe', 60],
  ['16.0 GT/s PCIe', 120],
  ['32.0 GT/s PCIe', 240],
  ['64.0 GT/s PCIe', 480],
];

/** NCCL's value for an unknown speed: Gen3. */
const UNKNOWN_LANE_SPEED = 60;

/** Bandwidth of a PCI link; `known` is false if NCCL does not know the text of its speed. Width 0 counts as 16. */
export function pciLink(width: number, speed: string): { readonly bandwidthGBps: number; readonly known: boolean } {
  const found = pciLaneSpeeds.find(([text]) => speed.startsWith(text));
  return {
    bandwidthGBps: Math.fround(((width === 0 ? 16 : width) * (found?.[1] ?? UNKNOWN_LANE_SPEED)) / 80),
    known: found !== undefined,
  };
}
