/**
 * Two hosts made of network namespaces: tccl against Open MPI (ob1 over TCP, shared memory within a host; UCX over TCP) and
 * Gloo between the same namespaces, all in turn. `--ranks` counts the ranks of both hosts together.
 *
 * @module
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatSize } from '../../dist/perf/sizes.js';
import { compare } from '../lib/compare.mjs';
import { buildPrograms, openmpiAsRoot, programPath } from '../lib/peers.mjs';
import { jsonLines, runCommand } from '../lib/processes.mjs';
import { formatUs, table, verdict } from '../lib/table.mjs';
import { hostsTarget } from '../lib/targets.mjs';
import { cable, makeTwoHosts, onBoth, rankVariables } from '../lib/two-hosts.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */
/** @typedef {import('../lib/two-hosts.mjs').TwoHosts} TwoHosts */
/** @typedef {import('../lib/processes.mjs').Command} Command */

export const title = 'collectives between two hosts, against Open MPI and Gloo';

const timeoutMs = 300_000;
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
  /** @type {TwoHosts | undefined} */
  let hosts;
  try {
    hosts = makeTwoHosts();
    for (let round = 0; round < options.rounds; round++) {
      for (const ranks of options.ranks.filter((count) => count > 1)) {
        for (const collective of options.collectives) {
          for (const entrant of entrants(collective, ranks, options.quick)) {
            if (entrant.needs !== undefined && !built.has(entrant.needs)) continue;
            progress(`round ${round + 1}/${options.rounds}, ${collective}, ${ranks} ranks: ${entrant.library} ${entrant.name}`);
            const meeting = `/dev/shm/tccl-bench-${process.pid}-${randomBytes(4).toString('hex')}`;
            const args = [
              '-C',
              collective,
              '-t',
              String(options.seconds),
              '-w',
              '2',
              '-c',
              '-n',
              '300',
              '-s',
              options.sizes.join(','),
              ...(options.state === undefined ? [] : ['-m', options.state]),
              // MPI's broadcast has one array, the root's as well.
              ...(collective === 'broadcast' ? ['-i', '1'] : []),
            ];
            try {
              const command = entrant.start(hosts, ranks, args, folder);
              const output = await runCommand(command, { timeoutMs, env: { BENCH_SHM: meeting } });
              for (const line of jsonLines(output)) record({ hosts: 2, ...line });
            } catch (error) {
              note(
                `${entrant.library} ${entrant.name}, ${ranks} ranks, ${collective}: ${error instanceof Error ? error.message : String(error)}`,
              );
            } finally {
              rmSync(meeting, { force: true });
              rmSync(`${meeting}.store`, { recursive: true, force: true });
            }
          }
        }
      }
    }
  } catch (error) {
    note(`two hosts: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    hosts?.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A table for each collective and number of ranks. */
export function report(/** @type {readonly Record<string, any>[]} */ records) {
  // Unless all waited for one state of the cores (--state), few rounds have each program in both.
  /** @type {Record<string, any>[]} */
  const measured = records.filter(({ hosts }) => hosts === 2).map((record) => ({ ...record, hosts: undefined, link_ns: [0, 0] }));
  /** @type {Map<string, number>} lowest median of the plain socket */
  const limits = new Map();
  for (const { lib, time_us: us, ...of } of measured)
    if (lib === plainSocket.library) limits.set(caseOf(of), Math.min(us, limits.get(caseOf(of)) ?? Infinity));
  const groups = new Map();
  for (const row of compare(measured.filter(({ lib }) => lib !== plainSocket.library))) {
    const name = `${row.coll} ${row.type}, 2 hosts of ${row.ranks / 2}`;
    groups.set(name, [...(groups.get(name) ?? []), { ...row, limit: limits.get(caseOf(row)) }]);
  }
  return [...groups]
    .map(([name, rows]) => `${name}: lowest median of the rounds in µs, and ratios\n\n${ratioTable(rows)}`)
    .join('\n\n');
}

/** @param {Record<string, any>} of what was measured */
function caseOf({ coll, type, ranks, bytes }) {
  return [coll, type, ranks, bytes].join(' ');
}

/** @param {readonly (import('../lib/compare.mjs').Comparison & { limit: number | undefined })[]} rows */
function ratioTable(rows) {
  const hasLimit = rows.some(({ limit }) => limit !== undefined);
  const others = [...new Set(rows.flatMap(({ ours: figures }) => Object.keys(figures)))].filter(
    (name) => name !== 'sync' && name !== 'promise',
  );
  return table(
    [
      'size',
      'best peer',
      '',
      'sync',
      'sync / best, target',
      'promise',
      'promise / best, target',
      ...(hasLimit ? ['plain socket in C'] : []),
      ...others,
    ],
    rows.map((row) => {
      const { best, bytes, ours: figures } = row;
      const us = (/** @type {import('../lib/compare.mjs').Figure | undefined} */ figure) =>
        figure === undefined ? '' : `${figure.noisy ? '~' : ''}${formatUs(figure.us)}`;
      const judged = (/** @type {'sync' | 'promise'} */ api) => {
        const figure = figures[api];
        return verdict(figure === undefined || best === undefined ? undefined : figure.us / best.us, hostsTarget(row, api));
      };
      return [
        formatSize(bytes),
        best === undefined ? '' : `${best.lib} ${best.cfg}`,
        us(best),
        us(figures['sync']),
        judged('sync'),
        us(figures['promise']),
        judged('promise'),
        ...(hasLimit ? [row.limit === undefined ? '' : formatUs(row.limit)] : []),
        ...others.map((name) => us(figures[name])),
      ];
    }),
  );
}
