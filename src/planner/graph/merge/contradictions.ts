import { counted } from '../../../counted.js';
import { InvalidUsageError } from '../../../errors.js';
import { defaultParameters, type Parameters } from '../../parameters.js';
import { rulesOf } from '../../versions/rules.js';

/**
 * Finds parameters that contradict each other, or that leave NCCL nothing to work with. NCCL accepts them silently; the user who
 * set them most likely meant something else.
 *
 * @returns a sentence for each: the contradiction, NCCL's behaviour, and the remedy
 */
export function contradictions(parameters: Parameters): string[] {
  const { minP2pChannels, maxP2pChannels, p2pScheduleGroupSize, p2pPerChannelNetGBps } = parameters;
  const firstSet = (...limits: Limits) => firstOf(limits, rulesOf(parameters).mostChannels);
  const minimum = firstSet(['NCCL_MIN_NCHANNELS', parameters.minChannels], ['NCCL_MIN_NRINGS', parameters.minRings]);
  const maximum = firstSet(['NCCL_MAX_NCHANNELS', parameters.maxChannels], ['NCCL_MAX_NRINGS', parameters.maxRings]);
  const minCtas = firstSet(['NCCL_MIN_CTAS', positive(parameters.minCtas)]);
  const maxCtas = firstSet(['NCCL_MAX_CTAS', positive(parameters.maxCtas)]);
  const copied = (least: Limit, most: Limit) =>
    `NCCL would take at most ${counted(Math.max(1, most.value), 'channel')}, then copy them until there are ${least.value}`;

  const found: (string | undefined)[] = [
    whenAbove(minimum, maximum, copied),
    whenAbove(minimum, maxCtas, copied),
    whenAbove(minCtas, maximum, copied),
    whenAbove(minCtas, maxCtas, (_, most) => `NCCL would set both to ${most.value}`),
    minP2pChannels > maxP2pChannels ? p2pChannelsProblem(minP2pChannels, maxP2pChannels) : undefined,
    p2pScheduleGroupSize < 1 ? noDivisor('NCCL_P2P_SCHEDULE_GROUP_SIZE', p2pScheduleGroupSize) : undefined,
    p2pPerChannelNetGBps === 0 ? noDivisor('NCCL_P2P_PER_CHANNEL_NET_BW', 0) : undefined,
  ];
  return found.filter((problem) => problem !== undefined);
}

/** @throws InvalidUsageError with all contradictions, if there are any */
export function refuseContradictions(parameters: Parameters): void {
  const problems = contradictions(parameters);
  if (problems.length > 0) throw new InvalidUsageError('ENVIRONMENT', problems.join('. '));
}

interface Limit {
  readonly variable: string;
  readonly value: number;
}

type Limits = readonly (readonly [variable: string, value: number | undefined])[];

function firstOf(limits: Limits, most: number): Limit | undefined {
  for (const [variable, value] of limits) {
    if (value !== undefined) return { variable, value: Math.min(value, most) };
  }
  return undefined;
}

/** NCCL ignores a number of CTAs that is not positive. */
function positive(value: number | undefined): number | undefined {
  return value !== undefined && value > 0 ? value : undefined;
}

function whenAbove(
  least: Limit | undefined,
  most: Limit | undefined,
  consequence: (least: Limit, most: Limit) => string,
): string | undefined {
  if (least === undefined || most === undefined || least.value <= most.value) return undefined;
  return `${least.variable}=${least.value} is above ${most.variable}=${most.value}: ${consequence(least, most)}; unset one of them`;
}

/** The minimum has a default, so the user may have set only the maximum. */
function p2pChannelsProblem(least: number, most: number): string {
  const consequence = `NCCL would use ${counted(Math.max(1, least), 'channel')} for send and receive`;
  return least === defaultParameters.minP2pChannels
    ? `NCCL_MAX_P2P_NCHANNELS=${most} leaves no channel: ${consequence}; set it to 1 or more, or unset it`
    : `NCCL_MIN_P2P_NCHANNELS=${least} is above NCCL_MAX_P2P_NCHANNELS=${most}: ${consequence}; unset one of them`;
}

function noDivisor(variable: string, value: number): string {
  return `${variable}=${value} is below 1, and NCCL would divide by it; set it to 1 or more, or unset it`;
}
