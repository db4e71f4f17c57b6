/**
 * Two hosts made of network namespaces: tccl against Open MPI (ob1 over TCP, shared memory within a host; UCX over TCP) and
 * Gloo between the same namespaces, all in turn. `--ranks` counts the ranks of both hosts together.
 *
 * @module
 */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { compare } from '../lib/compare.mjs';
import { commonOptions, measureOnce } from '../lib/measure.mjs';
import { buildPrograms, openmpiAsRoot, programPath } from '../lib/peers.mjs';
import { figure, over, ratioSections, ratioTable } from '../lib/ratio-table.mjs';
import { messageOf } from '../lib/suite.mjs';
import { verdict } from '../lib/table.mjs';
import { hostsTarget } from '../lib/targets.mjs';
import { cable, makeTwoHosts, onBoth, rankVariables } from '../lib/two-hosts.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */
/** @typedef {import('../lib/two-hosts.mjs').TwoHosts} TwoHosts */
/** @typedef {import('../lib/processes.mjs').Command} Command */

export const title = 'collectives between two hosts, against Open MPI and Gloo';

const rankProgram = new URL('../ranks/collective.mjs', import.meta.url).pathname;

/**
 * One program to run.
 *
 * @typedef {{ library: string, name: string, needs?: string, start(hosts: TwoHosts, ranks: number, options: string[], folder:
 * string): Command }} Entrant
 */

/** Variables that keep UCX to this host's end of the cable and shared memory: without them it may choose other devices. */
const ucxVariables = { UCX_TLS: 'tcp,sm,self', UCX_NET_DEVICES: cable };

/**
 * tccl by one of its APIs.
 *
 * @param {string} api @param {string} [choice] the forced algorithm, for the name
 * @param {Record<string, string>} [forced] variables @returns {Entrant}
 */
function ours(api, choice = '', forced = {}) {
  const name = choice === '' ? api : `${api} ${choice}`;
  return {
    library: 'tccl',
    name,
    start(hosts, ranks, options) {
      const variables = [
        rankVariables(hosts, ranks),
        ...Object.entries(forced).map(([variable, value]) => `${variable}=${value}`),
      ];
      return onBoth(hosts, ranks, variables.join(' '), [process.execPath, rankProgram, ...options, '-A', api, '-L', name]);
    },
  };
}

const ob1 = `--mca pml ob1 --mca btl self,vader,tcp --mca btl_tcp_if_include ${cable}`;
const ucx = `--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any --mca btl ^openib ${Object.entries(ucxVariables)
  .map(([variable, value]) => `-x ${variable}=${value}`)
  .join(' ')}`;

/**
 * Open MPI: its launcher enters the other namespace in place of ssh.
 *
 * @param {string} name @param {string} tuning @param {string} [options] of the program
 * @param {string} [layer] the transports @returns {Entrant}
 */
function openmpi(name, tuning, options = '', layer = ob1) {
  return {
    library: 'openmpi',
    name,
    needs: 'bench_openmpi',
    start({ names, addresses }, ranks, given, folder) {
      const agent = join(folder, 'agent.sh');
      const enter = (/** @type {number} */ host) =>
        `exec ip netns exec ${names[host]} unshare --uts sh -c 'hostname "$0" && exec sh -c "$*"' host${host} "$@"`;
      writeFileSync(agent, `#!/bin/sh\nhost=$1; shift\ncase $host in ${addresses[0]}) ${enter(0)} ;; *) ${enter(1)} ;; esac\n`);
      chmodSync(agent, 0o755);
      const slots = addresses.map((address, host) => `${address}:${host === 0 ? Math.ceil(ranks / 2) : Math.floor(ranks / 2)}`);
      const words =
        `mpirun.openmpi --mca plm_rsh_agent ${agent} --mca plm rsh --host ${slots.join(',')} -np ${ranks} --bind-to none ` +
        `${layer} --mca oob_tcp_if_include ${cable} ` +
        `-x BENCH_SHM ${tuning} ${programPath('bench_openmpi')} ${[...given, '-L', name].join(' ')} ${options}`;
      return { file: agent, args: [addresses[0] ?? '', words], env: openmpiAsRoot };
    },
  };
}

/** @param {string} name @param {string} options of its program @returns {Entrant} */
function gloo(name, options) {
  return {
    library: 'gloo',
    name,
    needs: 'bench_gloo',
    start: (hosts, ranks, given) =>
      onBoth(hosts, ranks, `BENCH_RANK=$rank BENCH_SIZE=${ranks} BENCH_INTERFACE=${cable}`, [
        programPath('bench_gloo'),
        ...given,
        '-L',
        name,
        ...options.split(' ').filter((word) => word !== ''),
      ]),
  };
}

/** Limit, not a peer: two ranks and a plain socket, in C. @type {Entrant} */
const plainSocket = {
  library: 'sockets',
  name: 'plain',
  needs: 'bench_sockets',
  start: (hosts, ranks, given) =>
    onBoth(hosts, ranks, `BENCH_RANK=$rank BENCH_SIZE=${ranks} BENCH_ADDRESS=${hosts.addresses[0]}`, [
      programPath('bench_sockets'),
      ...given,
      '-L',
      'plain',
    ]),
};
const plainSocketHas = new Set(['all_reduce', 'all_gather', 'alltoall', 'sendrecv']);

