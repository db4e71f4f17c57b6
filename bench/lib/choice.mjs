/**
 * Quality of the choice of algorithms, from the lines of suite choice.
 *
 * @module
 */

/** @typedef {{ algorithm: string, protocol: string, us: number }} Figure lowest of the rounds */

/**
 * @typedef {object} Judged one collective at one size
 * @property {string} kind
 * @property {number} ranks
 * @property {number} size
 * @property {Figure} chosen
 * @property {Figure} best of those that were forced
 * @property {number} ratio of their times; for equal ones the difference between two measurements of one thing
 * @property {boolean} same true if the ranks chose the best algorithm and protocol
 */

/** @param {readonly Record<string, any>[]} records @returns {Judged[]} */
export function judge(records) {
  /** @type {Map<string, { kind: string, ranks: number, size: number, chosen: Figure | undefined, forced: Figure[] }>} */
  const cells = new Map();
  for (const { choice: kind, ranks, size, chosen, algorithm, protocol, us } of records) {
    if (kind === undefined || size === undefined) continue;
    const key = JSON.stringify([kind, ranks, size]);
    const cell = cells.get(key) ?? { kind, ranks, size, chosen: undefined, forced: /** @type {Figure[]} */ ([]) };
    cells.set(key, cell);
    const before = chosen ? cell.chosen : cell.forced.find((one) => one.algorithm === algorithm);
    if (before !== undefined) before.us = Math.min(before.us, us);
    else if (chosen) cell.chosen = { algorithm, protocol, us };
    else cell.forced.push({ algorithm, protocol, us });
  }
  return [...cells.values()].flatMap(({ kind, ranks, size, chosen, forced }) => {
    const [best] = forced.sort((a, b) => a.us - b.us);
    if (chosen === undefined || best === undefined) return [];
    return [
      {
        kind,
        ranks,
        size,
        chosen,
        best,
        ratio: chosen.us / best.us,
        same: chosen.algorithm === best.algorithm && chosen.protocol === best.protocol,
      },
    ];
  });
}
