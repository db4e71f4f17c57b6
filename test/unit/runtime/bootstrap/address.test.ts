import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  addressBytes,
  addressText,
  formatAddress,
  inZone,
  isLinkLocal,
  isLoopback,
  parseAddress,
} from '../../../../src/runtime/bootstrap/address.js';
import { InvalidArgumentError } from '../../../../src/errors.js';

it.each(['10.0.0.1:29500', '[::1]:1', '[fe80::1%eth0]:65535', 'node7.cluster:80'])(
  '%s is read and written back unchanged',
  (text) => {
    expect(formatAddress(parseAddress(text))).toBe(text);
  },
);

it.each([
  '',
  '10.0.0.1',
  '10.0.0.1:',
  ':29500',
  '::1:29500',
  '[10.0.0.1]:5',
  '[::1]',
  'a b:5',
  'host:0',
  'host:65536',
  'host:-1',
  'host:1e3',
])('"%s" is refused', (text) => expect(() => parseAddress(text)).toThrow(InvalidArgumentError));

it('bytes of an address give the same address', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (host) => {
      const bytes = addressBytes(host)!;
      const again = addressText(bytes);
      expect(addressBytes(again)).toEqual(bytes);
      expect(formatAddress({ host: again, port: 1 }).startsWith('[')).toBe(bytes.length === 16);
    }),
  );
});

it('bytes are those of the network order', () => {
  expect(addressBytes('10.1.2.3')).toEqual(Uint8Array.of(10, 1, 2, 3));
  expect(addressBytes('fe80::102%eth0')).toEqual(Uint8Array.of(0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2));
  expect(addressBytes('::ffff:1.2.3.4')).toEqual(Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 1, 2, 3, 4));
  expect(addressBytes('node7')).toBeUndefined();
});

it('kinds of addresses are told apart', () => {
  const loopback = ['127.0.0.1', '127.1.2.3', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1', '::FFFF:7F00:1'];
  expect(loopback.every(isLoopback)).toBe(true);
  expect(['10.0.0.1', '::2', 'fe80::1', '::ffff:10.0.0.1', '127.example.org'].some(isLoopback)).toBe(false);
  expect(['fe80::1', 'fe80::1%eth0', 'FEBF::1'].every(isLinkLocal)).toBe(true);
  expect(['fec0::1', '10.0.0.1', 'feb'].some(isLinkLocal)).toBe(false);
});

it('only a link-local address takes a zone', () => {
  expect(inZone({ host: 'fe80::1%eth7', port: 1 }, 'ib0')).toEqual({ host: 'fe80::1%ib0', port: 1 });
  expect(inZone({ host: 'fd00::1', port: 1 }, 'ib0')).toEqual({ host: 'fd00::1', port: 1 });
});