/** @param {string} collective @param {number} ranks @param {boolean} quick @returns {Entrant[]} */
function entrants(collective, ranks, quick) {
  const crowded = ranks > availableParallelism();
  const yields = crowded ? '--mca mpi_yield_when_idle 1' : '';
  const reduces = collective === 'all_reduce';
  // Gloo has one reduce-scatter, whose result is in place.
  const ofGloo = reduces
    ? quick
      ? []
      : [gloo('ring', '-A ring'), gloo('bcube', '-A bcube')]
    : [gloo('default', collective === 'reduce_scatter' ? '-i 1' : '')];
  return [
    ours('sync'),
    openmpi('default', yields),
    ...(ranks === 2 && plainSocketHas.has(collective) ? [plainSocket] : []),
    ours('promise'),
    openmpi('ucx', yields, '', ucx),
    ours('sync', 'ucx', { TCCL_NET: 'ucx', ...ucxVariables }),
    ...(crowded && hanHas.has(collective) ? [openmpi('han', `${yields} --mca coll_han_priority 100`)] : []),
    ...(collective === 'reduce_scatter' ? [openmpi('v', yields, '-A v')] : []),
    ...(quick || !crowded ? [] : [ours('sync', 'ring', { TCCL_ALGO: 'ring' }), openmpi('spins', '')]),
    ...(quick || !reduces
      ? []
      : [openmpi('ring', `${yields} --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm 4`)]),
    ...ofGloo,
  ];
}

/** Collectives that *han*, Open MPI's component for several hosts, carries out. */
const hanHas = new Set(['all_reduce', 'all_gather', 'broadcast', 'reduce']);

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  const built = buildPrograms(note);
  const folder = mkdtempSync(join(tmpdir(), 'tccl-hosts-'));
  const { rounds, collectives } = options;
  const counts = options.ranks.filter((count) => count > 1);
  /** @type {TwoHosts | undefined} */
  let hosts;
  try {
    hosts = makeTwoHosts();
    for (let round = 0; round < rounds; round++) {
      for (const { ranks, collective, entrant } of measurements(counts, collectives, options.quick, built)) {
        const name = `${collective}, ${ranks} ranks: ${entrant.library} ${entrant.name}`;
        progress(`round ${round + 1}/${rounds}, ${name}`);
        const args = [...commonOptions(collective, options), '-n', '300', '-s', options.sizes.join(',')];
        try {
          for (const line of await measureOnce(entrant.start(hosts, ranks, args, folder))) record({ hosts: 2, ...line });
        } catch (error) {
          note(`${name}: ${messageOf(error)}`);
        }
      }
    }
  } catch (error) {
    note(`two hosts: ${messageOf(error)}`);
  } finally {
    hosts?.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Measurements of a round, those of one collective and number of ranks one after another.
 *
 * @param {readonly number[]} counts of ranks @param {readonly string[]} collectives @param {boolean} quick
 * @param {ReadonlySet<string>} built programs that there are
 */
function measurements(counts, collectives, quick, built) {
  return counts.flatMap((ranks) =>
    collectives.flatMap((collective) =>
      entrants(collective, ranks, quick)
        .filter(({ needs }) => needs === undefined || built.has(needs))
        .map((entrant) => ({ ranks, collective, entrant })),
    ),
  );
}

/** A table for each collective and number of ranks. */
export function report(/** @type {readonly Record<string, any>[]} */ records) {
  // Unless all waited for one state of the cores (--state), few rounds have each program in both.
  const measured = records.filter(({ hosts }) => hosts === 2).map((record) => ({ ...record, hosts: undefined, link_ns: [0, 0] }));
  const rows = compare(measured).map((row) => {
    const peers = row.peers.filter(({ lib }) => lib !== plainSocket.library);
    return { ...row, best: peers[0], limit: row.peers.find(({ lib }) => lib === plainSocket.library) };
  });
  return ratioSections(rows, ({ coll, type, ranks }) => `${coll} ${type}, 2 hosts of ${ranks / 2}`, tableOf).join('\n\n');
}

/** @typedef {import('../lib/compare.mjs').Comparison & { limit: import('../lib/compare.mjs').Figure | undefined }} Row */

/** @param {readonly Row[]} rows */
function tableOf(rows) {
  const others = [...new Set(rows.flatMap(({ ours: figures }) => Object.keys(figures)))].filter(
    (name) => name !== 'sync' && name !== 'promise',
  );
  return ratioTable(rows, (row) => hostsTarget(row, 'sync'), [
    { title: 'promise', cell: (row) => figure(row.ours['promise']) },
    { title: 'promise / best, target', cell: (row) => verdict(over(row.ours['promise'], row.best), hostsTarget(row, 'promise')) },
    ...(rows.some(({ limit }) => limit !== undefined)
      ? [{ title: 'plain socket in C', cell: (/** @type {Row} */ { limit }) => figure(limit) }]
      : []),
    ...others.map((title) => ({ title, cell: (/** @type {Row} */ row) => figure(row.ours[title]) })),
  ]);
}
