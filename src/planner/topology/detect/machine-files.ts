/**
 * The files of a machine for detection: the running one, or a captured one from a folder. Paths are those on the machine
 * (`/sys/…`, `/proc/…`).
 */
export interface MachineFiles {
  /** The text of a file without the line end at its end; undefined where it cannot be read. */
  readText(path: string): string | undefined;
  /** Names in a folder, sorted; none where there is no such folder. */
  list(path: string): readonly string[];
  /** The path with all symbolic links followed; undefined where it leads nowhere, or out of the machine. */
  resolve(path: string): string | undefined;
}

/** The same files, each read once, because every rank of a machine reads mostly the same ones. */
export function cachedFiles(files: MachineFiles): MachineFiles {
  const once = <Value>(read: (path: string) => Value): ((path: string) => Value) => {
    const known = new Map<string, Value>();
    return (path) => {
      const value = known.has(path) ? (known.get(path) as Value) : read(path);
      known.set(path, value);
      return value;
    };
  };
  return {
    readText: once((path) => files.readText(path)),
    list: once((path) => files.list(path)),
    resolve: once((path) => files.resolve(path)),
  };
}

/** True if a NIC can reach the memory of GPUs: by NVIDIA's peer memory module, or DMA-BUF of the open driver. */
export function hasGpuDirect(files: MachineFiles): boolean {
  return (
    files.list('/sys/module/nvidia_peermem').length > 0 ||
    files.list('/sys/kernel/mm/memory_peers/nv_mem').length > 0 ||
    (files.readText('/proc/driver/nvidia/version') ?? '').includes('Open Kernel Module')
  );
}

/** Facts about a GPU that the driver has and /sys has not. */
export interface ProbedGpu {
  /** In the form of /sys: `0000:1b:00.0`. */
  readonly busId: string;
  /** NVML's number. */
  readonly dev: number;
  /** Compute capability × 10. */
  readonly sm: number;
  /** Undefined where they are those of /sys. */
  readonly pciIds?: {
    readonly vendor: number;
    readonly device: number;
    readonly subsystemVendor: number;
    readonly subsystemDevice: number;
  };
  /** Of its PCI link now; undefined if the driver does not report it. */
  readonly pciGeneration: number | undefined;
  readonly pciLanes: number | undefined;
  /** Links to each other end, by its bus id in lower case. */
  readonly nvlinks: readonly { readonly target: string; readonly count: number }[];
  readonly c2c: { readonly bandwidthMBps: number; readonly count: number } | undefined;
}
