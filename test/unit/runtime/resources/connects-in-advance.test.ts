import { describe, expect, it, test } from 'vitest';
import { checkEngines, connectsInAdvance, type RankFacts } from '../../../../src/runtime/resources/agree.js';
import { engineThreads, type CommunicatorConfig } from '../../../../src/runtime/resources/config.js';
import { runtimeSettings } from '../../../../src/runtime/resources/options.js';

/** The facts of ranks with these values of TCCL_RUNTIME_CONNECT. */
const factsOf = (...values: readonly (string | undefined)[]): RankFacts[] =>
  values.map((value) => ({
    ...{
      algorithm: 'auto',
      protocol: 'auto',
      engineThreads: engineThreads({}),
      sharedWithHost: true,
      nets: [],
      aggregators: [],
      sockets: 1,
      cores: [],
    },
    connectsUpTo: runtimeSettings({ TCCL_RUNTIME_CONNECT: value }).connectsUpTo,
  }));
const ranks = (count: number, value?: string): RankFacts[] => factsOf(...Array.from({ length: count }, () => value));

describe('all connections are made in advance', () => {
  it.each<[string, CommunicatorConfig, RankFacts[], boolean]>([
    ['among 16 ranks', {}, ranks(16), true],
    ['not among 17', {}, ranks(17), false],
    ['among any number with blocking: true', { blocking: true }, ranks(17), true],
    ["with engine: 'thread'", { engine: 'thread', blocking: false }, ranks(17), true],
    ['not with blocking: false', { blocking: false }, ranks(2), false],
    ['with TCCL_RUNTIME_CONNECT=0', {}, ranks(1000, '0'), true],
    ['not with TCCL_RUNTIME_CONNECT=1', {}, ranks(2, '1'), false],
    ['not if one rank has TCCL_RUNTIME_CONNECT=1', {}, factsOf(undefined, '0', '1'), false],
    ['with blocking: true and TCCL_RUNTIME_CONNECT=1', { blocking: true }, ranks(2, '1'), true],
  ])('%s', (_, config, facts, expected) => {
    expect(connectsInAdvance(engineThreads(config), facts)).toBe(expected);
  });
});

test('ranks that decide differently are named with what they were given', () => {
  const check = (facts: RankFacts[], ...configs: readonly CommunicatorConfig[]) =>
    checkEngines(configs.map(engineThreads), facts, false);
  expect(() => check(ranks(2), { blocking: true }, {})).not.toThrow();
  expect(() => check(ranks(2, '1'), { blocking: false }, {})).not.toThrow();
  expect(() => check(ranks(2), {}, { blocking: false })).toThrow(
    'blocking and engine differ between ranks: without blocking: false on rank 0, with blocking: false on rank 1; give all ranks the same',
  );
  expect(() => check(ranks(2, '1'), {}, { blocking: true })).toThrow(
    "without blocking: true on rank 0, with blocking: true or engine: 'thread' on rank 1",
  );
});
