import { spawnSync } from 'node:child_process';
import { DeviceMemory } from './memory.js';
import { parseModule } from './parse.js';
import { generator, runKernels, type Launch } from './run.js';

/** A compiler of OpenCL C to PTX. */
export interface Clang {
  readonly path: string;
  /** As in `19.1.7`. */
  readonly version: string;
}

/** clang 14 calls functions for atomic additions, which the interpreter refuses. */
const LEAST_VERSION = 15;

/** The compiler at `TCCL_CLANG`, or a clang on the path as Debian names them; undefined where none is new enough. */
export function findClang(environment: NodeJS.ProcessEnv = process.env): Clang | undefined {
  const given = environment['TCCL_CLANG'];
  const named = Array.from({ length: 12 }, (_, i) => `clang-${25 - i}`);
  for (const path of given === undefined ? ['clang', ...named] : [given]) {
    const { stdout, status } = spawnSync(path, ['--version'], { encoding: 'utf8' });
    const version = status === 0 ? /version ([\d.]+)/.exec(stdout)?.[1] : undefined;
    if (version !== undefined && Number.parseInt(version, 10) >= LEAST_VERSION) return { path, version };
  }
  return undefined;
}

/** PTX of a file of OpenCL C. Throws what the compiler says if it refuses it. */
export function compileKernels({ path }: Clang, file: string, optimization: string): string {
  const target = ['-target', 'nvptx64-nvidia-nvcl', '-Xclang', '-target-cpu', '-Xclang', 'sm_75'];
  const words = [
    '-x',
    'cl',
    '-cl-std=CL2.0',
    optimization,
    '-S',
    ...target,
    '-Xclang',
    '-finclude-default-header',
    file,
    '-o',
    '-',
  ];
  const { stdout, stderr, status, error } = spawnSync(path, words, { encoding: 'utf8', maxBuffer: 1 << 26 });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${path}: ${stderr.trim().slice(0, 2000)}`);
  return stdout;
}

const BLOCKS = 4;
const THREADS = 64;
const COUNT = BLOCKS * THREADS - 9;

/** Work of a kernel on arrays, in the order of its parameters, and what has to be in them after it. */
interface Case {
  readonly arguments: readonly (number | ArrayBufferView)[];
  readonly expected: ReadonlyMap<number, ArrayBufferView>;
}

/** Cases of the kernels of compiled.cl. */
function casesOf(random: (below: number) => number): Readonly<Record<string, Case>> {
  const some = (least: number, most: number, count = COUNT): number[] =>
    Array.from({ length: count }, () => least + random(most - least));
  // Multiples of small powers of 2, whose sums and products are exact in any order.
  const [x, y] = [some(-1000, 1000).map((value) => value / 8), some(-1000, 1000)];
  const size = 16;
  const matrix = Uint16Array.from(some(0, 65536, size * size));
  const bytes = Uint8Array.from(some(0, 256));
  const counts = new Uint32Array(9);
  for (const value of bytes) counts[value >> 5] = (counts[value >> 5] ?? 0) + 1;
  const [a, c] = [Int32Array.from(some(-(2 ** 31), 2 ** 31)), Float64Array.from(some(-1000, 1000).map((value) => value / 3))];
  const b = BigInt64Array.from(some(-(2 ** 31), 2 ** 31), (high) => (BigInt(high) << 31n) + BigInt(random(2 ** 31)));
  return {
    saxpy: {
      arguments: [1.25, Float32Array.from(x), Float32Array.from(y), COUNT],
      expected: new Map([[2, Float32Array.from(y, (value, i) => value + 1.25 * (x[i] ?? 0))]]),
    },
    sum: {
      arguments: [Float32Array.from(x), new Float32Array(BLOCKS), COUNT],
      expected: new Map([
        [
          1,
          Float32Array.from({ length: BLOCKS }, (_, block) =>
            x.slice(block * THREADS, (block + 1) * THREADS).reduce((sum, value) => sum + value, 0),
          ),
        ],
      ]),
    },
    transpose: {
      arguments: [matrix, new Uint16Array(size * size), size],
      expected: new Map([[1, matrix.map((_, i) => matrix[(i % size) * size + Math.floor(i / size)] ?? 0)]]),
    },
    histogram: {
      arguments: [bytes, new Uint32Array(9), Int32Array.of(1000), COUNT],
      expected: new Map<number, ArrayBufferView>([
        [1, counts],
        [2, Int32Array.of(Math.min(...bytes) - 100)],
      ]),
    },
    mixed: {
      arguments: [a, b, c, new BigInt64Array(COUNT), COUNT],
      expected: new Map([[3, b.map((value, i) => mixed(a[i] ?? 0, value, c[i] ?? 0))]]),
    },
  };
}

/** One element of the kernel `mixed`. */
function mixed(a: number, b: bigint, c: number): bigint {
  let x = b / 7n + (b % 5n);
  x ^= (BigInt.asUintN(64, b) >> 3n) + (b << 2n);
  x += BigInt((Math.trunc(a / 3) - (a % 11) + (a >> 2)) | 0);
  x += a > 0 ? BigInt(Math.trunc(c * 3.5)) : -BigInt((a << 24) >> 24);
  return BigInt.asIntN(64, x + BigInt(Math.trunc(Math.fround(Math.fround(a) / 8))));
}

const bytesOf = (view: ArrayBufferView): Uint8Array => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

/** Runs the kernels of a text in as many schedules, and returns what differs from their known results. */
export function differencesOf(text: string, schedules: number): string[] {
  const kernels = parseModule(text);
  const found: string[] = [];
  for (let seed = 1; seed <= schedules; seed++)
    for (const [name, { arguments: given, expected }] of Object.entries(casesOf(generator(seed)))) {
      const kernel = kernels.get(name);
      if (kernel === undefined) throw new Error(`no kernel ${name}`);
      const memory = new DeviceMemory();
      const addresses = given.map((value, i) => {
        if (typeof value === 'number') return value;
        const address = memory.allocate(`argument ${i}`, value.byteLength);
        memory.bytesAt(address).set(bytesOf(value));
        return address;
      });
      const written = [...kernel.parameters].map(([parameter], i): [string, number | bigint | Uint8Array] => {
        const value = addresses[i] ?? 0;
        return [parameter, Number.isInteger(value) || typeof value === 'bigint' ? value : bytesOf(Float32Array.of(value))];
      });
      const launch: Launch = { kernel, blocks: BLOCKS, threads: THREADS, parameters: Object.fromEntries(written) };
      runKernels(memory, [launch], { seed });
      for (const [index, wanted] of expected) {
        const actual = memory.bytesAt(BigInt(addresses[index] ?? 0));
        const at = bytesOf(wanted).findIndex((byte, i) => byte !== actual[i]);
        if (at >= 0) found.push(`${name}, schedule ${seed}: byte ${at} of argument ${index} differs`);
      }
    }
  return found;
}
