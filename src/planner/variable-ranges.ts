/** Values for which a variable of NCCL is meant, and NCCL's behaviour with others. */
export interface Range {
  readonly least: number;
  readonly most: number;
  /** NCCL's behaviour with a value below, and above, as the end of a sentence. */
  readonly below: string;
  readonly above: string;
}

export function within(least: number, most: number, effect: string, above = effect): Range {
  return { least, most, below: effect, above };
}

export function from(least: number, effect: string): Range {
  return within(least, Infinity, effect);
}

/** A switch that NCCL compares with 0. */
export const zeroOrOne = within(0, 1, 'NCCL takes it as 1');
/** A switch that NCCL compares with 1. */
export const onlyOne = within(0, 1, 'NCCL takes it as 0');
/** The most channels of any version; those before 2.26 have 32. */
const MOST_CHANNELS = 64;
const LIMITED = `NCCL limits it to its most, ${MOST_CHANNELS}`;

export const fewestChannels = within(0, MOST_CHANNELS, 'NCCL takes it as 0', LIMITED);
export const mostChannels = within(1, MOST_CHANNELS, 'NCCL takes it as 1', LIMITED);
export const channels = within(1, MOST_CHANNELS, 'NCCL takes it as 1', LIMITED);
export const ctas = within(1, MOST_CHANNELS, 'NCCL ignores it', LIMITED);

/** The sentence about a value outside its range, or undefined. */
export function outsideRange(variable: string, text: string, value: number, range: Range): string | undefined {
  const { least, most, below, above } = range;
  if (value >= least && value <= most) return undefined;
  const bounds = least === -Infinity ? `above ${most}` : most === Infinity ? `below ${least}` : `outside ${least} to ${most}`;
  return `${variable}=${text} is ${bounds}: ${value < least ? below : above}`;
}
