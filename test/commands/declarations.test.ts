import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isThorough } from '../runs.js';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const compilers = join(repository, 'test/declarations/node_modules');
const missing = existsSync(compilers) ? '' : ' (needs: npm ci --prefix test/declarations)';

const project = mkdtempSync(join(tmpdir(), 'tccl-declarations-'));
afterAll(() => {
  rmSync(project, { recursive: true });
});

beforeAll(() => {
  mkdirSync(join(project, 'node_modules'));
  symlinkSync(repository, join(project, 'node_modules/tccl'));
  const files = {
    'package.json': JSON.stringify({ type: 'module' }),
    'planner.ts': [
      "import { machine, plan, planToJson, type Plan } from 'tccl/planner';",
      "const planned: Plan = plan({ hosts: [{ machine: machine('dgx-h100'), count: 2 }] });",
      'export const json: unknown = planToJson(planned);',
      '// @ts-expect-error there is no such field',
      'planned.noSuchField;',
    ].join('\n'),
    'runtime.ts': [
      "import { init, type Communicator } from 'tccl';",
      'const comm: Communicator = await init({ timeoutMs: 1000 });',
      'const x: Float32Array = comm.alloc(Float32Array, 3);',
      'const board = await comm.window(comm.alloc(Float32Array, 3));',
      'await board.put(new Float32Array(2), 0);',
      "await comm.allReduce(x, x, 'max');",
      '// @ts-expect-error no such operator',
      "await comm.allReduce(x, x, 'maximum');",
      'const y = new Float64Array(3);',
      '// @ts-expect-error two classes',
      'await comm.allReduce(x, y);',
      '// @ts-expect-error two classes',
      'await comm.gather(x, y);',
      '// @ts-expect-error what is only moved',
      'await comm.allReduce(new Int16Array(2));',
      'await comm.broadcast(null, x, 0);',
      'await comm.gather(x, null);',
      'await comm.broadcast(new DataView(new ArrayBuffer(8)));',
      'await comm.allGather(new Int16Array(2), comm.alloc(Int16Array, 4));',
      'const either: Float32Array | Float64Array = Math.random() < 0.5 ? x : y;',
      'await comm.allReduce(either);',
      'const window = await comm.window(x);',
      'const mine: Float32Array = window.array;',
      '// @ts-expect-error another class than the window',
      'await window.put(y, 0);',
      'const settings: { lr: number } = await comm.broadcastObject({ lr: 0.1 });',
      'const all: { lr: number }[] | null = await comm.gatherObject(settings);',
      'const lr: { lr: number } = await comm.broadcastObject(comm.rank === 0 ? { lr: 0.1 } : undefined);',
      'const job = await comm.recvObject<{ name: string }>(0);',
      'const name: string = job.name + comm.recvObjectSync<{ name: string }>(0).name + String(lr);',
      'const other = await comm.recvObject(0);',
      '// @ts-expect-error without a type argument, the value is unknown',
      'other.name;',
      'const mineOfAll: { name: string } = await comm.scatterObjects<{ name: string }>(null);',
      'const found = await comm.probe(0);',
      "const isObject: boolean = found.type === 'object';",
      'await comm.recv(x, 0, { timeoutMs: 5 });',
      'await comm.send(x, 0, { tag: 3 });',
      'const from: number = (await comm.recvAny(x, { tag: 3, atMost: true })).source;',
      'const request = await comm.recvAnyObject<{ name: string }>({ tag: 3, timeoutMs: 5 });',
      'const asked: string = request.value.name + String(request.source + (await comm.probeAny()).tag);',
      'await comm.sendRecv(x, 0, y, 0, { tag: 3 });',
      'export const any = [from, asked];',
      "comm.allReduceSync(x, x, 'sum', { timeoutMs: 5 });",
      '// @ts-expect-error a blocking form takes no signal',
      "comm.allReduceSync(x, x, 'sum', { signal: undefined });",
      'await comm.allReduce(x, x, (a, b) => Math.hypot(a, b));',
      'await comm.allReduce(x, x, { combine: (a, b) => a.set(b), unit: 3 });',
      'await comm.scan(new BigInt64Array(2), undefined, (a, b) => a ^ b);',
      '// @ts-expect-error numbers of a BigInt64Array are bigints',
      'await comm.allReduce(new BigInt64Array(2), undefined, (a, b) => Math.max(a, b));',
      '// @ts-expect-error an operator gives a number',
      "await comm.allReduce(x, x, () => 'three');",
      'await comm.broadcastObject(settings, 0, { timeoutMs: 5 });',
      'const total: number = await comm.allReduce(3);',
      "const most: bigint = await comm.allReduce(3n, 'max', { type: 'uint64' });",
      'const atRoot: number | null = comm.reduceSync(3, (a, b) => Math.hypot(a, b), 1);',
      '// @ts-expect-error a bigint combines bigints',
      'await comm.allReduce(3n, (a, b) => Math.max(a, b));',
      '// @ts-expect-error the result of a bigint is one',
      'const wrong: number = await comm.scan(3n);',
      'const joined: { names: string[] } = await comm.allReduceObject({ names: [name] }, (a, b) => ({ names: [...a.names, ...b.names] }));',
      'const counted: number | null = await comm.reduceObject(3, (a, b) => a + b, 1);',
      'const swapped = await comm.sendRecvObject<{ name: string }>(joined, 0, 0);',
      'export const values = [total, most, atRoot, wrong, counted, swapped.name];',
      'await comm.group(() => undefined, { timeoutMs: comm.timeoutMs });',
      'export const kept = [mine, all, name, other, mineOfAll, isObject];',
    ].join('\n'),
    // Compilers from 5.2 on; a library or Node's types declare Symbol.dispose.
    'using.ts': [
      "import { init } from 'tccl';",
      "import { dataParallel } from 'tccl/ddp';",
      'await using comm = await init();',
      'using x = comm.alloc(Float32Array, 3);',
      'const plain: Float32Array = x;',
      'const own = new Float32Array(3);',
      'await comm.allReduce(x, plain);',
      'await comm.allReduce(own, x);',
      'await comm.reduce(x, own, (a, b) => Math.hypot(a, b));',
      'await comm.gather(own, x);',
      'await comm.gatherV(own, { array: x, counts: [3] });',
      'await comm.allGather(new ArrayBuffer(3), new ArrayBuffer(3));',
      '// @ts-expect-error two classes',
      'await comm.allReduce(x, new Float64Array(3));',
      'const board = await comm.window(comm.alloc(Float32Array, 3));',
      'await board.put(new Float32Array(2), 0);',
      'const ddp = await dataParallel(comm, { weights: comm.alloc(Float32Array, 3) });',
      "ddp.ready('weights', new Float32Array(3));",
      'const { weights } = await ddp.finish();',
      'export const kept: Float32Array[] = [weights, x];',
    ].join('\n'),
    'ddp.ts': [
      "import { init } from 'tccl';",
      "import { dataParallel, distributedSampler, loadCheckpoint, onnxTensors, saveCheckpoint, tfjsTensors } from 'tccl/ddp';",
      "import type { DataParallel, TfjsTensor } from 'tccl/ddp';",
      'const comm = await init();',
      'const ddp = await dataParallel(comm, { weights: new Float32Array(3), bias: new Float64Array(1) }, { bucketBytes: 1000 });',
      "ddp.ready('weights', new Float32Array(3));",
      '// @ts-expect-error no such parameter',
      "ddp.ready('wieghts', new Float32Array(3));",
      '// @ts-expect-error of another class than the parameter',
      "ddp.ready('weights', new Float64Array(3));",
      'const indices: number[] = [...distributedSampler(comm, 10, { dropLast: true }).epoch(0)];',
      'const loss: number = await ddp.noSync(() => indices.length);',
      'const { weights, bias } = await ddp.finish({ maxNorm: loss });',
      'const classes: [Float32Array, Float64Array] = [weights, bias];',
      '// @ts-expect-error no such gradient',
      '(await ddp.finish()).wieghts;',
      'const layers: Record<string, Float32Array> = {};',
      'const ofLayers = await dataParallel(comm, layers);',
      "ofLayers.ready('layer 1', new Float32Array(3));",
      'declare const tf: { tensor(): TfjsTensor; customGrad(): () => TfjsTensor };',
      'interface Variable extends TfjsTensor { assign(value: TfjsTensor): void }',
      'declare const kernel: Variable;',
      'const ofTensors: DataParallel<{ readonly kernel: TfjsTensor }> = await dataParallel(',
      '  comm, { kernel }, { tensors: tfjsTensors<TfjsTensor>(tf) });',
      "ofTensors.ready('kernel', tf.tensor());",
      '// @ts-expect-error no such parameter',
      "ofTensors.ready('kernl', tf.tensor());",
      "await saveCheckpoint(comm, 'a', { weights }, { metadata: { step: '1' } });",
      "const saved: { step?: string } = await loadCheckpoint(comm, 'a', { weights: new Float32Array(3), bias });",
      "await saveCheckpoint(comm, 'a', { kernel }, { tensors: tfjsTensors<TfjsTensor>(tf) });",
      'const gradient: TfjsTensor = (await ofTensors.finish()).kernel;',
      'export const kept = [classes, gradient, onnxTensors, saved];',
    ].join('\n'),
    'tsconfig.json': JSON.stringify({
      compilerOptions: {
        strict: true,
        exactOptionalPropertyTypes: true,
        skipLibCheck: false,
        skipDefaultLibCheck: true,
        noEmit: true,
        target: 'es2022',
        lib: ['es2022'],
        types: [],
        module: 'node16',
        moduleResolution: 'node16',
      },
      files: ['planner.ts', 'runtime.ts', 'ddp.ts'],
    }),
    'tsconfig.using.json': JSON.stringify({
      extends: './tsconfig.json',
      compilerOptions: { lib: ['es2022', 'esnext.disposable'] },
      files: ['using.ts'],
    }),
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(project, name), text);
});

