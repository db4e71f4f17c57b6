import { expect, test } from 'vitest';
import { sourceAddress, type Nic } from '../../../../src/runtime/bootstrap/interfaces.js';
import { railsOf } from '../../../../src/runtime/channels/rails.js';

/** NICs with addresses in subnets of 256. */
const nics = (addresses: Readonly<Record<string, string>>): Nic[] =>
  Object.entries(addresses).map(([name, host]) => ({ name, host, netmask: '255.255.255.0' }));
const namesOf = (hosts: readonly (readonly Nic[])[], named = false): string[][] =>
  hosts.map((mine) => railsOf(mine, hosts, named).map(({ name }) => name));

test('NICs in one subnet have the same place on every host', () => {
  const hosts = [nics({ eth0: '10.0.1.1', eth1: '10.0.2.1' }), nics({ eth0: '10.0.2.2', eth1: '10.0.1.2' })];
  expect(namesOf(hosts)).toEqual([['eth0', 'eth1'], ['eth1', 'eth0']]); // prettier-ignore
});

test('a NIC whose subnet another host lacks is left out, unless it is the first or the user named it', () => {
  const hosts = [
    nics({ eth0: '10.0.1.1', eth1: '10.0.2.1', wg0: '10.9.0.1' }),
    nics({ eth0: '10.0.1.2', eth1: '10.0.2.2' }),
    nics({ eth0: '10.0.3.3', eth1: '10.0.2.3' }),
  ];
  expect(namesOf(hosts)).toEqual([['eth0', 'eth1'], ['eth0', 'eth1'], ['eth1', 'eth0']]); // prettier-ignore
  expect(namesOf(hosts, true)[0]).toEqual(['eth0', 'eth1', 'wg0']);
});

test("an address that two hosts have, such as a bridge's, connects none", () => {
  const hosts = [nics({ eth0: '10.0.1.1', br0: '10.5.0.1' }), nics({ eth0: '10.0.1.2', br0: '10.5.0.1' })];
  expect(namesOf(hosts)).toEqual([['eth0'], ['eth0']]);
});

test('a second NIC that has only a link-local address connects none', () => {
  const link = (address: string): Nic => ({ name: 'eth1', host: `${address}%eth1`, netmask: 'ffff:ffff:ffff:ffff::' });
  const hosts = [
    [...nics({ eth0: '10.0.1.1' }), link('fe80::1')],
    [...nics({ eth0: '10.0.1.2' }), link('fe80::2')],
  ];
  expect(namesOf(hosts)).toEqual([['eth0'], ['eth0']]);
  expect(namesOf(hosts, true)).toEqual([
    ['eth0', 'eth1'],
    ['eth0', 'eth1'],
  ]);
});

test('a connection leaves by its NIC unless another one is in the subnet of its target', () => {
  const eth0: Nic = { name: 'eth0', host: '10.0.1.1', netmask: '255.255.255.0' };
  const interfaces = [
    { name: 'eth0', address: '10.0.1.1', netmask: '255.255.255.0', family: 4 },
    { name: 'eth1', address: '10.0.2.1', netmask: '255.255.255.0', family: 4 },
  ] as const;
  expect(sourceAddress(eth0, '10.0.1.7', interfaces)).toBe('10.0.1.1');
  expect(sourceAddress(eth0, '10.0.2.7', interfaces)).toBeUndefined();
  expect(sourceAddress(eth0, '10.0.3.7', interfaces)).toBe('10.0.1.1');
  expect(sourceAddress(eth0, 'fd00::7', interfaces)).toBeUndefined();
  const linkLocal: Nic = { name: 'eth0', host: 'fe80::1%eth0', netmask: 'ffff:ffff:ffff:ffff::' };
  expect(sourceAddress(linkLocal, 'fe80::7%eth0', interfaces)).toBeUndefined();
});
