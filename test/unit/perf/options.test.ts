import { describe, expect, it } from 'vitest';
import { InvalidArgumentError } from '../../../src/errors.js';
import { leastIterations, defaultWarmup, perfOptions, type RawOptions } from '../../../src/perf/options.js';
import { elementTypes } from '../../../src/perf/types.js';
import { rawOptions } from './raw-options.js';

const withOptions = (raw: Partial<RawOptions>, collective = 'all_reduce') => perfOptions(collective, { ...rawOptions, ...raw });

it('`all` means every type and every operator, and a collective that does not reduce has none', () => {
  expect(withOptions({ datatype: 'all' }).types.map((type) => type.name)).toEqual(elementTypes.map((type) => type.name));
  expect(withOptions({ op: 'all' }).operators).toEqual(['sum', 'prod', 'min', 'max', 'avg', 'mulsum']);
  expect(withOptions({ op: 'max' }).operators).toEqual(['max']);
  expect(withOptions({ op: 'all' }, 'broadcast').operators).toEqual([undefined]);
});

it("-a takes nccl-tests' numbers", () => {
  expect(['0', '1', '2', '3'].map((average) => withOptions({ average }).average)).toEqual(['rank0', 'avg', 'min', 'max']);
});

it('a factor of 1 means steps of bytes', () => {
  expect(withOptions({ minbytes: '1M', maxbytes: '3M' }).sizes).toEqual([2 ** 20, 2 ** 21, 3 * 2 ** 20]);
});

describe('wrong options are refused with a remedy', () => {
  it.each<[string, Partial<RawOptions>, string]>([
    ['all_reduc', {}, "unknown collective 'all_reduc'; did you mean all_reduce?"],
    ['xyz', {}, "unknown collective 'xyz'; there are all_reduce, reduce, broadcast, all_gather, "],
    ['all_reduce', { datatype: 'flaot' }, "unknown datatype 'flaot'; did you mean float?"],
    ['all_reduce', { op: 'summ' }, "unknown operator 'summ'; did you mean sum?"],
    ['all_reduce', { api: 'async' }, "unknown --api 'async'; did you mean sync?"],
    ['all_reduce', { memory: 'heap' }, "unknown --memory 'heap'; there are shared, plain"],
    ['all_reduce', { iters: '0' }, "--iters '0' must be a whole number of at least 1"],
    ['all_reduce', { iters: '1.5' }, "--iters '1.5' must be a whole number of at least 1"],
    ['all_reduce', { average: '4' }, "--average '4' must be a whole number from 0 to 3"],
    ['all_reduce', { check: 'yes' }, "--check 'yes' must be a whole number of at least 0"],
    ['all_reduce', { root: '-2' }, "--root '-2' must be a whole number of at least -1"],
  ])('%s %j', (collective, raw, message) => {
    const act = () => withOptions(raw, collective);
    expect(act).toThrow(InvalidArgumentError);
    expect(act).toThrow(message);
  });
});

it('calls by size move 16 MiB within bounds', () => {
  expect([8, 2 ** 16, 2 ** 20, 2 ** 26].map(leastIterations)).toEqual([1000, 256, 20, 20]);
  expect([0, 2 ** 16, 2 ** 20, 2 ** 26].map(defaultWarmup)).toEqual([1000, 256, 16, 2]);
});
