import { expect, it } from 'vitest';
import { collectives, type MeasuredCommunicator } from '../../../src/perf/collectives.js';
import { timeCase } from '../../../src/perf/measure.js';
import { perfOptions } from '../../../src/perf/options.js';
import { elementTypes } from '../../../src/perf/types.js';
import { rawOptions } from './raw-options.js';

/** Calls of one rank alone: `call` and `done` of each all-reduce, and barriers. */
async function eventsOf(blocking: string): Promise<string> {
  const events: string[] = [];
  const comm = {
    rank: 0,
    nRanks: 1,
    allReduce: async () => {
      events.push('call');
      await Promise.resolve();
      events.push('done');
    },
    barrier: () => Promise.resolve(void events.push('barrier')),
  } as unknown as MeasuredCommunicator;
  const options = perfOptions('all_reduce', { ...rawOptions, api: 'promise', agg_iters: '2', blocking });
  const collective = collectives.find(({ name }) => name === 'all_reduce')!;
  const type = elementTypes.find(({ name }) => name === 'float')!;
  const [send, recv] = [new Float32Array(2), new Float32Array(2)];
  await timeCase(
    comm,
    {
      collective,
      type,
      operator: 'sum',
      root: 0,
      shape: collective.shape(2, 1, 4),
      send,
      recv,
      call: { send, recv, operator: 'sum', root: 0, options: { type: 'float32' } },
    },
    1,
    options,
  );
  const warmUp = 'call done barrier ';
  expect(events.join(' ').startsWith(warmUp)).toBe(true);
  return events.join(' ').slice(warmUp.length);
}

it.each([
  ['0', 'call call done done'],
  ['1', 'call done barrier call done barrier'],
  ['2', 'call done call done'],
  ['3', 'call done call done barrier'],
])('two aggregated promises with -z %s: %s', async (blocking, events) => {
  expect(await eventsOf(blocking)).toBe(events);
});
