import type { Parameters } from '../../parameters.js';
import { type Asked, namedCollectives, readNameList } from '../name-lists.js';
import { algorithms, byName, type Collective, collectives, type NcclAlgorithm, type Protocol, protocols } from '../names.js';
import type { Reason } from '../reasons.js';
import { kernelsOf } from '../symmetric/kernels.js';
import { rulesOf } from '../../versions/rules.js';

/** Lists of algorithms and protocols that variables give. */
export interface Lists {
  readonly algorithms: Readonly<Record<Collective, Asked<NcclAlgorithm>>>;
  readonly protocols: Readonly<Record<Collective, Asked<Protocol>>>;
  /** Collectives that a list names something for: the lists hold for these only. */
  readonly forced: Readonly<Record<Collective, boolean>>;
  /** True if no list of protocols decides on LL128. */
  leavesLl128(collective: Collective): boolean;
}

/** @throws InvalidUsageError where NCCL refuses a list, which it does with one rank, too */
export function readLists(parameters: Parameters): Lists {
  const { algorithms: algorithmText = '', protocols: protocolText, symmetricKernel: kernelText = '' } = parameters;
  const asked = readNameList('NCCL_ALGO', algorithmText, algorithms);
  const askedProtocols = readNameList('NCCL_PROTO', protocolText, protocols);
  readNameList('NCCL_SYM_KERNEL', kernelText, kernelsOf(rulesOf(parameters)));
  // A list of algorithms or symmetric kernels starts from none at all.
  const startsEmpty = algorithmText !== '' || kernelText !== '';
  const namesAlgorithms = namedCollectives('NCCL_ALGO', algorithmText);
  const namesProtocols = namedCollectives('NCCL_PROTO', protocolText);
  const namesKernels = namedCollectives('NCCL_SYM_KERNEL', kernelText);
  return {
    algorithms: startsEmpty
      ? byName(collectives, (collective) =>
          byName(algorithms, (algorithm) => (asked[collective][algorithm] === 'on' ? 'on' : 'off')),
        )
      : asked,
    protocols: askedProtocols,
    forced: byName(
      collectives,
      (collective) => namesAlgorithms[collective] || namesProtocols[collective] || namesKernels[collective],
    ),
    leavesLl128: (collective) => askedProtocols[collective].LL128 === 'unset',
  };
}

/** Reasons of the lists against a candidate. */
export function leftOut(
  lists: Lists,
  parameters: Parameters,
  collective: Collective,
  algorithm: NcclAlgorithm,
  protocol: Protocol,
): Reason[] {
  if (!lists.forced[collective]) return [];
  const reasons: Reason[] = [];
  if (lists.algorithms[collective][algorithm] === 'off') {
    const { algorithms: value = '', symmetricKernel = '' } = parameters;
    reasons.push(
      value === ''
        ? { why: 'asked', variable: 'NCCL_SYM_KERNEL', value: symmetricKernel }
        : { why: 'asked', variable: 'NCCL_ALGO', value },
    );
  }
  if (lists.protocols[collective][protocol] === 'off')
    reasons.push({ why: 'asked', variable: 'NCCL_PROTO', value: parameters.protocols ?? '' });
  return reasons;
}