/** Options of each way to resolve modules; TypeScript 6 has given up node10. `npm test` asks the oldest compiler. */
const resolutions = [
  ['node10', 'esnext', isThorough ? ['5.0', '5.9'] : ['5.0']],
  ['node16', 'node16', isThorough ? ['5.0', '5.9', '7.0'] : ['5.0']],
  ['nodenext', 'nodenext', isThorough ? ['5.0', '5.9', '7.0'] : ['5.0']],
  ['bundler', 'esnext', isThorough ? ['5.0', '5.9', '7.0'] : ['5.0']],
] as const;

test
  .skipIf(missing !== '')
  .each(
    resolutions.flatMap(([moduleResolution, module, versions]) => versions.map((version) => [moduleResolution, version, module])),
  )(
  `tccl, tccl/planner and tccl/ddp are found by moduleResolution %s of TypeScript %s${missing}`,
  (moduleResolution, version, module) => {
    const compiler = join(compilers, `typescript-${version}/bin/tsc`);
    const flags = ['--moduleResolution', moduleResolution, '--module', module];
    const { stdout, status } = spawnSync(process.execPath, [compiler, '-p', project, ...flags], { encoding: 'utf8' });
    expect({ stdout, status }).toEqual({ stdout: '', status: 0 });
  },
);

