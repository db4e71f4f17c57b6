import { bytesIn, type TextPlace, type ToolFormat, type ToolLine } from './section.js';

/** `df`: file systems of a host or container. */
export interface FileSystems {
  readonly rows: readonly {
    readonly mount: string;
    readonly sizeBytes: number | undefined;
    readonly freeBytes: number | undefined;
    /** Percent. */
    readonly used: number;
    readonly place: TextPlace;
  }[];
}

export const fileSystems: ToolFormat<'df', FileSystems> = {
  name: 'df',
  commands: ['df -h /dev/shm', 'df -h'],
  holds: /^Filesystem\s|\d%\s+\//,
  needles: ['mounted on'],
  begins: /^Filesystem\s.*\bMounted on\s*$/,
  restarts: /^Filesystem\s/,
  parse: (lines) => {
    const [head] = lines;
    const [, size] = /(?:1(K|M|G)?-?blocks|1024-blocks|1048576-blocks)/i.exec(head?.text ?? '') ?? [];
    const unit = size === 'M' ? 2 ** 20 : size === 'G' ? 2 ** 30 : 1024;
    const rows = lines.flatMap(({ text, place }) => {
      const [, sizeText = '', free = '', used, mount] =
        /^\S.*?\s+(?:\S+\s+)??([\d.]+[KMGTP]?i?)\s+[\d.]+[KMGTP]?i?\s+([\d.]+[KMGTP]?i?)\s+(\d{1,3})%\s+(\/\S*)\s*$/i.exec(
          text,
        ) ?? [];
      if (used === undefined || mount === undefined) return [];
      return [{ mount, sizeBytes: bytesIn(sizeText, unit), freeBytes: bytesIn(free, unit), used: Number(used), place }];
    });
    return rows.length === 0 ? undefined : { rows };
  },
};

/** `ulimit -a` or /proc/self/limits: limits by their names in small letters, Infinity where unlimited. */
export interface Limits {
  readonly limits: ReadonlyMap<string, { readonly value: number; readonly place: TextPlace }>;
}

const limitNames: Readonly<Record<string, string>> = {
  'max locked memory': 'locked',
  'lockedmem(kbytes)': 'locked',
  'open files': 'files',
  'max open files': 'files',
  nofiles: 'files',
  'max user processes': 'processes',
  'max processes': 'processes',
  processes: 'processes',
  'max memory size': 'memory',
  'virtual memory': 'memory',
};

export const limitList: ToolFormat<'ulimit', Limits> = {
  name: 'ulimit',
  commands: ['ulimit -a', 'ulimit -l', 'ulimit -n'],
  holds: /^[a-z][\w(), -]{2,60}\s(?:\d+|unlimited)\b/i,
  needles: ['core file size', 'max locked memory', 'lockedmem(kbytes)', 'soft limit', 'coredump(blocks)', 'open files  '],
  begins: /^(?:core file size|max locked memory|real-time non-blocking time|open files|time\(seconds\)|Limit {3,}Soft Limit)\b/,
  parse: (lines) => {
    const limits = new Map<string, { value: number; place: TextPlace }>();
    for (const { text, place } of lines) {
      const [, name = '', unit = '', value = ''] =
        /^([a-z][\w() ]{2,40}?) {1,30}(?:\(([\w-]+, )?-\w\) )?(\d+|unlimited)\b/i.exec(text) ?? [];
      const key = limitNames[name.trim().toLowerCase()];
      if (key === undefined || limits.has(key)) continue;
      // bash and dash print locked memory in KiB, /proc in bytes.
      const scale = unit.startsWith('kbytes') || name.includes('kbytes') ? 1024 : 1;
      limits.set(key, { value: value === 'unlimited' ? Infinity : Number(value) * scale, place });
    }
    return limits.size === 0 ? undefined : { limits };
  },
};

/** `free`: memory of a host, in the tool's unit. */
export interface Memory {
  readonly total: number;
  readonly available: number;
  readonly swapTotal: number | undefined;
  readonly swapFree: number | undefined;
  readonly place: TextPlace;
}

