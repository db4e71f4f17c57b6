import type { SizeClass } from '../../src/planner/simulate/measured-calls.js';

/** Classes of size in tables, the largest first. */
export const sizeTitles: Readonly<Record<SizeClass, string>> = {
  large: '128 MiB and more',
  middle: '1 to 128 MiB',
  small: 'below 1 MiB',
};
