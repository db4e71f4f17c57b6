import { existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPool, type Pool } from '../../dist/index.js';
import { fixture } from './cli.js';
import { runRanks } from './ranks.js';

let pool: Pool;
const folder = mkdtempSync(join(tmpdir(), 'tccl-checkpoint-'));
const place = (name: string): string => join(folder, name);
beforeAll(async () => {
  pool = await openPool({ ranks: 3, module: fixture('checkpoint-jobs.mjs') });
});
afterAll(async () => {
  await pool.close();
  rmSync(folder, { recursive: true });
});

/** Tensors of a file, read as the format's description says. */
function tensorsOf(file: string) {
  const bytes = readFileSync(file);
  const length = Number(bytes.readBigUInt64LE(0));
  const { __metadata__: metadata, ...header } = JSON.parse(bytes.toString('utf8', 8, 8 + length)) as Record<
    string,
    { dtype: string; shape: number[]; data_offsets: [number, number] }
  >;
  const places = Object.entries(header).map(([name, { dtype, shape, data_offsets }]) => [
    name,
    dtype,
    shape.join(),
    ...data_offsets,
  ]);
  return { metadata, places, data: bytes.subarray(8 + length) };
}

describe('checkpoints', () => {
  it('give all ranks what rank 0 saved, in arrays of every kind', async () => {
    const file = place('all.safetensors');
    const loaded = { bytes: '0,-1,3', weights: '0.5,NaN,3', shared: '7,7', big: `${2n ** 60n}`, short: '9' };
    const expected = { metadata: { step: '12' }, loaded };
    expect(await pool.run('roundTrip', file)).toEqual([expected, expected, expected]);
    const { metadata, places, data } = tensorsOf(file);
    expect(metadata).toEqual({ step: '12' });
    expect(places).toEqual([
      ['shared', 'F64', '2', 0, 16],
      ['big', 'I64', '1', 16, 24],
      ['weights', 'F32', '3', 24, 36],
      ['short', 'U16', '1', 36, 38],
      ['bytes', 'I8', '3', 38, 41],
    ]);
    expect(data.length).toBe(41);
    expect([data.readDoubleLE(8), data.readFloatLE(24), data.readInt8(39)]).toEqual([7, 0.5, -1]);
    expect(existsSync(`${file}.tmp`)).toBe(false);
  });

  it('that do not fit are refused on all ranks with one line, and change nothing', async () => {
    const file = place('fit.safetensors');
    await pool.run('saves', file, 1);
    const refused = async (names: Record<string, string>, text: string) => {
      const expected = { error: `InputError CONTENT loadCheckpoint: ${file} cannot be read: ${text}`, file, isKept: true };
      expect(await pool.run('refuses', file, names)).toEqual([expected, expected, expected]);
    };
    await refused({ kernel: 'kernel', bias: 'bias', a: 'a' }, 'it has no a');
    await refused({ kernel: 'kernel' }, 'its bias is no parameter');
    await refused({ kernel: 'short', bias: 'bias' }, 'kernel is float32 [4] there, float32 [3] here');
    await refused({ kernel: 'kernel', bias: 'a' }, 'bias is float64 [1] there, float32 [1] here');
    const many = Object.fromEntries(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => [name, name]));
    await refused(many, 'it has no a; it has no b; it has no c; it has no d; it has no e; and 3 more');
    await pool
      .run('refuses', file, { kernel: 'kernel', bias: 'bias' })
      .then(([first]) => expect(first).toEqual({ metadata: {}, isKept: false }));
  });

  it('that are damaged or not there are refused on all ranks, unless they are optional', async () => {
    const file = place('damaged.safetensors');
    const names = { kernel: 'kernel', bias: 'bias' };
    const outcome = async (options = {}) => {
      const [first, ...others] = (await pool.run('refuses', file, names, options)) as { isKept: boolean; error: string }[];
      for (const other of others) expect(other).toEqual(first);
      expect(first?.isKept).toBe(true);
      return first;
    };
    const start = `loadCheckpoint: ${file} cannot be read:`;
    expect(await outcome()).toMatchObject({ error: expect.stringContaining(`SystemError FILE ${start} ENOENT`) as string, file });
    expect(await outcome({ optional: true })).toEqual({ metadata: {}, isKept: true });
    await pool.run('saves', file, 1);
    truncateSync(file, readFileSync(file).length - 1);
    expect(await outcome({ optional: true })).toMatchObject({
      error: `InputError CONTENT ${start} "kernel" has bytes 8 to 24 of 23: the file is damaged or cut off`,
    });
    writeFileSync(file, 'short');
    expect(await outcome()).toMatchObject({ error: `InputError CONTENT ${start} it is cut off after 5 bytes` });
  });

  it('refuse parameters that differ between ranks', async () => {
    for (const outcome of await pool.runSettled('differ', place('differ.safetensors'))) {
      const text =
        'loadCheckpoint: rank 0 has "kernel" (4 of float32) as parameter 0, rank 1 "kernel" (5 of float32); pass the same parameters on all ranks';
      expect(outcome).toMatchObject({ reason: { code: 'CALL_MISMATCH', message: text } });
    }
  });

  it('that cannot be saved are an error on all ranks', async () => {
    const file = place('no-folder/x.safetensors');
    const example = "saveCheckpoint(comm, 'model.safetensors', { weights })";
    for (const messages of await pool.run('saveErrors', file)) {
      expect(messages).toEqual([
        expect.stringContaining(`FILE saveCheckpoint: ${file} cannot be written: ENOENT`),
        `ARGUMENT_TYPE saveCheckpoint: pass a file, as in ${example}, not ""`,
        `ARGUMENT_TYPE saveCheckpoint: pass a communicator and its parameters by name, as in ${example}, not undefined as parameters`,
        'ARGUMENT_TYPE saveCheckpoint: metadata step is a text, not 3; pass String(x)',
        'UNKNOWN_NAME saveCheckpoint: there is no option "meta"; there are tensors, metadata',
        'UNKNOWN_NAME saveCheckpoint: parameter __metadata__: the file format keeps this name to itself',
        'ARGUMENT_TYPE saveCheckpoint: parameter w is an object of class Array; pass a typed array: Float32Array.from(x)',
      ]);
    }
  });

  it.each(['write', 'rename'])('stay whole when rank 0 is killed at the %s of a new one', async (step) => {
    const file = place(`${step}.safetensors`);
    const { code, stdout } = await runRanks(2, 'killed-save.mjs', [file, step]);
    expect({ isZero: code === 0, stdout }).toEqual({ isZero: false, stdout: '' });
    expect(existsSync(`${file}.tmp`)).toBe(true);
    const { data } = tensorsOf(file);
    expect(data.length).toBe(4004);
    for (let at = 0; at < data.length; at += 4) expect(data.readFloatLE(at)).toBe(1);
    // The next save is not in the way of what was left.
    const again = await runRanks(2, 'killed-save.mjs', [file, 'never']);
    expect([again.code, existsSync(`${file}.tmp`), tensorsOf(file).data.readFloatLE(0)], again.stderr).toEqual([0, false, 2]);
  });
});
