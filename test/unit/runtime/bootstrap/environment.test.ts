import { expect, it } from 'vitest';
import { readBootstrapEnvironment } from '../../../../src/runtime/bootstrap/index.js';

it('unset and empty variables have no effect', () => {
  const nothing = { interfaceName: undefined, family: undefined, hostId: undefined, commSecret: undefined };
  expect(readBootstrapEnvironment({})).toEqual(nothing);
  expect(
    readBootstrapEnvironment({ TCCL_SOCKET_IFNAME: '', TCCL_SOCKET_FAMILY: '', TCCL_HOSTID: '', TCCL_COMM_SECRET: '' }),
  ).toEqual(nothing);
});

it('all variables are read', () => {
  expect(
    readBootstrapEnvironment({
      TCCL_SOCKET_IFNAME: '=eth0',
      TCCL_SOCKET_FAMILY: 'AF_INET6',
      TCCL_HOSTID: 'a',
      TCCL_COMM_SECRET: 's',
    }),
  ).toEqual({ interfaceName: '=eth0', family: 6, hostId: 'a', commSecret: 's' });
});

it('values without meaning are refused', () => {
  expect(() => readBootstrapEnvironment({ TCCL_SOCKET_IFNAME: '^' })).toThrow(/TCCL_SOCKET_IFNAME=\^ names no interface/);
  expect(() => readBootstrapEnvironment({ TCCL_SOCKET_FAMILY: 'AF_INET4' })).toThrow(
    /TCCL_SOCKET_FAMILY=AF_INET4 is neither AF_INET nor AF_INET6; did you mean AF_INET\?/,
  );
});
