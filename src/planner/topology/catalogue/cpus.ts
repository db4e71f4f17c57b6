/** Models of CPUs: the attributes of a `<cpu>`, which determine the bandwidth between sockets (`interCpuGBps`). */
export interface CpuModel {
  readonly id: string;
  readonly name: string;
  readonly aliases: readonly string[];
  readonly arch: 'x86_64' | 'arm64' | 'ppc64';
  /** x86 only: CPUID's vendor, family and model, as NCCL computes them. */
  readonly cpuid?: { readonly vendor: string; readonly family: number; readonly model: number };
}

/**
 * NCCL's family: the base family plus the extended one shifted by four bits, so AMD's family 17h (base 15, extended 8) becomes
 * 143, 19h becomes 175.
 */
export const cpuModels: readonly CpuModel[] = [
  intel('xeon-e5v4', 'Xeon E5 v4 (Broadwell)', ['broadwell', 'bdw'], 79),
  intel('xeon-skylake', 'Xeon Platinum 81xx (Skylake)', ['skylake', 'skl', 'cascade lake'], 85),
  intel('xeon-icelake', 'Xeon Platinum 83xx (Ice Lake)', ['icelake', 'ice lake'], 106),
  intel('xeon-sapphire', 'Xeon Platinum 84xx (Sapphire Rapids)', ['sapphire rapids', 'spr', 'xeon'], 143),
  intel('xeon-emerald', 'Xeon Platinum 85xx (Emerald Rapids)', ['emerald rapids', 'emr'], 207),
  intel('xeon-granite', 'Xeon 6 (Granite Rapids)', ['granite rapids', 'gnr'], 173),
  amd('epyc-rome', 'EPYC 7xx2 (Rome)', ['rome'], 143, 49),
  amd('epyc-milan', 'EPYC 7xx3 (Milan)', ['milan'], 175, 1),
  amd('epyc-genoa', 'EPYC 9xx4 (Genoa)', ['genoa', 'epyc'], 175, 17),
  amd('epyc-turin', 'EPYC 9xx5 (Turin)', ['turin'], 191, 2),
  { id: 'grace', name: 'Grace', aliases: ['arm', 'arm64'], arch: 'arm64' },
  { id: 'vera', name: 'Vera', aliases: [], arch: 'arm64' },
  { id: 'gb10-cpu', name: 'GB10 (10 Cortex-X925, 10 Cortex-A725)', aliases: ['gb10 cpu'], arch: 'arm64' },
  { id: 'power9', name: 'POWER9', aliases: ['power', 'ppc64'], arch: 'ppc64' },
];

function intel(id: string, name: string, aliases: readonly string[], model: number): CpuModel {
  return { id, name, aliases, arch: 'x86_64', cpuid: { vendor: 'GenuineIntel', family: 6, model } };
}

function amd(id: string, name: string, aliases: readonly string[], family: number, model: number): CpuModel {
  return { id, name, aliases, arch: 'x86_64', cpuid: { vendor: 'AuthenticAMD', family, model } };
}
