import { createRequire } from 'node:module';
import type { Gpu } from './gpu.js';

/** Bytes of `ncclUniqueId`. */
export const ID_BYTES = 128;
const FLOAT32 = 7;
const SUM = 0;

interface Library {
  func(name: string, result: string, types: readonly unknown[]): (...values: unknown[]) => unknown;
}

interface Koffi {
  load(path: string): Library;
  struct(fields: object): unknown;
  array(type: string, length: number, hint: string): unknown;
}

/** NCCL's own library, for figures beside ours. */
export interface Nccl {
  readonly version: string;
  makeId(): Uint8Array;
  /** Joins a communicator. @param rank of `nRanks` */
  join(nRanks: number, id: Uint8Array, rank: number): (send: bigint, recv: bigint, count: number, stream: bigint) => void;
}

/** @param path of a library, instead of `TCCL_NCCL` or the system's. Throws where there is none. */
export function openNccl(path = process.env['TCCL_NCCL'] ?? 'libnccl.so.2'): Nccl {
  const koffi = createRequire(import.meta.url)('koffi') as Koffi;
  const library = koffi.load(path);
  const uniqueId = koffi.struct({ internal: koffi.array('uint8_t', ID_BYTES, 'Typed') });
  const textOf = library.func('ncclGetErrorString', 'const char *', ['int']);
  const checked = (name: string, ...types: unknown[]): ((...values: unknown[]) => void) => {
    const call = library.func(name, 'int', types);
    return (...values) => {
      const result = call(...values);
      if (result !== 0) throw new Error(`${name}: ${String(textOf(result))}`);
    };
  };
  const version = new Int32Array(1);
  checked('ncclGetVersion', 'void *')(version);
  const [number = 0] = version;
  const getId = checked('ncclGetUniqueId', 'void *');
  const init = checked('ncclCommInitRank', 'void *', 'int', uniqueId, 'int');
  const arrays = ['uintptr_t', 'uintptr_t', 'size_t'];
  const allReduce = checked('ncclAllReduce', ...arrays, 'int', 'int', 'uintptr_t', 'uintptr_t');
  return {
    version: `${Math.floor(number / 10_000)}.${Math.floor(number / 100) % 100}.${number % 100}`,
    makeId: () => {
      const id = new Uint8Array(ID_BYTES);
      getId(id);
      return id;
    },
    join: (nRanks, id, rank) => {
      const comm = new BigUint64Array(1);
      init(comm, nRanks, { internal: id }, rank);
      return (send, recv, count, stream) => {
        allReduce(send, recv, count, FLOAT32, SUM, comm[0], stream);
      };
    },
  };
}

/** Milliseconds of an all-reduce of NCCL, the best of ten, and the first element of its sum. */
export function timeOfNccl(
  nccl: Nccl,
  gpu: Gpu,
  bytes: number,
  place: { nRanks: number; id: Uint8Array; rank: number },
): { ms: number; sum: number } {
  const [send, recv] = [gpu.allocate(bytes), gpu.allocate(bytes)];
  gpu.upload(send, new Uint8Array(new Float32Array(bytes / 4).fill(1 + place.rank).buffer));
  return gpu.context.run(() => {
    const allReduce = nccl.join(place.nRanks, place.id, place.rank);
    let ms = Infinity;
    for (let i = 0; i < 10; i++) {
      const startMs = performance.now();
      allReduce(send, recv, bytes / 4, gpu.stream);
      gpu.synchronize();
      ms = Math.min(ms, performance.now() - startMs);
    }
    const first = new Float32Array(1);
    gpu.download(recv, new Uint8Array(first.buffer));
    return { ms, sum: first[0] ?? NaN };
  });
}
