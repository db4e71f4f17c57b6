/** Functions of suite tasks. */

export const double = (/** @type {number} */ value) => value * 2;

export const lengthOf = (/** @type {string} */ text) => text.length;

/** Computes for some time that grows with `steps`. */
export function roots(/** @type {number} */ steps) {
  let sum = 0;
  for (let i = 0; i < steps; i++) sum += Math.sqrt(i);
  return sum;
}
