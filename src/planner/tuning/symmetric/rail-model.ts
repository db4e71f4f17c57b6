import type { Rules } from '../../versions/rules.js';
import { stepLatenciesUs } from '../constants.js';
import type { TuningInput } from '../input.js';
import { type Estimate, MOST_CTAS } from './domain-model.js';
import { type SymmetricKernel, traitsOf } from './kernels.js';

/**
 * NCCL's model of symmetric kernels between NVLink domains, where the ranks of one place in each domain are a rail. NCCL's times
 * of AllGather are in seconds (in 2.29.2 partly in ns) where µs are meant; here they are µs. AllGather has one such kernel, which
 * NCCL takes whatever its time.
 */

/** GB/s that NVLinks carry. */
const linkGBps = (compCap: number) => (compCap >= 100 ? 720 : 360);

/** Chunks of AllGather between domains. */
const gatherChunkBytes = { first: 4 << 20, later: 1 << 20 };

const { ceil, fround, max, min } = Math;

/** Time and CTAs of a kernel between domains. @param bytes of one rank */
export function railEstimate(input: TuningInput, kernel: SymmetricKernel, bytes: number, rules: Rules): Estimate {
  const { minNetGBps, minCompCap, nRanks, nvls, symmetric } = input;
  const { symmetricCtas, minCtas = 1, maxCtas = MOST_CTAS } = symmetric.settings;
  const railRanks = nRanks / symmetric.domainRanks;
  const latencyUs = stepLatenciesUs.net.Ring.Simple;
  const asked = min(MOST_CTAS, symmetricCtas);
  const bounded = (needed: number, most: number) => (asked > 0 ? asked : max(minCtas, min(most, maxCtas, MOST_CTAS, needed)));

  if (traitsOf(kernel).collective === 'AllGather') {
    const chunkBytes = kernel === 'AllGather_GinHier_MCRing' ? gatherChunkBytes.first : gatherChunkBytes.later;
    const chunks = ceil(bytes / chunkBytes);
    const withinUs = (bytes * nRanks) / linkGBps(minCompCap) / 1000;
    const betweenUs = (bytes * (railRanks - 1)) / minNetGBps / 1000;
    const ofSwitch = ceil((minCompCap < 100 ? 16 : 32) / (nvls?.nHeads ?? symmetric.domainRanks));
    return { timeUs: fround(chunks * (railRanks - 1) * latencyUs + max(withinUs, betweenUs)), ctas: bounded(chunks, ofSwitch) };
  }

  const loads = { plain: loadOf(input, false), multicast: loadOf(input, true) };
  const load = traitsOf(kernel).multicast === 'none' ? loads.plain : loads.multicast;
  const saturating = {
    plain: saturatingCtas(loads.plain, input, rules, 0),
    multicast: saturatingCtas(loads.multicast, input, rules, 1),
  };
  // Buffers are made once, for the kernel that needs more.
  const buffered = max(saturating.plain, saturating.multicast, minCtas);
  const own = traitsOf(kernel).multicast === 'none' ? saturating.plain : saturating.multicast;
  const chunkBytes = scatterChunkBytes(symmetric.settings.symmetricRailChunkBytes, rules);
  const most = asked > 0 ? min(asked, own) : min(buffered, maxCtas, MOST_CTAS, own);
  const ctas = max(asked > 0 ? asked : minCtas, min(most, ceil(bytes / chunkBytes)));
  const ctaGBps = ctaSpeed(input, rules, traitsOf(kernel).multicast === 'none' ? 0 : 1);
  const gbps = min((ctas * ctaGBps) / load.cta, linkGBps(minCompCap) / load.link, minNetGBps / load.nic);
  const firstUs = (min(bytes, chunkBytes * ctas) * (load.link / linkGBps(minCompCap) + load.nic / minNetGBps)) / 1000;
  return { timeUs: fround(bytes / gbps / 1000 + firstUs + latencyUs), ctas };
}

/** Times that data of a rank pass each of these in ReduceScatter. */
interface Load {
  readonly cta: number;
  readonly link: number;
  readonly nic: number;
}

function loadOf({ nRanks, symmetric: { domainRanks } }: TuningInput, multicast: boolean): Load {
  const railRanks = nRanks / domainRanks;
  const read = multicast ? 1 : domainRanks;
  return {
    link: max((multicast ? domainRanks : domainRanks - 1) * railRanks, (domainRanks - 1) * railRanks),
    nic: railRanks - 1,
    cta: (domainRanks === 1 ? 0 : read * (railRanks - 1)) + read + (railRanks - 1),
  };
}

/** CTAs from which on links or NICs are the limit. */
function saturatingCtas(load: Load, input: TuningInput, rules: Rules, kind: 0 | 1): number {
  const widest = min(linkGBps(input.minCompCap) / load.link, input.minNetGBps / load.nic);
  return ceil(min(2 ** 30, widest / (ctaSpeed(input, rules, kind) / load.cta)));
}

function ctaSpeed({ minCompCap }: TuningInput, { symmetricRails }: Rules, kind: 0 | 1): number {
  return (minCompCap >= 100 ? symmetricRails.blackwell : symmetricRails.hopper)[kind];
}

/** The chunk of ReduceScatter: a power of two from 128 bytes to 1 GiB. */
function scatterChunkBytes(asked: number, { symmetricRails: { chunkBytes } }: Rules): number {
  if (asked <= 0) return chunkBytes;
  return 2 ** Math.floor(Math.log2(max(128, min(asked, 2 ** 30))));
}
