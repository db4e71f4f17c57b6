/**
 * A suite in bench/suites: a module with `title`, `run(context)` that measures and records, and `report(records)` that returns
 * the tables of records of any age, or an empty text.
 *
 * @module
 */

/**
 * @typedef {object} Options
 * @property {readonly number[]} ranks
 * @property {readonly number[]} sizes in bytes
 * @property {readonly string[]} collectives
 * @property {readonly string[]} types as the peers' programs call them
 * @property {number} rounds
 * @property {number} seconds the longest that one size of one program is measured
 * @property {'near' | 'far' | undefined} state of the cores to wait for; undefined: any
 * @property {boolean} quick only what is likely to matter
 */

/**
 * @typedef {object} Context
 * @property {Options} options
 * @property {(line: Record<string, any>) => void} record keeps a measurement: a line of the results file
 * @property {(text: string) => void} progress shows the current measurement
 * @property {(text: string) => void} note reports a measurement that is not possible, with the reason
 */

/**
 * @typedef {object} Suite
 * @property {string} title
 * @property {(context: Context) => Promise<void>} run
 * @property {(records: readonly Record<string, any>[]) => string} report
 */

/** For a note about something thrown. @param {unknown} error */
export function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}
