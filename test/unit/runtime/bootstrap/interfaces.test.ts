import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  checkReaches,
  chooseInterface,
  chooseNics,
  nameMatcher,
  systemInterfaces,
  unusedInterfaces,
} from '../../../../src/runtime/bootstrap/interfaces.js';
import type { Interface } from '../../../../src/runtime/bootstrap/interfaces.js';
import type { Origin } from '../../../../src/runtime/bootstrap/unique-id.js';
import { InvalidArgumentError, SystemError } from '../../../../src/errors.js';

const v4 = (name: string, address: string, netmask = '255.255.255.0'): Interface => ({ name, address, netmask, family: 4 });
const v6 = (name: string, address: string, netmask = 'ffff:ffff:ffff:ffff::'): Interface => ({
  name,
  address,
  netmask,
  family: 6,
});

const lo = [v4('lo', '127.0.0.1', '255.0.0.0'), v6('lo', '::1', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff')];
const docker = [v4('docker0', '172.17.0.1', '255.255.0.0')];
const bridge = [v4('virbr0', '192.168.122.1')];
const eth0 = [v4('eth0', '10.0.0.5'), v6('eth0', 'fd00::5'), v6('eth0', 'fe80::5')];
const eth1 = [v4('eth1', '10.0.1.5')];
const ib0 = [v4('ib0', '10.9.0.5')];
const host = [...lo, ...docker, ...bridge, ...eth0, ...eth1, ...ib0];

describe('without TCCL_SOCKET_IFNAME', () => {
  it.each([
    ['InfiniBand first', host, 'ib0'],
    ['then the first that is not docker, loopback or a bridge', [...lo, ...docker, ...bridge, ...eth0, ...eth1], 'eth0'],
    ['then docker', [...bridge, ...lo, ...docker], 'docker0'],
    ['then loopback', [...bridge, ...lo], 'lo'],
    ['then a bridge', bridge, 'virbr0'],
  ])('%s', (_, interfaces, name) => {
    expect(chooseInterface(interfaces).name).toBe(name);
  });

  it('no interface at all is an error', () => {
    expect(() => chooseInterface([])).toThrow(SystemError);
  });
});

describe('the root', () => {
  const choose = (rootHost: string, origin: Origin, interfaces = host) =>
    chooseInterface(interfaces, { root: { host: rootHost, origin } });

  it('on loopback makes ranks use loopback', () => {
    expect(choose('127.0.0.1', 'root')).toEqual({ name: 'lo', host: '127.0.0.1' });
    expect(choose('::1', 'address')).toEqual({ name: 'lo', host: '::1' });
  });

  it('under a name that this host resolves to loopback does not: other hosts resolve it differently', () => {
    expect(choose('127.0.1.1', 'name').name).toBe('ib0');
  });

  it('at an address that the user chose makes them use its subnet', () => {
    expect(choose('10.0.1.77', 'address')).toEqual({ name: 'eth1', host: '10.0.1.5' });
    expect(choose('fd00::77', 'address')).toEqual({ name: 'eth0', host: 'fd00::5' });
    expect(choose('10.0.1.77', 'name').name).toBe('eth1');
  });

  it('at an address that the launcher chose does too, and allows data on other NICs', () => {
    const root = (address: string) => ({ root: { host: address, origin: 'launcher' } as const });
    expect(choose('10.0.1.77', 'launcher').name).toBe('eth1');
    expect(chooseNics([...eth0, ...eth1, ...docker, ...lo], root('10.0.1.77')).map(({ name }) => name)).toEqual(['eth1', 'eth0']);
    const second = v4('eth2', '10.0.1.6');
    expect(chooseNics([...eth0, ...eth1, second], root('10.0.1.77')).map(({ name }) => name)).toEqual(['eth1', 'eth2', 'eth0']);
    expect(chooseNics(host, root('127.0.0.1')).map(({ name }) => name)).toEqual(['lo']);
    expect(chooseNics(host, { root: { host: '10.0.1.77', origin: 'address' } }).map(({ name }) => name)).toEqual(['eth1']);
  });

  it('in no subnet of this host, or with an address of its own choice, does not change the order', () => {
    expect(choose('203.0.113.1', 'address').name).toBe('ib0');
    expect(choose('10.0.1.77', 'root').name).toBe('ib0');
  });

  it('of a family makes ranks use addresses of that family', () => {
    expect(choose('2001:db8::1', 'root', [...lo, ...eth0])).toEqual({ name: 'eth0', host: 'fd00::5' });
  });

  it('with a link-local address is found on that link only', () => {
    const twoLinks = [v6('eth2', 'fe80::2'), v6('eth3', 'fe80::3')];
    expect(choose('fe80::9%eth3', 'address', twoLinks)).toEqual({ name: 'eth3', host: 'fe80::3%eth3' });
  });
});

describe('TCCL_SOCKET_IFNAME', () => {
  const choose = (interfaceName: string, family?: 4 | 6) => chooseInterface(host, { interfaceName, family });

  it.each([
    ['eth', 'eth0'],
    ['eth1', 'eth1'],
    ['=eth1', 'eth1'],
    ['ib,eth', 'eth0'],
    ['^lo,docker,virbr,eth', 'ib0'],
    ['^=lo,docker0,virbr0,eth0', 'eth1'],
    [' = eth1 , nothing', 'eth1'],
    ['lo', 'lo'],
    ['^eth0,ib', 'docker0'],
    ['^eth,ib,docker,virbr', 'lo'],
  ])('%s selects %s', (wish, name) => {
    expect(choose(wish).name).toBe(name);
  });

  it('overrides a root on loopback', () => {
    expect(chooseInterface(host, { interfaceName: 'eth1', root: { host: '127.0.0.1', origin: 'root' } }).name).toBe('eth1');
  });

  it('with a family selects an address of that family', () => {
    expect(choose('eth0', 6)).toEqual({ name: 'eth0', host: 'fd00::5' });
    expect(choose('lo', 6)).toEqual({ name: 'lo', host: '::1' });
    expect(chooseInterface([v6('eth0', 'fe80::5')], { interfaceName: 'eth0' })).toEqual({ name: 'eth0', host: 'fe80::5%eth0' });
  });

  it.each(['=eth', 'eht0', '^lo,docker,virbr,eth,ib', 'ETH0'])(
    '%s, which matches nothing, is an error that lists the interfaces',
    (wish) => {
      expect(() => choose(wish)).toThrow(InvalidArgumentError);
      expect(() => choose(wish)).toThrow(
        /lo \(127\.0\.0\.1, ::1\); docker0 \(172\.17\.0\.1\); .*eth0 \(10\.0\.0\.5, fd00::5, fe80::5\)/,
      );
    },
  );

  it('a misspelt name gets a suggestion', () => {
    expect(() => choose('eht0')).toThrow(/did you mean eth0\?/);
  });

  it('names the family too when that excludes all interfaces', () => {
    expect(() => choose('ib0', 6)).toThrow(/TCCL_SOCKET_IFNAME=ib0 with TCCL_SOCKET_FAMILY=AF_INET6/);
    expect(() => chooseInterface(docker, { family: 6 })).toThrow(/TCCL_SOCKET_FAMILY=AF_INET6; there are: docker0/);
  });

  it.each(['^', '=', '^=', ',', '^ , '])('"%s" names nothing and is refused', (wish) => {
    expect(() => nameMatcher(wish)).toThrow(/names no interface/);
  });
});

describe('interfaces that the user named and that do not run', () => {
  it('are listed with the reason', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tccl-net-'));
    const add = (name: string, flags: string, operstate: string) => {
      mkdirSync(join(folder, name));
      writeFileSync(join(folder, name, 'flags'), `${flags}\n`);
      writeFileSync(join(folder, name, 'operstate'), `${operstate}\n`);
    };
    add('eth0', '0x1003', 'up');
    add('eth1', '0x1002', 'down');
    add('eth2', '0x1003', 'lowerlayerdown');
    add('eth3', '0x1003', 'up');
    add('tun0', '0x1002', 'down');
    try {
      const running = new Set(['eth0']);
      expect(unusedInterfaces(nameMatcher('eth'), running, folder)).toEqual([
        'eth1 (down)',
        'eth2 (no link)',
        'eth3 (no address)',
      ]);
      expect(unusedInterfaces(nameMatcher('eth'), running, join(folder, 'none'))).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

it('a rank that could only listen on loopback does not try to join a root on another host', async () => {
  const loopback = { name: 'lo', host: '127.0.0.1' };
  await expect(checkReaches(loopback, '192.0.2.1')).rejects.toThrow(
    /^this rank can listen only on lo \(127\.0\.0\.1\), which the host of the root, 192\.0\.2\.1, does not reach; other interfaces of this host: /,
  );
  await checkReaches(loopback, '127.0.0.1');
  await checkReaches({ name: 'eth0', host: '192.0.2.2' }, '192.0.2.1');
  for (const { address } of systemInterfaces()) if (!address.startsWith('fe80')) await checkReaches(loopback, address);
});
