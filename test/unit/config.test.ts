import { expect, test } from 'vitest';
import { checkConfig, checkOptions, engineThreads, forcedAlgorithm, inherit } from '../../src/runtime/resources/config.js';

test("a child inherits its parent's config, except the name, and its own options come first", () => {
  const parent = checkConfig('init', { name: 'world', blocking: false, engine: 'thread', channels: 4 });
  expect(inherit(parent, {})).toEqual({ blocking: false, engine: 'thread', channels: 4 });
  expect(inherit(parent, { name: 'row', blocking: true, channels: 1 })).toEqual({
    name: 'row',
    blocking: true,
    engine: 'thread',
    channels: 1,
  });
});

test('the number of engine threads lies between its bounds, and is 0 by default', () => {
  expect(engineThreads({})).toEqual({ inMemory: 0, overSockets: 0 });
  expect(engineThreads({ channels: 4 }).inMemory).toBe(0);
  expect(engineThreads({ engine: 'thread' }).inMemory).toBe(1);
  expect(engineThreads({ engine: 'thread', channels: 4, maxChannels: 2 }).inMemory).toBe(2);
  expect(engineThreads({ engine: 'thread', minChannels: 3 }).inMemory).toBe(3);
});

test('over sockets there is one engine thread on request, and ranks with blocking calls connect in advance', () => {
  expect(engineThreads({ engine: 'thread', channels: 4 })).toMatchObject({ overSockets: 1, connectsAll: true });
  expect(engineThreads({ blocking: true })).toEqual({ inMemory: 0, overSockets: 0, connectsAll: true });
  expect(engineThreads({ blocking: false })).toMatchObject({ overSockets: 0, connectsAll: false });
});

test('TCCL_ALGO overrides the config’s algorithm', () => {
  expect(forcedAlgorithm({ algorithm: undefined }, {})).toBeUndefined();
  expect(forcedAlgorithm({ algorithm: undefined }, { algorithm: 'ring' })).toBe('ring');
  expect(forcedAlgorithm({ algorithm: 'tree' }, { algorithm: 'ring' })).toBe('tree');
});

test.each([
  [{ name: '' }, 'ARGUMENT_TYPE'],
  [{ name: 'two\nlines' }, 'ARGUMENT_TYPE'],
  [{ blocking: 1 }, 'ARGUMENT_TYPE'],
  [{ engine: 'threads' }, 'UNKNOWN_NAME'],
  [{ algorithm: 'rings' }, 'UNKNOWN_NAME'],
  [{ algorithm: 5 }, 'UNKNOWN_NAME'],
  [{ channels: 0 }, 'ARGUMENT_RANGE'],
  [{ maxChannels: 1.5 }, 'ARGUMENT_RANGE'],
  [{ minChannels: 65 }, 'ARGUMENT_RANGE'],
  [{ minChannels: 3, maxChannels: 2 }, 'ARGUMENT_RANGE'],
])('%j is refused with %s', (config, code) => {
  expect(() => checkConfig('init', config as never)).toThrow(expect.objectContaining({ code }) as Error);
});

test.each([
  [{ chanels: 4 }, 'UNKNOWN_NAME', /split: there is no option "chanels"; did you mean channels\?; there are name, .*, commId/],
  [{ timeoutMs: 'soon' }, 'ARGUMENT_RANGE', /split: timeoutMs is a number of milliseconds above 0, 24 days at most, not "soon"/],
  // It ended the communicator at once.
  [{ timeoutMs: 0 }, 'ARGUMENT_RANGE', /timeoutMs is .* above 0, .* not 0/],
  [{ timeoutMs: null }, 'ARGUMENT_RANGE', /timeoutMs is .* not null/],
  [{ timeoutMs: Infinity }, 'ARGUMENT_RANGE', /timeoutMs is .* not Infinity/],
  [{ blocking: 1 }, 'ARGUMENT_TYPE', /blocking is true or false/],
  [null, 'ARGUMENT_TYPE', /its options are an object, .* not null/],
  [5, 'ARGUMENT_TYPE', /not 5/],
])('options %j of a call are refused with %s', (options, code, message) => {
  const check = (): unknown => checkOptions('split', options as never, ['commId']);
  expect(check).toThrow(message);
  expect(check).toThrow(expect.objectContaining({ code }) as Error);
});

test('options of a call contain a config', () => {
  expect(checkOptions('grow', { name: 'more', timeoutMs: 1, commId: 'host:1' } as never, ['commId'])).toEqual({ name: 'more' });
});
