import { transportCompliance } from './compliance.js';
import { libc } from './pairs.js';

transportCompliance('socket');
transportCompliance('socket', false, ['node:net', 'node:net'], true);
if (libc !== undefined) {
  transportCompliance('socket', false, ['system calls', 'system calls']);
  transportCompliance('socket', false, ['system calls', 'system calls'], true);
  transportCompliance('socket', false, ['system calls', 'node:net']);
  transportCompliance('socket', false, ['node:net', 'system calls']);
}
