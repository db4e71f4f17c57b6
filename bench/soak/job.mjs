import { random } from '../../test/multi-process/fixtures/random.mjs';

/**
 * Ways in which a rank fails.
 *
 * @typedef {object} Failure
 * @property {string} kind `SIGKILL`, `exit 0`, `exit 3`, `throw`, `abort`, `close`, `mismatch`, `detach`, `stop short`,
 *   `stop long`, `none`
 * @property {number} victim the rank in the job's first communicator
 * @property {number} step of the phase
 * @property {'before' | 'during' | 'outside'} moment before the step, once its calls are started, or by a signal from outside
 * @property {number} turns with `during`: 0 immediately, otherwise `turns - 1` milliseconds later
 * @property {number} afterMs with `outside`: the delay
 * @property {boolean} excludes whether the others exclude the victim when they shrink
 * @property {boolean} leaves whether the victim is not in the shrunk communicator
 */

/**
 * Steps that all ranks make, and the failure of one of them.
 *
 * @typedef {object} Phase
 * @property {readonly string[]} steps
 * @property {boolean} stream
 * @property {string | undefined} kind of each collective; undefined: drawn
 * @property {number | undefined} count
 * @property {Failure} failure
 * @property {{ victim: number, turns: number } | undefined} second a rank that is killed while the remaining ranks
 *   shrink the communicator
 */

/**
 * @typedef {object} Job
 * @property {number} seed
 * @property {number} nRanks
 * @property {'processes' | 'threads'} place
 * @property {readonly number[]} hosts a number for each rank; equal ones share memory
 * @property {boolean} blocking whether blocking calls are possible
 * @property {object} config of the communicator
 * @property {Readonly<Record<string, string>>} env
 * @property {readonly Phase[]} phases
 */

const stepNames = [
  'collective',
  'collective',
  'collective',
  'several',
  'streams',
  'exchange',
  'gatherByMessages',
  'group',
  'window',
  'split',
];
const algorithms = ['direct', 'ring', 'tree', 'pat', 'nvls'];

/**
 * The job of a seed.
 *
 * @param {number} seed
 * @returns {Job}
 */
export function drawJob(seed) {
  const draw = random(seed);
  const pick = (/** @type {readonly string[]} */ list) => list[draw(list.length)] ?? '';
  const nRanks = 2 + draw(8);
  const place = draw(4) === 0 ? 'threads' : 'processes';
  const medium =
    place === 'threads'
      ? pick(['segment', 'segment', 'sockets'])
      : pick(['segment', 'segment', 'segment', 'sockets', 'hosts', 'hosts']);
  const nHosts = 2 + draw(2);
  const hosts = Array.from({ length: nRanks }, () => (medium === 'hosts' ? draw(nHosts) : 0));
  const inOneSegment = hosts.every((host) => host === hosts[0]) && medium !== 'sockets';
  const engine = draw(3) === 0;
  const config = {
    ...(engine ? { engine: 'thread', ...(inOneSegment && draw(2) === 0 ? { channels: 2 } : {}) } : {}),
    ...(!engine && !inOneSegment && draw(2) === 0 ? { blocking: true } : {}),
  };
  const phases = Array.from({ length: 1 + draw(3) }, () => drawPhase(draw, nRanks, place));
  const stops = phases.some(({ failure }) => failure.kind === 'stop long');
  const algorithm = inOneSegment && !engine && draw(2) === 0 ? pick(algorithms) : undefined;
  return {
    seed,
    nRanks,
    place,
    hosts,
    config,
    phases,
    blocking: inOneSegment || engine || 'blocking' in config,
    env: {
      // Ranks on a busy machine are late by seconds: with 5 s, the limit ended calls before anything had failed.
      TCCL_TIMEOUT: stops ? '20' : '300',
      ...(medium === 'sockets' ? { TCCL_SHM_DISABLE: '1' } : {}),
      ...(algorithm === undefined ? {} : { TCCL_ALGO: algorithm }),
    },
  };
}

/** @returns {Phase} */
function drawPhase(/** @type {(limit: number) => number} */ draw, /** @type {number} */ nRanks, /** @type {string} */ place) {
  const kinds = [
    'abort',
    'close',
    'exit 0',
    'exit 3',
    'throw',
    'mismatch',
    'detach',
    ...(place === 'threads' ? [] : ['SIGKILL', 'SIGKILL', 'SIGKILL', 'stop short', 'stop long']),
  ];
  const kind = kinds[draw(kinds.length)] ?? 'none';
  const steps = Array.from({ length: 2 + draw(10) }, () => stepNames[draw(stepNames.length)] ?? '');
  const step = draw(steps.length);
  const byCall = kind === 'mismatch' || kind === 'detach';
  if (kind === 'mismatch') steps[step] = draw(3) === 0 ? 'exchange' : 'collective';
  if (kind === 'detach') steps[step] = 'collective';
  const stopped = kind.startsWith('stop');
  const moment = stopped || (kind === 'SIGKILL' && draw(2) === 0) ? 'outside' : byCall || draw(2) === 0 ? 'during' : 'before';
  const leaves = !byCall && kind !== 'stop short';
  return {
    steps,
    stream: steps.includes('streams') || draw(4) === 0,
    kind: undefined,
    count: undefined,
    failure: {
      kind,
      step,
      moment,
      leaves,
      victim: draw(nRanks),
      turns: draw(5),
      afterMs: draw(30),
      excludes: kind === 'stop long' || (kind === 'abort' && draw(2) === 0),
    },
    second: place === 'processes' && draw(4) === 0 ? { victim: draw(nRanks), turns: draw(20) } : undefined,
  };
}

/** One line about a job. */
export function describeJob(/** @type {Job} */ { nRanks, place, hosts, config, env, phases }) {
  const where =
    env['TCCL_SHM_DISABLE'] !== undefined ? 'sockets' : new Set(hosts).size > 1 ? `hosts ${hosts.join('')}` : 'one segment';
  const settings = [
    ...Object.entries(config).map(([name, value]) => `${name} ${value}`),
    ...Object.entries(env).map((entry) => entry.join('=')),
  ];
  const failures = phases.map(
    ({ steps, failure, second }) =>
      `${failure.kind} of ${failure.victim} ${failure.moment} ${steps[failure.step]}${second === undefined ? '' : `, ${second.victim} killed in shrink`}`,
  );
  return `${nRanks} ${place}, ${where}, ${settings.join(', ')}: ${failures.join('; ')}`;
}
