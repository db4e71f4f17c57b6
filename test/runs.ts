/** `npm run test:all` sets it: properties run as often, and clusters are as large, as continuous integration can afford. */
export const isThorough = process.env['TCCL_TEST_ALL'] === '1';

/** A number of runs, or a size, for the developer's loop, and the one for continuous integration. */
export function runs(quick: number, thorough: number): number {
  return isThorough ? thorough : quick;
}
