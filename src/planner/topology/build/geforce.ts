/**
 * GeForce cards of the 30, 40 and 50 series, whose drivers refuse peer-to-peer copies over PCIe: devices of vendor 0x10de, from
 * the PCI ID repository without cards for laptops and samples. Older cards are allowed it, and those for servers and
 * workstations; so are bridges of NVLink (3090).
 */
const series30 = [
  0x2203, 0x2204, 0x2205, 0x2206, 0x2207, 0x2208, 0x220a, 0x2216, 0x2414, 0x2482, 0x2484, 0x2486, 0x2487, 0x2488, 0x2489, 0x248c,
  0x248d, 0x248e, 0x24c7, 0x24c8, 0x24c9, 0x2501, 0x2503, 0x2504, 0x2508, 0x2509, 0x2544, 0x2582, 0x2583, 0x2584,
];
const series40 = [
  0x2684, 0x2685, 0x2689, 0x2702, 0x2703, 0x2704, 0x2705, 0x2709, 0x2782, 0x2783, 0x2786, 0x2788, 0x2803, 0x2805, 0x2808, 0x2882,
];
const series50 = [0x2b85, 0x2b87, 0x2b8c, 0x2c02, 0x2c05, 0x2d04, 0x2d05, 0x2d83, 0x2f04, 0x2f06];
const withoutP2p: ReadonlySet<number> = new Set([...series30, ...series40, ...series50]);

/** True if the driver refuses peer-to-peer copies over PCIe for a GPU: its vendor and device, then those of its subsystem. */
export function refusesPciP2p(device: bigint): boolean {
  return device >> 48n === 0x10den && withoutP2p.has(Number((device >> 32n) & 0xffffn));
}
