import { counted } from '../../../counted.js';
import type { Windows } from '../../windows.js';
import type { Collective, DataTypeName, OperatorName } from '../names.js';

/** Reason why a call uses no symmetric kernel at all. */
export type NoSymmetricReason =
  | { readonly why: 'one-rank' }
  /** The version has none. */
  | { readonly why: 'too-old'; readonly nccl: string }
  | { readonly why: 'no-windows' }
  /** NCCL_WIN_ENABLE=0. */
  | { readonly why: 'windows-off' }
  /** GPUs of a node do not copy to each other peer-to-peer. */
  | { readonly why: 'no-p2p' }
  | { readonly why: 'no-nvlink' }
  /** The version has none between nodes. */
  | { readonly why: 'several-nodes'; readonly nNodes: number }
  /** Between NVLink domains GPUs have to drive their NICs. */
  | { readonly why: 'no-gin'; readonly hasNics: boolean }
  | { readonly why: 'collective'; readonly collective: Collective }
  | { readonly why: 'type'; readonly dataType: DataTypeName }
  | { readonly why: 'operator'; readonly operator: OperatorName }
  /** Calls of a group. */
  | { readonly why: 'group'; readonly operations: number }
  /** The collective has no kernel that joins NVLink domains. */
  | { readonly why: 'several-domains'; readonly collective: Collective; readonly domains: number }
  /** Each kernel has a reason of its own. */
  | { readonly why: 'no-kernel' }
  /** The fastest is LL without windows for both buffers, and the general model takes another protocol. */
  | { readonly why: 'general-not-ll'; readonly general: string };

/** Reason why one symmetric kernel cannot do a call. */
export type KernelReason =
  /** A variable leaves it out. */
  | { readonly why: 'asked'; readonly variable: 'NCCL_SYM_KERNEL' | 'NCCL_ALGO'; readonly value: string }
  /** The buffers lie in the wrong windows. */
  | { readonly why: 'windows'; readonly needs: readonly Windows[]; readonly windows: Windows }
  | { readonly why: 'no-multicast' }
  | { readonly why: 'multicast-ranks'; readonly ranks: number; readonly fewest: number }
  | { readonly why: 'multicast-type'; readonly dataType: DataTypeName; readonly compCap: number }
  | { readonly why: 'group' }
  /** Indices of 32 bits. */
  | { readonly why: 'size'; readonly below: number }
  | { readonly why: 'tma-off' }
  | { readonly why: 'tma-old-gpu'; readonly compCap: number }
  | { readonly why: 'tma-size'; readonly fewest: number }
  /** For several NVLink domains. */
  | { readonly why: 'one-domain' }
  /** For one NVLink domain. */
  | { readonly why: 'several-domains'; readonly domains: number }
  /** NCCL_SYM_GIN_KERNELS_ENABLE=0. */
  | { readonly why: 'rails-off' };

/** The reason as a sentence. */
export function describeNoSymmetric(reason: NoSymmetricReason): string {
  switch (reason.why) {
    case 'one-rank':
      return 'There is one rank, so nothing is exchanged.';
    case 'too-old':
      return `NCCL ${reason.nccl} has no symmetric kernels; they came with 2.27.3.`;
    case 'no-windows':
      return 'No buffer lies in a symmetric window.';
    case 'windows-off':
      return 'NCCL_WIN_ENABLE=0 switches windows off.';
    case 'no-p2p':
      return 'Symmetric windows need GPUs that copy to each other peer-to-peer.';
    case 'no-nvlink':
      return 'Symmetric kernels need GPUs that are all joined by NVLink directly.';
    case 'several-nodes':
      return `This version has symmetric kernels on one node only; there are ${reason.nNodes}.`;
    case 'no-gin':
      return reason.hasNics
        ? 'Between NVLink domains GPUs have to drive their NICs (GIN), which NCCL_GIN_ENABLE=0 forbids.'
        : 'Between NVLink domains GPUs have to drive their NICs (GIN), and not every rank has one.';
    case 'collective':
      return `There is no symmetric kernel for ${reason.collective}.`;
    case 'type':
      return `Symmetric kernels reduce floats of up to 32 bits, not ${reason.dataType}.`;
    case 'operator':
      return `This version's symmetric kernels do not reduce with ${reason.operator}.`;
    case 'group':
      return `This version has symmetric kernels for one call alone, not for ${reason.operations} of a group.`;
    case 'several-domains':
      return `There is no symmetric kernel for ${reason.collective} between NVLink domains; there are ${reason.domains}.`;
    case 'no-kernel':
      return 'No symmetric kernel can do the call.';
    case 'general-not-ll':
      return `The fastest symmetric kernel is an LL kernel, for which the general model would have to take LL, too; it takes ${reason.general}.`;
  }
}

/** The reason as a sentence. */
export function describeKernelReason(reason: KernelReason): string {
  switch (reason.why) {
    case 'asked':
      return `${reason.variable}=${reason.value} leaves it out.`;
    case 'windows':
      return `It needs windows for ${reason.needs.map(windowsText).join(', or ')}; here they are for ${windowsText(reason.windows)}.`;
    case 'no-multicast':
      return 'It multicasts, and there is no NVLink SHARP.';
    case 'multicast-ranks':
      return `It multicasts to ${reason.fewest} GPUs or more; there are ${reason.ranks}.`;
    case 'multicast-type':
      return `The NVSwitch cannot reduce ${reason.dataType} for GPUs of compute capability ${(reason.compCap / 10).toFixed(1)}.`;
    case 'group':
      return 'LL kernels do one call of a group only.';
    case 'size':
      return `It counts with 32 bits: the call has to be below ${reason.below / 2 ** 30} GiB.`;
    case 'tma-off':
      return 'It copies by TMA, which is off (NCCL_SYM_TMA_ENABLE).';
    case 'tma-old-gpu':
      return `It copies by TMA, from compute capability 10.0 on; the oldest GPU has ${(reason.compCap / 10).toFixed(1)}.`;
    case 'tma-size':
      return `It copies by TMA from ${counted(reason.fewest, 'byte')} a rank on.`;
    case 'one-domain':
      return 'It joins several NVLink domains; there is one.';
    case 'several-domains':
      return `It works within one NVLink domain; there are ${reason.domains}.`;
    case 'rails-off':
      return 'NCCL_SYM_GIN_KERNELS_ENABLE=0 switches it off.';
  }
}

/** Buffers that lie in symmetric windows, as words. */
export function windowsText(windows: Windows): string {
  switch (windows) {
    case 'none':
      return 'no buffer';
    case 'send':
      return 'the input';
    case 'receive':
      return 'the result';
    case 'both':
      return 'input and result';
  }
}
