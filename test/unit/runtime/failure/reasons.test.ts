import { expect, it, vi } from 'vitest';
import { namingCall, ofCall, SystemError, TimeoutError } from '../../../../src/errors.js';
import { Ending } from '../../../../src/runtime/failure/ending.js';
import { died } from '../../../../src/runtime/failure/reasons.js';
import { ofSilence, silenceOf } from '../../../../src/runtime/failure/silence.js';
import { packError, packReason, unpackError, unpackReason } from '../../../../src/runtime/failure/transfer.js';

const silence = { host: '10.0.0.2', isOfOwnInterface: true };

it('the first reason of an end is kept, and all that listen get it once', () => {
  const ending = new Ending();
  const [before, after] = [vi.fn(), vi.fn()];
  ending.onEnd(before);
  const first = new Error('first');
  expect(ending.end(first)).toBe(first);
  expect(ending.end(new Error('second'))).toBe(first);
  ending.onEnd(after);
  expect([before.mock.calls, after.mock.calls]).toEqual([[[first]], [[first]]]);
});

it('a rank on a silent host is lost, on every rank that gets the error, whatever its text says', () => {
  const cause = ofSilence(new SystemError('NETWORK', 'from 10.0.0.1: no answer'), silence);
  const error = died(3, cause);
  expect(error.message).toBe('rank 3 cannot be reached from 10.0.0.1: no answer');
  expect(silenceOf(unpackError(packError(error)))).toEqual(silence);
  expect(silenceOf(unpackReason(packReason(error), 3))).toEqual(silence);
  expect(silenceOf(died(3, new Error('cannot be reached from 10.0.0.1')))).toBeUndefined();
});

it('an error names its call once, on another rank too, and a word before a colon is no call', () => {
  const late = ofCall(new TimeoutError('TIMEOUT', 'rank 1 waited'), 'scan');
  expect(ofCall(unpackError(packError(late)), 'reduce').message).toBe('scan: rank 1 waited');
  expect(ofCall(namingCall(new TimeoutError('TIMEOUT', 'scan: it waited')), 'reduce').message).toBe('scan: it waited');
  expect(ofCall(new SystemError('NETWORK', 'eth1: no carrier'), 'reduce').message).toBe('reduce: eth1: no carrier');
});
