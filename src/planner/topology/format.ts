/** `0000:1b:00.0` for 0x1b000: domain, bus, device, function. */
export function formatBusId(id: bigint): string {
  const hex = (value: bigint, digits: number) => value.toString(16).padStart(digits, '0');
  return `${hex(id >> 20n, 4)}:${hex((id >> 12n) & 0xffn, 2)}:${hex((id >> 4n) & 0xffn, 2)}.${hex(id & 0xfn, 1)}`;
}

/** GB/s in at most four digits: `48`, `370.8`, `0.1875`. */
export function formatGBps(value: number): string {
  return String(Number(value.toPrecision(4)));
}

/** `0-3,8` for cores 0 1 2 3 8. */
export function cpuList(cores: readonly number[]): string {
  const runs: [number, number][] = [];
  for (const core of cores) {
    const last = runs.at(-1);
    if (last !== undefined && last[1] === core - 1) last[1] = core;
    else runs.push([core, core]);
  }
  return runs.map(([first, last]) => (first === last ? String(first) : `${first}-${last}`)).join(',');
}