export const memoryTable: ToolFormat<'free', Memory> = {
  name: 'free',
  commands: ['free -g', 'free -h', 'free'],
  holds: /^(?:Mem|Swap|Low|High):|^\s+total\s/,
  needles: ['buff/cache', 'buffers'],
  begins: /^\s+total\s+used\s+free\b/,
  restarts: /^\s+total\s+used\s+free\b/,
  parse: (lines) => {
    let row: { numbers: (number | undefined)[]; place: TextPlace } | undefined;
    let swap: (number | undefined)[] = [];
    for (const { text, place } of lines) {
      const [, name, rest = ''] = /^(Mem|Swap):\s+(\S.*)$/.exec(text) ?? [];
      const numbers = rest
        .trim()
        .split(/\s+/)
        .map((word) => bytesIn(word));
      if (name === 'Mem') row ??= { numbers, place };
      else if (name === 'Swap') swap = numbers;
    }
    const total = row?.numbers[0];
    const available = row?.numbers[5] ?? row?.numbers[2];
    if (row === undefined || total === undefined || available === undefined) return undefined;
    return { total, available, swapTotal: swap[0], swapFree: swap[2], place: row.place };
  },
};

/** `env`: variables of a process. */
export interface Variables {
  readonly variables: ReadonlyMap<string, { readonly value: string; readonly place: TextPlace }>;
}

export const variableList: ToolFormat<'env', Variables> = {
  name: 'env',
  commands: ['env', 'printenv'],
  holds: /^(?:export |declare -x |\s*-? ?)?[A-Z_][A-Z0-9_]{1,80}=/,
  needles: ['nccl_', 'path=', 'torch_nccl', 'cuda_visible_devices='],
  begins: /^(?:export |declare -x |\s*-? ?)?(?:NCCL_\w+|TORCH_NCCL_\w+|FI_\w+|CUDA_VISIBLE_DEVICES|LD_LIBRARY_PATH|PATH)=/,
  parse: (lines) => {
    const variables = new Map<string, { value: string; place: TextPlace }>();
    for (const { text, place } of lines) {
      const [, name, value = ''] = /^(?:export |declare -x |\s*-? ?)?([A-Z_][A-Z0-9_]{1,80})=(.*)$/.exec(text) ?? [];
      const [, quoted] = /^(?:"(.*)"|'(.*)')$/.exec(value.trim())?.filter((part: string | undefined) => part !== undefined) ?? [];
      if (name !== undefined && !variables.has(name)) variables.set(name, { value: quoted ?? value.trim(), place });
    }
    return variables.size === 0 ? undefined : { variables };
  },
};

/** `pip list`, `conda list`, or the list of packages of `torch.utils.collect_env`. */
export interface Packages {
  readonly packages: readonly { readonly name: string; readonly version: string; readonly place: TextPlace }[];
}

export const packageList: ToolFormat<'pip', Packages> = {
  name: 'pip',
  commands: ['pip list', 'conda list'],
  holds: /^(?:\[(?:pip3|conda)\] )?[A-Za-z][\w.-]{1,80}(?:==|\s+)\d/,
  needles: ['nvidia-nccl', 'package  ', '[pip3] '],
  begins: /^(?:Package\s+Version\b|\[?(?:pip3|conda)?\]? ?nvidia[-_]nccl[-\w]{0,20}(?:==|\s+)\d|\[pip3\] )/,
  parse: (lines) => {
    const packages = lines.flatMap(({ text, place }) => {
      const [, name, version] =
        /^(?:\[(?:pip3|conda)\] )?([A-Za-z][\w.-]{1,80})(?:==|\s+)(\d[\w.+!-]{0,60})(?:\s.*)?$/.exec(text) ?? [];
      return name === undefined || version === undefined
        ? []
        : [{ name: name.toLowerCase().replaceAll('_', '-'), version, place }];
    });
    return packages.length === 0 ? undefined : { packages };
  },
};

