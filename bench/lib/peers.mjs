/**
 * The libraries that tccl is measured against: how their programs in bench/peers are built, and which of their
 * tunings are worth trying. Nothing here is needed: a library whose headers or compiler are missing is reported.
 *
 * @module
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const sources = new URL('../peers/', import.meta.url).pathname;
const build = join(sources, 'build');

/** Path of the built program of a library or of the ceilings. */
export const programPath = (/** @type {string} */ name) => join(build, name);

const compile = ['-O3', '-march=native', '-Wall', '-Wextra'];

/** @type {readonly { name: string, what: string, inputs: readonly string[], command: readonly string[], hint: string }[]} */
const programs = [
  {
    name: 'bench.o',
    what: 'the harness',
    inputs: ['bench.c', 'bench.h'],
    command: ['gcc', ...compile, '-std=gnu11', '-c', 'bench.c'],
    hint: 'gcc',
  },
  {
    name: 'bench_openmpi',
    what: 'Open MPI',
    inputs: ['be_mpi.c', 'build/bench.o'],
    command: ['mpicc.openmpi', ...compile, 'be_mpi.c', 'build/bench.o'],
    hint: 'openmpi-bin libopenmpi-dev',
  },
  {
    name: 'messages_openmpi',
    what: 'messages of Open MPI',
    inputs: ['messages.c'],
    command: ['mpicc.openmpi', ...compile, 'messages.c'],
    hint: 'openmpi-bin libopenmpi-dev',
  },
  {
    name: 'bench_mpich',
    what: 'MPICH',
    inputs: ['be_mpi.c', 'build/bench.o'],
    command: ['mpicc.mpich', ...compile, 'be_mpi.c', 'build/bench.o'],
    hint: 'mpich libmpich-dev',
  },
  {
    name: 'bench_gloo',
    what: 'Gloo',
    inputs: ['be_gloo.cc', 'build/bench.o'],
    command: ['g++', ...compile, '-std=c++17', 'be_gloo.cc', 'build/bench.o', '-lgloo'],
    hint: 'g++ libgloo-dev',
  },
  {
    name: 'bench_sockets',
    what: 'the exchange by plain sockets',
    inputs: ['be_sockets.c', 'build/bench.o'],
    command: ['gcc', ...compile, '-std=gnu11', 'be_sockets.c', 'build/bench.o'],
    hint: 'gcc',
  },
  {
    name: 'ceilings',
    what: 'the benchmark of memory',
    inputs: ['ceilings.c'],
    command: ['gcc', ...compile, 'ceilings.c', '-lpthread'],
    hint: 'gcc',
  },
];

/**
 * Builds the programs that are older than their sources.
 *
 * @param {(line: string) => void} report called for each program that cannot be built, with the Debian packages that it needs
 * @returns {Set<string>} names of the built programs
 */
export function buildPrograms(report) {
  mkdirSync(build, { recursive: true });
  const built = new Set();
  for (const { name, what, inputs, command, hint } of programs) {
    const output = programPath(name);
    const [compiler = '', ...args] = command;
    if (
      !isNewer(
        output,
        inputs.map((input) => join(sources, input)),
      )
    ) {
      const { status, stderr, error } = spawnSync(compiler, [...args, '-o', output], { cwd: sources, encoding: 'utf8' });
      if (status !== 0) {
        const reason =
          error === undefined
            ? (stderr
                .trim()
                .split('\n')
                .find((line) => line.includes('error')) ?? stderr.trim())
            : `${compiler}: not found`;
        report(`${what} is left out: ${reason} (Debian: apt-get install ${hint})`);
        continue;
      }
    }
    built.add(name);
  }
  return built;
}

/** @param {string} output @param {string[]} inputs */
function isNewer(output, inputs) {
  return existsSync(output) && inputs.every((input) => existsSync(input) && statSync(input).mtimeMs < statSync(output).mtimeMs);
}

/**
 * One way to run a library: options for its launcher, variables for its environment, options for the program.
 *
 * @typedef {object} Tuning
 * @property {'openmpi' | 'mpich' | 'gloo'} library
 * @property {string} name
 * @property {string} launcher
 * @property {Record<string, string>} environment
 * @property {string} options
 * @property {number} [maxBytes] larger sizes do not work
 * @property {boolean} won one of those that a quick run tries: the fastest of all libraries at some size, or the best
 *   of its own library, in the measurements of docs/notes/performance.md
 */

const cma = '--mca btl_vader_eager_limit 66000';
const noCma = `${cma} --mca btl_vader_single_copy_mechanism none --mca btl_vader_max_send_size 131072`;
const ucx = '--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any';
const ring =
  '--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm 5 --mca coll_tuned_allreduce_algorithm_segmentsize';
const scatter = '--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_reduce_scatter_block_algorithm';
const rndv = { UCX_RNDV_THRESH: '65536' };

/**
 * The tunings worth trying. With more ranks than cores Open MPI is set to yield; nothing helps the other two.
 *
 * @param {string} collective @param {number} ranks @param {number} cores
 * @returns {Tuning[]}
 */
