import type { Rules } from '../../versions/rules.js';
import { usesWindows, type Windows } from '../../windows.js';
import type { CallKind } from '../model.js';
import type { DataTypeName } from '../names.js';
import { namedCollectives, readNameList } from '../name-lists.js';
import type { TuningInput } from '../input.js';
import { kernelsOf, type SymmetricKernel, symmetricKernels, traitsOf } from './kernels.js';
import type { KernelReason, NoSymmetricReason } from './reasons.js';

/** Reason why a communicator, or calls of a kind, use no symmetric kernel whatever the size. */
export function noSymmetricKernels({
  input,
  rules,
  collective,
  dataType,
  operator,
  operations,
}: CallKind): NoSymmetricReason | undefined {
  if (input.nRanks === 1) return { why: 'one-rank' };
  const missing = noSymmetricMemory(input, rules);
  if (missing !== undefined) return missing;
  if (!symmetricKernels.some((kernel) => traitsOf(kernel).collective === collective)) return { why: 'collective', collective };
  const { domainRanks } = input.symmetric;
  const joinsDomains = kernelsOf(rules).some(
    (kernel) => traitsOf(kernel).collective === collective && traitsOf(kernel).isBetweenDomains,
  );
  if (domainRanks < input.nRanks && !joinsDomains)
    return { why: 'several-domains', collective, domains: input.nRanks / domainRanks };
  if (collective !== 'AllGather') {
    if (!reducedTypes.includes(dataType)) return { why: 'type', dataType };
    if (operator !== 'sum' && !(operator === 'avg' && rules.symmetricAverages)) return { why: 'operator', operator };
  }
  if (rules.symmetricAlone && operations > 1) return { why: 'group', operations };
  return undefined;
}

/** Reason why a communicator has no symmetric memory, or no windows are registered that calls may use. */
export function noSymmetricMemory(input: TuningInput, rules: Rules): NoSymmetricReason | undefined {
  const { symmetric, nRanks, nNodes } = input;
  const { windows, settings, allDirectP2p, allDirectNvLink, domainRanks, hasNics } = symmetric;
  if (rules.symmetricKernels === 'none') return { why: 'too-old', nccl: input.ncclVersion };
  if (settings.windowEnable === 0) return { why: 'windows-off' };
  const enough = rules.symmetricParts ? usesWindows({ windows, ...settings }) : windows === 'both';
  if (!enough) return { why: 'no-windows' };
  if (rules.symmetricScope === 'direct p2p' && !allDirectP2p) return { why: 'no-p2p' };
  if (rules.symmetricScope === 'nvlink') {
    if (!allDirectNvLink) return { why: 'no-nvlink' };
    if (domainRanks < nRanks && (settings.ginEnable === 0 || !hasNics)) return { why: 'no-gin', hasNics };
  } else if (nNodes > 1) return { why: 'several-nodes', nNodes };
  return undefined;
}

/** Types that symmetric kernels reduce. */
const reducedTypes: readonly DataTypeName[] = ['float16', 'bfloat16', 'float32', 'float8e4m3', 'float8e5m2'];

/** LL kernels count elements with 32 bits, others their loops of 32 bytes. */
const LL_BELOW = 2 ** 31;
const ALL_BELOW = 32 * 2 ** 31;

/** Reasons why one kernel of a collective cannot do a call. @param bytes of one rank */
export function kernelReasons(call: CallKind, kernel: SymmetricKernel, bytes: number): KernelReason[] {
  const { input, rules, dataType, operations } = call;
  const { nRanks, nvls, minCompCap, symmetric } = input;
  const { domainRanks, windows, settings } = symmetric;
  const { collective, isLl, multicast, isTma, isBetweenDomains } = traitsOf(kernel);
  const reasons: KernelReason[] = [];
  reasons.push(...leftOut(call, kernel));
  if (isBetweenDomains && domainRanks === nRanks) reasons.push({ why: 'one-domain' });
  if (!isBetweenDomains && domainRanks < nRanks) reasons.push({ why: 'several-domains', domains: nRanks / domainRanks });
  if (isBetweenDomains && rules.symmetricKernels !== 'ring of rails' && settings.symmetricRails === 0)
    reasons.push({ why: 'rails-off' });
  const needs = isLl ? undefined : neededWindows(collective, isBetweenDomains && input.nNodes > 1);
  if (needs !== undefined && !needs.includes(windows)) reasons.push({ why: 'windows', needs, windows });
  if (multicast !== 'none') {
    const fewest = rules.symmetricMulticastRanks;
    if (nvls === null) reasons.push({ why: 'no-multicast' });
    else if (domainRanks < fewest) reasons.push({ why: 'multicast-ranks', ranks: domainRanks, fewest });
    else if (multicast === 'loads' && isFloat8(dataType) && minCompCap < 100)
      reasons.push({ why: 'multicast-type', dataType, compCap: minCompCap });
  }
  if (isLl && operations > 1) reasons.push({ why: 'group' });
  const busBytes = (collective === 'AllReduce' ? 1 : nRanks) * bytes;
  const below = isLl ? LL_BELOW : ALL_BELOW;
  if (busBytes >= below) reasons.push({ why: 'size', below });
  if (isTma) reasons.push(...tmaReasons(call, kernel, bytes));
  return reasons;
}

