import { rulesOf } from '../../versions/rules.js';
import type { TuningInput } from '../input.js';

/** True if PAT goes through NVLink SHARP within nodes, as it does with several ranks a node since 2.31. */
export function patGoesThroughNvls(input: TuningInput): boolean {
  return input.maxLocalRanks > 1 && rulesOf(input).patPerNode === 'nvls';
}
