import type { Rules } from '../../versions/rules.js';
import type { Collective } from '../names.js';

/** Kernels of NCCL for buffers in symmetric windows, in its order. AG in a name means gather, RS reduce and scatter. */
export const symmetricKernels = [
  'AllReduce_AGxLL_R',
  'AllReduce_AGxLLMC_R',
  'AllReduce_RSxTmaLD_AGxTmaST',
  'AllReduce_RSxLD_AGxST',
  'AllReduce_RSxLDMC_AGxSTMC',
  'AllGather_LL',
  'AllGather_LLMC',
  'AllGather_TmaST',
  'AllGather_ST',
  'AllGather_TmaSTMC',
  'AllGather_STMC',
  'AllGather_RailRing_LsaSTMC',
  'AllGather_GinHier_MCRing',
  'ReduceScatter_LL',
  'ReduceScatter_TmaLD',
  'ReduceScatter_LD',
  'ReduceScatter_LDMC',
  'ReduceScatter_RailA2A_LsaLD',
  'ReduceScatter_RailA2A_LsaLDMC',
] as const;
/** One of {@link symmetricKernels}. */
export type SymmetricKernel = (typeof symmetricKernels)[number];

/** Properties of a kernel, which its name says. */
export interface KernelTraits {
  readonly collective: Collective;
  /** Data with flags, as protocol LL: the least latency, nine times the bytes in NCCL's model. */
  readonly isLl: boolean;
  /** Stores through the NVSwitch to all GPUs, or loads what it reduces. */
  readonly multicast: 'none' | 'stores' | 'loads';
  /** Copies by the tensor memory accelerator. */
  readonly isTma: boolean;
  /** Joins NVLink domains by NICs that GPUs drive. */
  readonly isBetweenDomains: boolean;
}

/** The properties of a kernel. */
export function traitsOf(kernel: SymmetricKernel): KernelTraits {
  const [collective, ...parts] = kernel.split('_');
  const way = parts.join('_');
  return {
    collective: collective as Collective,
    isLl: /LL(?:MC)?(?:_|$)/.test(way),
    multicast: way.includes('LDMC') ? 'loads' : way.includes('MC') ? 'stores' : 'none',
    isTma: way.includes('Tma'),
    isBetweenDomains: /Rail|GinHier/.test(way),
  };
}

/** The kernels that a version has, in its order. */
export function kernelsOf({ symmetricKernels: generation }: Pick<Rules, 'symmetricKernels'>): readonly SymmetricKernel[] {
  switch (generation) {
    case 'none':
      return [];
    case 'one domain':
      return symmetricKernels.filter((kernel) => isOfFirst(kernel));
    case 'ring of rails':
      return symmetricKernels.filter((kernel) => isOfFirst(kernel) || kernel === 'AllGather_GinHier_MCRing');
    case 'rails':
      return symmetricKernels.filter((kernel) => kernel !== 'AllGather_GinHier_MCRing' && !traitsOf(kernel).isTma);
    case 'tma':
      return symmetricKernels.filter((kernel) => kernel !== 'AllGather_GinHier_MCRing');
  }
}

function isOfFirst(kernel: SymmetricKernel): boolean {
  const { isTma, isBetweenDomains } = traitsOf(kernel);
  return !isTma && !isBetweenDomains;
}