/** Windows with which a kernel other than LL can do a call. */
function neededWindows(collective: string, isBetweenNodes: boolean): readonly Windows[] {
  if (collective === 'AllGather' && !isBetweenNodes) return ['both', 'receive'];
  if (collective === 'ReduceScatter') return ['both', 'send'];
  return ['both'];
}

function isFloat8(dataType: DataTypeName): boolean {
  return dataType === 'float8e4m3' || dataType === 'float8e5m2';
}

/** The variable that leaves a kernel out: its exact name is asked for up to 2.30, a list since. */
function leftOut({ input, rules, collective }: CallKind, kernel: SymmetricKernel): KernelReason[] {
  const { symmetricKernel = '', algorithms = '', protocols } = input.symmetric.settings;
  const asked = {
    why: 'asked',
    variable: symmetricKernel === '' ? 'NCCL_ALGO' : 'NCCL_SYM_KERNEL',
    value: symmetricKernel || algorithms,
  } as const;
  if (rules.tuningModel === 'cost table')
    return symmetricKernel === '' || symmetricKernel === '^' || symmetricKernel === kernel ? [] : [asked];
  const kernels = readNameList('NCCL_SYM_KERNEL', symmetricKernel, kernelsOf(rules));
  if (symmetricKernel === '' && algorithms === '') return [];
  const named = (variable: string, text: string | undefined) => namedCollectives(variable, text)[collective];
  const isForced = named('NCCL_ALGO', algorithms) || named('NCCL_PROTO', protocols) || named('NCCL_SYM_KERNEL', symmetricKernel);
  return isForced && kernels[collective][kernel] !== 'on' ? [asked] : [];
}

/** True if `NCCL_SYM_KERNEL` names a kernel, which wins over the general model up to 2.30. */
export function isForced({ input, rules }: CallKind): boolean {
  const { symmetricKernel = '' } = input.symmetric.settings;
  return rules.tuningModel === 'cost table' && symmetricKernel !== '' && symmetricKernel !== '^';
}

function tmaReasons({ input, rules }: CallKind, kernel: SymmetricKernel, bytes: number): KernelReason[] {
  const { settings } = input.symmetric;
  const isOn = settings.symmetricTma === undefined ? rules.symmetricTma === 'own model' : settings.symmetricTma !== 0;
  if (!isOn) return [{ why: 'tma-off' }];
  if (input.minCompCap < 100) return [{ why: 'tma-old-gpu', compCap: input.minCompCap }];
  const fewest = fewestTmaBytes(input, kernel, settings.minCtas ?? 1);
  const isForcedOn = settings.symmetricKernel !== undefined && settings.symmetricKernel !== '';
  return rules.symmetricTma === 'own model' && !isForcedOn && bytes < fewest ? [{ why: 'tma-size', fewest }] : [];
}

/** Bytes of a rank from which on each of so many CTAs has a whole step of its loop: packs of 16 bytes, 32 threads, 4 warps. */
export function fewestTmaBytes({ nRanks }: TuningInput, kernel: SymmetricKernel, ctas: number): number {
  const packs = 16 * 32;
  switch (kernel) {
    case 'AllGather_TmaST':
      return 4 * 4 * packs * ctas;
    case 'AllGather_TmaSTMC':
      return 8 * packs;
    default:
      return 4 * 8 * packs * nRanks * ctas;
  }
}
