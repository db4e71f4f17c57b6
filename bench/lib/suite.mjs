/**
 * A suite in bench/suites: a module with `title`, `run(context)` that measures and records, and `report(records)` that gives the
 * tables of what was recorded, now or long ago, or nothing.
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
 * @property {'near' | 'far' | undefined} state of the cores, to wait for; undefined: whatever comes
 * @property {boolean} quick only what is likely to matter
 */

/**
 * @typedef {object} Context
 * @property {Options} options
 * @property {(line: Record<string, any>) => void} record keeps a measurement: a line of the results file
 * @property {(text: string) => void} progress says what is being measured
 * @property {(text: string) => void} note says what could not be measured, and why
 */

/**
 * @typedef {object} Suite
 * @property {string} title
 * @property {(context: Context) => Promise<void>} run
 * @property {(records: readonly Record<string, any>[]) => string} report
 */

export {};
