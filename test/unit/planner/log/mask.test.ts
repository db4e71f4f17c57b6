import { expect, test } from 'vitest';
import { masked } from '../../../../src/planner/log/lines/mask.js';

test.each([
  'AWS_ACCESS_KEY_ID is AKIAIOSFODNN7SECRET1',
  'AWS_SECRET_ACCESS_KEY=aSECRET1/b',
  'token hf_AbCdEfGhIjKlSECRET1',
  'ghp_0123456789abcdefSECRET1',
  'sk-proj-Zx81SECRET1Secret0',
  'DB_PASSWORD=SECRET1',
  'AccountKey=abcSECRET1==;Endpoint=x',
  'login --password SECRET1',
  '{"api_key": "SECRET1"}',
  'https://host/x?a=b&token=SECRET1&sig=SECRET1',
  'https://hooks.slack.com/services/T0/B0/SECRET1',
  'eyJhbGciOiJIUzI1.eyJzdWIiOiIx.SECRET1',
  'redis://:SECRET1@r:6379/0',
  'Connect to ftp://u:SECRET1@10.0.0.11 failed',
  "bad password 'SECRET1'",
])('masks %s', (text) => {
  expect(masked(text)).toContain('(masked)');
  expect(masked(text)).not.toContain('SECRET1');
});

test.each([
  'sk-gpu-cluster-node-01:2100:2500 [0] NCCL INFO commId 0x9c65e97761265de2',
  'NCCL_IB_PKEY=3 NCCL_SOCKET_IFNAME=eth0 NCCL_X_KEY=4',
  'P_Key=0xffff lkey=0x12',
  'git 0123456789abcdef0123456789abcdef01234567',
  "KeyError: 'lr' tokens: 48211",
])('leaves %s', (text) => {
  expect(masked(text)).toBe(text);
});

test('takes time in proportion to the text', () => {
  const begin = performance.now();
  for (const part of ['a', '-', 'key', '://', 'token ', 'sk-', '--token', '_key']) masked(part.repeat(100_000));
  expect(performance.now() - begin).toBeLessThan(5000);
});
