import { InvalidUsageError } from '../../errors.js';
import type { Parameters } from '../../parameters.js';
import { maxChannels } from '../graph.js';

/**
 * Parameters that contradict each other. NCCL takes them without a word and goes by one of them; whoever set both most
 * likely meant something else.
 *
 * @returns a sentence each: what is wrong, and what NCCL does with it
 */
export function contradictions(parameters: Parameters): string[] {
  const { minP2pChannels, maxP2pChannels, p2pScheduleGroupSize } = parameters;
  const minimum = firstSet(['NCCL_MIN_NCHANNELS', parameters.minChannels], ['NCCL_MIN_NRINGS', parameters.minRings]);
  const maximum = firstSet(['NCCL_MAX_NCHANNELS', parameters.maxChannels], ['NCCL_MAX_NRINGS', parameters.maxRings]);
  const minCtas = firstSet(['NCCL_MIN_CTAS', positive(parameters.minCtas)]);
  const maxCtas = firstSet(['NCCL_MAX_CTAS', positive(parameters.maxCtas)]);

  const copied = (least: Limit, most: Limit) =>
    `${least.variable}=${least.value} is above ${most.variable}=${most.value}: NCCL would take at most ${counted(Math.max(1, most.value))}, then copy them until there are ${least.value}`;
  const found: (string | undefined)[] = [
    whenAbove(minimum, maximum, copied),
    whenAbove(minimum, maxCtas, copied),
    whenAbove(minCtas, maximum, copied),
    whenAbove(minCtas, maxCtas, (least, most) => `NCCL_MIN_CTAS=${least.value} is above NCCL_MAX_CTAS=${most.value}: NCCL would set both to ${most.value}`),
    minP2pChannels > maxP2pChannels
      ? `NCCL_MIN_P2P_NCHANNELS=${minP2pChannels} is above NCCL_MAX_P2P_NCHANNELS=${maxP2pChannels}: NCCL would use ${minP2pChannels} channels for send and receive`
      : undefined,
    p2pScheduleGroupSize < 1 ? `NCCL_P2P_SCHEDULE_GROUP_SIZE=${p2pScheduleGroupSize} is below 1: NCCL would divide by it` : undefined,
  ];
  return found.filter((problem) => problem !== undefined);
}

/** @throws InvalidUsageError that tells all contradictions, if there are any */
export function refuseContradictions(parameters: Parameters): void {
  const problems = contradictions(parameters);
  if (problems.length > 0) throw new InvalidUsageError('ENVIRONMENT', `${problems.join('; ')}; unset one of them`);
}

interface Limit {
  readonly variable: string;
  readonly value: number;
}

function firstSet(...limits: readonly (readonly [string, number | undefined])[]): Limit | undefined {
  for (const [variable, value] of limits) {
    if (value !== undefined) return { variable, value: Math.min(value, maxChannels) };
  }
  return undefined;
}

/** NCCL ignores a number of CTAs that is not positive. */
function positive(value: number | undefined): number | undefined {
  return value !== undefined && value > 0 ? value : undefined;
}

function whenAbove(least: Limit | undefined, most: Limit | undefined, tell: (least: Limit, most: Limit) => string): string | undefined {
  return least !== undefined && most !== undefined && least.value > most.value ? tell(least, most) : undefined;
}

function counted(channels: number): string {
  return channels === 1 ? '1 channel' : `${channels} channels`;
}
