import { InvalidArgumentError } from '../../errors.js';
import type { LoggedCommunicator, LoggedRank } from '../../planner/log/job/model.js';
import { cloneElement, descendants, type XmlElement } from '../../planner/topology/xml/tree.js';

/** GPUs of one host that a communicator uses, in the order of its ranks. */
interface UsedGpus {
  readonly host: string;
  readonly gpus: readonly { readonly busId: string | undefined; readonly dev: number }[];
}

/**
 * The hosts of a communicator in the order of their ranks, with the GPUs that these use; undefined where the log does not have
 * all ranks.
 *
 * @throws InvalidArgumentError where ranks of hosts alternate, which a plan cannot have
 */
export function usedGpus({ nRanks, ranks }: LoggedCommunicator): UsedGpus[] | undefined {
  const hosts: { readonly host: string; readonly gpus: UsedGpus['gpus'][number][] }[] = [];
  for (let number = 0; number < nRanks; number++) {
    const rank = ranks.get(number);
    if (rank === undefined) return undefined;
    const { host } = rank.process;
    let last = hosts.at(-1);
    if (last?.host !== host) {
      if (hosts.some((earlier) => earlier.host === host)) {
        throw new InvalidArgumentError(
          'ARGUMENT_RANGE',
          `ranks of the communicator alternate between hosts (rank ${number} is on ${host} again), and a plan has them host by host: it cannot be compared`,
        );
      }
      hosts.push((last = { host, gpus: [] }));
    }
    last.gpus.push(deviceOf(rank));
  }
  return hosts;
}

function deviceOf({ busId, nvmlDev, cudaDev }: LoggedRank): UsedGpus['gpus'][number] {
  return { busId, dev: nvmlDev ?? cudaDev };
}

/**
 * The machine with those GPUs only, in use by ranks 0, 1, … in that order. GPUs are found by bus id, or by number if the file
 * does not have all bus ids of the log.
 *
 * @throws InvalidArgumentError where the machine lacks one
 */
export function withUsedGpus(root: XmlElement, { host, gpus }: UsedGpus, title: string): XmlElement {
  const copy = cloneElement(root);
  const elements = [...descendants(copy)].filter(({ name }) => name === 'gpu');
  const byBusId = new Map(elements.map((element) => [busNumber(element.parent?.attributes.get('busid')), element]));
  const byDev = new Map(elements.map((element) => [Number(element.attributes.get('dev')), element]));
  const hasAll = gpus.every(({ busId }) => busId !== undefined && byBusId.has(BigInt(`0x${busId}`)));
  const used = gpus.map(({ busId, dev }) => (hasAll ? byBusId.get(BigInt(`0x${busId ?? '0'}`)) : byDev.get(dev)));
  used.forEach((element, position) => {
    if (element !== undefined && used.indexOf(element) === position) return;
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${title} has no GPU ${gpus[position]?.dev ?? ''}, which rank ${position} of ${host} uses by the log: give the machine that the job ran on`,
    );
  });
  for (const element of elements) element.attributes.delete('rank');
  used.forEach((element, rank) => element?.attributes.set('rank', String(rank)));
  return copy;
}

/** `0000:1b:00.0` as the number that NCCL prints: 0x1b000. */
function busNumber(text: string | undefined): bigint {
  const digits = (text ?? '').replace(/[^0-9a-fA-F]/g, '');
  return digits === '' ? -1n : BigInt(`0x${digits}`);
}
