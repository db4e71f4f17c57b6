/**
 * Two hosts made of network namespaces: tccl against Open MPI (ob1 over TCP, shared memory within a host) and Gloo between
 * the same namespaces, all in turn. `--ranks` counts the ranks of both hosts together.
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
import { cable, makeTwoHosts } from '../lib/two-hosts.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */
/** @typedef {import('../lib/two-hosts.mjs').TwoHosts} TwoHosts */
/** @typedef {import('../lib/processes.mjs').Command} Command */

export const title = 'collectives between two hosts, against Open MPI and Gloo';

const timeoutMs = 300_000;
const rankProgram = new URL('../ranks/collective.mjs', import.meta.url).pathname;
let ports = 0;

/**
 * One program to run.
 *
 * @typedef {{ library: string, name: string, needs?: string, start(hosts: TwoHosts, ranks: number, options: string[], folder:
 * string): Command }} Entrant
 */

/**
 * Runs a command for every rank, half of them on each host. The command's arguments follow; `$rank` and `$local` are set.
 *
 * @param {TwoHosts} hosts @param {number} ranks @param {string} environment assignments of each rank, as a shell reads them
 * @param {readonly string[]} command
 * @returns {Command}
 */
function onBoth({ names }, ranks, environment, command) {
  const script = `
pids= rank=0 half=$(((${ranks} + 1) / 2))
while [ "$rank" -lt ${ranks} ]; do
  if [ "$rank" -lt "$half" ]; then host=0 name=${names[0]} local=$rank; else host=1 name=${names[1]} local=$((rank - half)); fi
  env ${environment} ip netns exec "$name" "$@" & pids="$pids $!" rank=$((rank + 1))
done
status=0
for pid in $pids; do wait "$pid" || { status=$?; kill $pids 2>/dev/null; }; done
exit $status`;
  return { file: '/bin/sh', args: ['-c', script, 'ranks', ...command] };
}

/** tccl by one of its APIs. @param {string} api @param {string} algorithm @returns {Entrant} */
function ours(api, algorithm) {
  const name = algorithm === '' ? api : `${api} ${algorithm}`;
  return {
    library: 'tccl',
    name,
    start(hosts, ranks, options) {
      const variables = [
        'SLURM_PROCID=$rank',
        `SLURM_NTASKS=${ranks}`,
        'SLURM_LOCALID=$local',
        'SLURM_JOB_ID=1',
        'SLURM_STEP_ID=0',
        'TCCL_HOSTID=bench-$host',
        `TCCL_COMM_ID=${hosts.addresses[0]}:${29900 + (ports++ % 90)}`,
        ...(algorithm === '' ? [] : [`TCCL_ALGO=${algorithm}`]),
      ];
      return onBoth(hosts, ranks, variables.join(' '), [process.execPath, rankProgram, ...options, '-A', api, '-L', name]);
    },
  };
}

/**
 * Open MPI: its launcher enters the other namespace in place of ssh.
 *
 * @param {string} name @param {string} tuning @returns {Entrant}
 */
function openmpi(name, tuning) {
  return {
    library: 'openmpi',
    name,
    needs: 'bench_openmpi',
    start({ names, addresses }, ranks, options, folder) {
      const agent = join(folder, 'agent.sh');
      const enter = (/** @type {number} */ host) =>
        `exec ip netns exec ${names[host]} unshare --uts sh -c 'hostname "$0" && exec sh -c "$*"' host${host} "$@"`;
      writeFileSync(agent, `#!/bin/sh\nhost=$1; shift\ncase $host in ${addresses[0]}) ${enter(0)} ;; *) ${enter(1)} ;; esac\n`);
      chmodSync(agent, 0o755);
      const slots = addresses.map((address, host) => `${address}:${host === 0 ? Math.ceil(ranks / 2) : Math.floor(ranks / 2)}`);
      const words =
        `mpirun.openmpi --mca plm_rsh_agent ${agent} --mca plm rsh --host ${slots.join(',')} -np ${ranks} --bind-to none ` +
        `--mca pml ob1 --mca btl self,vader,tcp --mca btl_tcp_if_include ${cable} --mca oob_tcp_if_include ${cable} ` +
        `-x BENCH_SHM ${tuning} ${programPath('bench_openmpi')} ${[...options, '-L', name].join(' ')}`;
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
        ...options.split(' '),
      ]),
  };
}

/** @param {number} ranks @param {boolean} quick @returns {Entrant[]} */
function entrants(ranks, quick) {
  const crowded = ranks > availableParallelism();
  const yields = '--mca mpi_yield_when_idle 1';
  return [
    ours('sync', ''),
    openmpi('default', crowded ? yields : ''),
    ours('promise', ''),
    ...(crowded ? [openmpi('han', `${yields} --mca coll_han_priority 100`)] : []),
    ...(quick || !crowded ? [] : [ours('sync', 'ring'), openmpi('spins', '')]),
    ...(quick
      ? []
      : [
          openmpi('ring', `${crowded ? yields : ''} --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm 4`),
        ]),
    ...(quick ? [] : [gloo('ring', '-A ring'), gloo('bcube', '-A bcube')]),
  ];
}

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
          for (const entrant of entrants(ranks, options.quick)) {
            if (entrant.needs !== undefined && !built.has(entrant.needs)) continue;
            if (entrant.library === 'gloo' && collective !== 'all_reduce') continue;
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
  // Cores near or far matter less than the wire.
  const measured = records.filter(({ hosts }) => hosts === 2).map((record) => ({ ...record, hosts: undefined, link_ns: [0, 0] }));
  const groups = new Map();
  for (const row of compare(measured)) {
    const name = `${row.coll} ${row.type}, 2 hosts of ${row.ranks / 2}`;
    groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  return [...groups]
    .map(([name, rows]) => `${name}: lowest median of the rounds in µs, and ratios\n\n${ratioTable(rows)}`)
    .join('\n\n');
}

/** @param {readonly import('../lib/compare.mjs').Comparison[]} rows */
function ratioTable(rows) {
  const others = [...new Set(rows.flatMap(({ ours: figures }) => Object.keys(figures)))].filter(
    (name) => name !== 'sync' && name !== 'promise',
  );
  return table(
    ['size', 'best peer', '', 'sync', 'sync / best, target', 'promise', 'promise / best, target', ...others],
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
        ...others.map((name) => us(figures[name])),
      ];
    }),
  );
}