/** `lsmod`: names of loaded kernel modules. */
export interface Modules {
  readonly modules: ReadonlySet<string>;
  readonly place: TextPlace;
}

export const moduleList: ToolFormat<'lsmod', Modules> = {
  name: 'lsmod',
  commands: ['lsmod'],
  holds: /^Module\s|^\w{2,60}\s+\d+\s+\d+/,
  needles: ['used by'],
  begins: /^Module\s+Size\s+Used by/,
  parse: (lines) => {
    const [head] = lines;
    const modules = new Set(lines.flatMap(({ text }) => /^(\w{2,60})\s+\d+\s+\d+/.exec(text)?.[1] ?? []));
    return head === undefined || modules.size === 0 ? undefined : { modules, place: head.place };
  },
};

/** `systemctl status`: states of services. */
export interface Services {
  readonly services: readonly {
    readonly name: string;
    readonly state: string;
    readonly detail: string;
    readonly place: TextPlace;
  }[];
}

export const serviceList: ToolFormat<'systemctl', Services> = {
  name: 'systemctl',
  commands: ['systemctl status nvidia-fabricmanager', 'systemctl status nvidia-imex'],
  holds: /\.service |^\s*(?:Active|Loaded): /,
  needles: ['.service - ', '.service could not be found'],
  begins: /^[^\w\n]{0,4}[\w@-]{2,60}\.service - |^Unit [\w@-]{2,60}\.service could not be found/,
  parse: (lines) => {
    const services: { name: string; state: string; detail: string; place: TextPlace }[] = [];
    let name = '';
    for (const { text, place } of lines) {
      const [, missing] = /^Unit ([\w@-]+)\.service could not be found/.exec(text) ?? [];
      if (missing !== undefined) services.push({ name: missing, state: 'missing', detail: '', place });
      name = /^[^\w\n]{0,4}([\w@-]+)\.service - /.exec(text)?.[1] ?? name;
      const [, state, detail = ''] = /^\s*Active: (\w+) \(([^)]{1,60})\)/.exec(text) ?? [];
      if (state !== undefined && name !== '') services.push({ name, state, detail, place });
    }
    return services.length === 0 ? undefined : { services };
  },
};

/** /proc/cmdline: options of the kernel. */
export interface KernelOptions {
  readonly options: readonly string[];
  readonly place: TextPlace;
}

export const kernelOptions: ToolFormat<'cmdline', KernelOptions> = {
  name: 'cmdline',
  commands: ['cat /proc/cmdline'],
  holds: /BOOT_IMAGE=/,
  needles: ['boot_image='],
  begins: /^(?:\[ *[\d.]+\] (?:Kernel command|Command) line: )?BOOT_IMAGE=/,
  parse: ([first]: readonly ToolLine[]) =>
    first === undefined ? undefined : { options: first.text.trim().split(/\s+/), place: first.place },
};

/** `lscpu`: model of the CPUs. */
export interface CpuReport {
  /** Values by their names: `Model name`, `Vendor ID`, `CPU family`, `Model`. */
  readonly values: ReadonlyMap<string, string>;
  readonly place: TextPlace;
}

export const cpuReport: ToolFormat<'lscpu', CpuReport> = {
  name: 'lscpu',
  commands: ['lscpu'],
  holds: /^\s*(?:Architecture|Model name|Vendor ID|CPU family|Model|Socket\(s\)|NUMA node\(s\)):/,
  needles: ['architecture:'],
  begins: /^Architecture:\s+\S/,
  restarts: /^Architecture:/,
  parse: (lines) => {
    const [head] = lines;
    const values = new Map(
      lines.flatMap(({ text }) => {
        const [, name, value] = /^\s*([\w ()]{3,20}):\s+(\S.{0,120})$/.exec(text) ?? [];
        return name === undefined || value === undefined ? [] : [[name, value.trim()] as const];
      }),
    );
    return head === undefined || values.size < 2 ? undefined : { values, place: head.place };
  },
};