test.skipIf(missing !== '').each(isThorough ? ['5.6', '5.9', '6.0', '7.0'] : ['5.6', '7.0'])(
  `arrays of alloc are disposable under TypeScript %s${missing}`,
  (version) => {
    const compiler = join(compilers, `typescript-${version}/bin/tsc`);
    const { stdout, status } = spawnSync(process.execPath, [compiler, '-p', join(project, 'tsconfig.using.json')], {
      encoding: 'utf8',
    });
    expect({ stdout, status }).toEqual({ stdout: '', status: 0 });
  },
);

describe('the declarations of tccl and tccl/planner compile without skipLibCheck', () => {
  test.skipIf(missing !== '').each(isThorough ? ['5.0', '5.6', '5.9', '6.0', '7.0'] : ['5.0', '7.0'])(
    `under TypeScript %s${missing}`,
    (version) => {
      const compiler = join(compilers, `typescript-${version}/bin/tsc`);
      expect(spawnSync(process.execPath, [compiler, '--version'], { encoding: 'utf8' }).stdout).toMatch(`Version ${version}.`);
      const { stdout, stderr, status } = spawnSync(process.execPath, [compiler, '-p', project], { encoding: 'utf8' });
      expect({ stdout, stderr, status }).toEqual({ stdout: '', stderr: '', status: 0 });
    },
  );
});
