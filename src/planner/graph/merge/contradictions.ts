import { counted } from '../../../counted.js';
import { InvalidUsageError } from '../../../errors.js';
import { defaultParameters, type Parameters, parameterTable } from '../../parameters.js';
import { rulesOf } from '../../versions/rules.js';

/**
 * Finds parameters that contradict each other, or that leave NCCL nothing to work with. NCCL accepts them silently; the user who
 * set them most likely meant something else.
 *
 * @returns a sentence for each: the contradiction, NCCL's behaviour, and the remedy
 */
export function contradictions(parameters: Parameters): string[] {
  const { minP2pChannels, maxP2pChannels } = parameters;
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
    ...unworkable(parameters),
  ];
  return found.filter((problem) => problem !== undefined);
}

/** @throws InvalidUsageError with all contradictions, if there are any */
export function refuseContradictions(parameters: Parameters): void {
  refuse(contradictions(parameters));
}

/** @throws InvalidUsageError for numbers with which NCCL fails in every call: there is no plan to follow */
export function refuseUnworkable(parameters: Parameters): void {
  refuse(unworkable(parameters));
}

function refuse(problems: readonly string[]): void {
  if (problems.length > 0) throw new InvalidUsageError('ENVIRONMENT', problems.join('. '));
}

function unworkable(parameters: Parameters): string[] {
  const tooSmall = (fields: readonly Positive[], effect: string) =>
    fields.flatMap((field) => {
      const value = parameters[field];
      if (value === undefined || value >= 1) return [];
      const { variable } = parameterTable.find((row) => row.field === field) ?? { variable: field };
      return [`${variable}=${value} is below 1, and NCCL would ${effect}; set it to 1 or more, or unset it`];
    });
  return [
    ...tooSmall(['p2pScheduleGroupSize', 'p2pPerChannelNetGBps'], 'divide by it'),
    ...tooSmall(sizes, 'cut calls into pieces of that size without an end'),
  ];
}

const sizes = [
  'nvlsChunkBytes',
  'nvlsTreeMaxChunkBytes',
  'bufferBytes',
  'llBufferBytes',
  'll128BufferBytes',
  'p2pNetChunkBytes',
  'p2pPciChunkBytes',
  'p2pNvlChunkBytes',
] as const;
type Positive = 'p2pScheduleGroupSize' | 'p2pPerChannelNetGBps' | (typeof sizes)[number];

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