export function tunings(collective, ranks, cores) {
  const crowded = ranks > cores;
  const reduces = collective.includes('reduce');
  const yields = crowded ? '--mca mpi_yield_when_idle 1 ' : '';
  const prefix = crowded ? 'yield+' : '';
  /** @type {Tuning[]} */
  const list = [];
  const openmpi = (/** @type {string} */ name, /** @type {string} */ launcher, won = false, options = '') =>
    list.push({ library: 'openmpi', name, launcher, environment: {}, options, won });
  const mpich = (/** @type {string} */ name, /** @type {Record<string, string>} */ environment, won = false, options = '') =>
    list.push({ library: 'mpich', name, launcher: '', environment, options, won });
  const gloo = (
    /** @type {string} */ name,
    /** @type {string} */ options,
    won = false,
    /** @type {number | undefined} */ maxBytes = undefined,
  ) =>
    list.push({
      library: 'gloo',
      name,
      launcher: '',
      environment: {},
      options,
      won,
      ...(maxBytes === undefined ? {} : { maxBytes }),
    });

  openmpi('default', '', crowded || collective !== 'all_reduce');
  if (crowded) {
    openmpi('yield', yields);
    openmpi('yield+pin', `--bind-to none ${yields}`, true, '-p');
    openmpi('yield+han', `${yields}--mca coll_han_priority 100`, true);
  }
  openmpi(`${prefix}eager64k`, `${yields}${cma}`, true);
  openmpi(`${prefix}eager64k+nocma`, `${yields}${noCma}`, !crowded || collective !== 'all_reduce');
  openmpi(`${prefix}ucx`, `${yields}${ucx} -x UCX_RNDV_THRESH=65536`, crowded);
  openmpi(`${prefix}ucx-posix`, `${yields}${ucx} -x UCX_TLS=posix,self`, true);
  if (collective === 'all_reduce') {
    openmpi(`${prefix}ring32k`, `${yields}${cma} ${ring} 32768`, crowded);
    openmpi(`${prefix}ring64k`, `${yields}${ring} 65536`, crowded);
    openmpi(`${prefix}ring1m`, `${yields}${ring} 1048576`, true);
  }
  if (collective === 'reduce_scatter') {
    openmpi(`${prefix}v`, `${yields}${cma}`, true, '-A v');
    openmpi(`${prefix}halving`, `${yields}${cma} ${scatter} 3`);
    openmpi(`${prefix}butterfly`, `${yields}${cma} ${scatter} 4`);
  }

  mpich('default', {}, collective !== 'all_reduce');
  mpich('rndv64k', rndv);
  if (reduces) {
    mpich('rndv64k+user', rndv, !crowded, '-A user');
    mpich('user', {}, collective === 'reduce_scatter', '-A user');
  }
  if (crowded) mpich('yield', { MPIR_CVAR_POLLS_BEFORE_YIELD: '1' }, collective === 'all_reduce');
  else mpich('posix', { UCX_TLS: 'posix,self' }, true);

  if (collective === 'all_reduce') {
    gloo('ring', '-A ring');
    gloo('ring+pin', '-A ring -p', crowded);
    gloo('bcube', '-A bcube');
    gloo('bcube+pin', '-A bcube -p');
    for (const name of ['ring', 'chunked', 'hd'])
      gloo(`old_${name}+pin`, `-A old_${name} -p -i 1`, name === 'chunked' && !crowded);
    // Sockets without an event loop: both sides block in writes when messages outgrow the sockets' buffers.
    if (!crowded)
      for (const name of ['ring', 'hd']) gloo(`old_${name}+sync`, `-A old_${name}+sync -i 1`, name === 'ring', 2 ** 20);
  } else {
    const inPlace = collective === 'reduce_scatter' ? ' -i 1' : '';
    gloo('pin', `-p${inPlace}`, true);
    gloo('default', inPlace.trim());
  }
  return list;
}

/** Starts BENCH_SIZE ranks of the program and its arguments: the launcher of a library that has none. */
const startRanks = `
pids= rank=0
while [ "$rank" -lt "$BENCH_SIZE" ]; do BENCH_RANK=$rank "$@" & pids="$pids $!" rank=$((rank + 1)); done
status=0
for pid in $pids; do wait "$pid" || { status=$?; kill $pids 2>/dev/null; }; done
exit $status`;

/**
 * The command that starts a tuning's ranks.
 *
 * @param {Tuning} tuning @param {number} ranks @param {readonly string[]} options of the program
 * @returns {import('./processes.mjs').Command}
 */
export function command(tuning, ranks, options) {
  const words = (/** @type {string} */ text) => text.split(' ').filter((word) => word !== '');
  const args = [...options, '-L', tuning.name, ...words(tuning.options)];
  const program = programPath(`bench_${tuning.library}`);
  switch (tuning.library) {
    case 'openmpi':
      return {
        file: 'mpirun.openmpi',
        args: ['--oversubscribe', '-np', String(ranks), ...words(tuning.launcher), program, ...args],
        env: openmpiAsRoot,
      };
    case 'mpich':
      return { file: 'mpiexec.mpich', args: ['-n', String(ranks), program, ...args], env: tuning.environment };
    case 'gloo':
      return { file: '/bin/sh', args: ['-c', startRanks, 'gloo', program, ...args], env: { BENCH_SIZE: String(ranks) } };
  }
}

/** Open MPI's launcher refuses to run as root, as in a container, unless two variables allow it. */
export const openmpiAsRoot = { OMPI_ALLOW_RUN_AS_ROOT: '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1' };
