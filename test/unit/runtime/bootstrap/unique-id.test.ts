import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { getUniqueId } from '../../../../src/runtime/bootstrap/root.js';
import { secretOf, UniqueId, UNIQUE_ID_BYTES } from '../../../../src/runtime/bootstrap/unique-id.js';
import { InvalidArgumentError } from '../../../../src/errors.js';

const address = fc.record({
  host: fc.oneof(fc.ipV4(), fc.constantFrom('::1', 'fd00::2', 'fe80::1%eth0', '2001:db8::5')),
  port: fc.integer({ min: 1, max: 65535 }),
});

it('an id can be read back from text and bytes', () => {
  fc.assert(
    fc.property(address, (root) => {
      const id = UniqueId.create(root);
      for (const again of [
        UniqueId.parse(id.toString()),
        UniqueId.parse(` ${id.toString()}\n`),
        UniqueId.fromBytes(id.toBytes()),
      ]) {
        expect(again.root).toEqual(root);
        expect(Buffer.from(secretOf(again)).equals(secretOf(id))).toBe(true);
        expect(again.origin).toBe('root');
      }
      expect(id.toBytes().length).toBe(UNIQUE_ID_BYTES);
      expect(id.toString()).toMatch(/^tccl1:[\w-]+$/);
    }),
  );
});

it('either kind of TCCL_COMM_ID can be read', async () => {
  const id = UniqueId.create({ host: '10.0.0.1', port: 5 });
  expect((await UniqueId.read(id.toString())).toString()).toBe(id.toString());
  expect((await UniqueId.read('10.0.0.1:5', 's')).toString()).toBe((await UniqueId.fromHostPort('10.0.0.1:5', 's')).toString());
  await expect(UniqueId.read('tccl1:short')).rejects.toMatchObject({ code: 'UNIQUE_ID' });
  await expect(UniqueId.read('tccl1:29500')).rejects.toThrow(/host name "tccl1"/); // the name of a host, unknown here
  await expect(UniqueId.read('short')).rejects.toMatchObject({ code: 'UNIQUE_ID' });
  await expect(UniqueId.read(`"${id.toString()}"`)).rejects.toThrow('"\\"tccl1:…" is not an address');
});

it('a logged id does not show its secret', () => {
  const id = UniqueId.create({ host: '10.0.0.1', port: 5 });
  expect(inspect({ id })).toBe("{ id: UniqueId { root: '10.0.0.1:5' } }");
  expect(JSON.stringify({ id })).toBe('{"id":{"root":"10.0.0.1:5"}}');
  expect(inspect(id, { customInspect: false, showHidden: true, getters: true })).not.toMatch(/secret|Uint8Array/); // console.dir
  expect(Object.values(structuredClone(id))).toEqual([{ host: '10.0.0.1', port: 5 }, 'root', 0n]);
});

it.each([
  [
    { interface: 'lo' },
    'UNKNOWN_NAME',
    /^getUniqueId: there is no option "interface"; there are host, interfaceName, family, limits, settleMs$/,
  ],
  [{ hots: '127.0.0.1' }, 'UNKNOWN_NAME', /^getUniqueId: there is no option "hots"; did you mean host\?; /],
  ['127.0.0.1', 'ARGUMENT_TYPE', /^getUniqueId: its options are an object, as in { interfaceName: 'eth0' }, not "127\.0\.0\.1"$/],
])('an id is not made with options that do not exist: %o', async (options, code, message) => {
  await expect(getUniqueId(options as object)).rejects.toThrow(
    expect.objectContaining({ code, message: expect.stringMatching(message) as string }),
  );
});

it('two ids of one address have different secrets', () => {
  const root = { host: '10.0.0.1', port: 5 };
  expect(Buffer.from(secretOf(UniqueId.create(root))).equals(secretOf(UniqueId.create(root)))).toBe(false);
});

it('every changed byte is detected', () => {
  const bytes = UniqueId.create({ host: '10.0.0.1', port: 29500 }).toBytes();
  for (let i = 0; i < UNIQUE_ID_BYTES; i++) {
    const changed = Uint8Array.from(bytes);
    changed[i]! ^= 1;
    expect(() => UniqueId.fromBytes(changed)).toThrow(InvalidArgumentError);
  }
});

it('cut, foreign and arbitrary text is refused', () => {
  const text = UniqueId.create({ host: '10.0.0.1', port: 29500 }).toString();
  expect(() => UniqueId.parse(text.slice(0, -1))).toThrow(/cut/);
  expect(() => UniqueId.parse(`${text.slice(0, 60)} ${text.slice(60)}`)).toThrow(/base64url/);
  expect(() => UniqueId.parse('10.0.0.1:29500')).toThrow(/start with tccl1:/);
  expect(() => UniqueId.parse(text.slice('tccl1:'.length))).toThrow(/^"dGNjb\S{32}…" is not a unique id/); // the secret stands behind
  fc.assert(
    fc.property(fc.string(), (any) => {
      expect(() => UniqueId.parse(any)).toThrow(InvalidArgumentError);
      expect(() => UniqueId.parse(`tccl1:${any}`)).toThrow(InvalidArgumentError);
    }),
  );
});

describe('from host:port', () => {
  it('all ranks derive the same id', async () => {
    const [one, other] = await Promise.all([
      UniqueId.fromHostPort('10.0.0.1:29500', 's'),
      UniqueId.fromHostPort('10.0.0.1:29500', 's'),
    ]);
    expect(one.toString()).toBe(other.toString());
    expect(one.root).toEqual({ host: '10.0.0.1', port: 29500 });
    expect(one.origin).toBe('address');
  });

  it('another secret, port or host gives another secret', async () => {
    const ids = await Promise.all([
      UniqueId.fromHostPort('10.0.0.1:29500'),
      UniqueId.fromHostPort('10.0.0.1:29500', 's'),
      UniqueId.fromHostPort('10.0.0.1:29501'),
      UniqueId.fromHostPort('[::1]:29500'),
    ]);
    expect(new Set(ids.map((id) => Buffer.from(secretOf(id)).toString('hex'))).size).toBe(4);
  });

  it('a name is resolved', async () => {
    const id = await UniqueId.fromHostPort('localhost:5');
    expect(['127.0.0.1', '::1']).toContain(id.root.host);
    expect(id.origin).toBe('address');
  });

  it('an unknown name is an error that names it', async () => {
    await expect(UniqueId.fromHostPort('no-such-host.invalid:5')).rejects.toThrow(
      /"no-such-host.invalid" of the root cannot be resolved/,
    );
  });
});
