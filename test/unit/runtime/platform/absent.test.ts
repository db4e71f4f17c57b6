import { expect, test } from 'vitest';
import { absent } from '../../../../src/runtime/platform/browser/absent.js';

test('nothing is an instance of a class that a page lacks, and calling it names what is missing', () => {
  const Absent: unknown = absent('SocketInlet');
  expect({} instanceof (Absent as new () => object)).toBe(false);
  expect(() => new (Absent as new () => object)()).toThrow('SocketInlet needs Node.js: a page has neither files');
});
