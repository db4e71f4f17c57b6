import { InvalidUsageError } from '../errors.js';
import type { Communicator } from '../runtime/communicator/communicator.js';
import type { ParameterForm } from './buckets.js';

/** Compares the parameters of all ranks, and `settings`. Throws the same error on all. */
export async function agree(
  call: string,
  comm: Communicator,
  forms: readonly Pick<ParameterForm, 'name' | 'length' | 'array' | 'type'>[],
  settings: readonly string[] = [],
): Promise<void> {
  const texts = [
    ...forms.map(({ name, length, array, type }) => `${JSON.stringify(name)} (${length} of ${type ?? array})`),
    ...settings,
  ];
  const all = await comm.allGatherObject(texts);
  const [first = []] = all;
  for (const [rank, other] of all.entries()) {
    const at = Array.from({ length: Math.max(first.length, other.length) }).findIndex((_, i) => first[i] !== other[i]);
    if (at < 0) continue;
    throw new InvalidUsageError(
      'CALL_MISMATCH',
      `${call}: rank 0 has ${first[at] ?? 'no more'} as parameter ${at}, rank ${rank} ${other[at] ?? 'no more'}; pass the same parameters on all ranks`,
      { rank },
    );
  }
}
