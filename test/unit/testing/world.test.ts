import { expect, it } from 'vitest';
import { loadRankCode } from '../../../testing/world/code.js';
import { runJob, runSeed, type JobResult } from '../../../testing/world/job.js';
import { VirtualNetwork } from '../../../testing/world/network.js';
import { drawJob, kinds, type Fault, type Job } from '../../../testing/world/program.js';
import { Random } from '../../../testing/world/random.js';
import { shrinkJob } from '../../../testing/world/shrink.js';
import { diagramOf, perfettoOf } from '../../../testing/world/trace.js';
import { World } from '../../../testing/world/world.js';
import { runs } from '../../runs.js';

const code = loadRankCode();
const barrier = [{ kind: 'barrier' as const, count: 1, pauseMs: 0 }];

it('repeats the trace of a seed', async () => {
  const [first, second, other] = [
    await runSeed(9, await code, 4),
    await runSeed(9, await code, 4),
    await runSeed(10, await code, 4),
  ];
  expect(second.trace).toEqual(first.trace);
  expect(other.trace).not.toEqual(first.trace);
});

it('makes every kind of call with the right data, in order, without a fault', async () => {
  const calls = kinds.map((kind) => ({ kind, count: 1000, pauseMs: 0 }));
  for (const nRanks of [2, 3, 5])
    for (const hosts of new Set([1, 2, nRanks])) {
      const { broken, trace } = await runJob({ seed: nRanks, nRanks, hosts, calls, faults: [], recovers: false }, await code);
      expect(broken).toEqual([]);
      expect(trace.filter(({ text }) => text === 'ends')).toHaveLength(nRanks);
    }
});

it.each([1, 3])('ends calls that do not match at once where one is split or window, on %i hosts', async (hosts) => {
  const others: string[] = [];
  for (const [seed, [kind, makes]] of kinds.flatMap((kind) => kinds.map((makes) => [kind, makes] as const)).entries()) {
    // A message does not meet a collective.
    if (kind === makes || kind === 'ring' || makes === 'ring') continue;
    if (![kind, makes].some((one) => one === 'split' || one === 'window')) continue;
    const calls = [...barrier, { kind, count: 100, pauseMs: 0 }];
    const faults: Fault[] = [{ kind: 'odd call', rank: 1, call: 1, makes }];
    const { broken, trace, spans } = await runJob({ seed, nRanks: 3, hosts, calls, faults, recovers: false }, await code);
    const codes = trace.flatMap(({ text }) => / failed: (\w+)/.exec(text)?.[1] ?? []);
    const waitedMs = Math.max(...spans.filter(({ name }) => name.startsWith('call 1')).map((span) => span.endMs! - span.beginMs));
    if (broken.length > 0 || codes.join() !== Array(3).fill('CALL_MISMATCH').join() || waitedMs > 1000)
      others.push(`${kind} and ${makes}: ${codes.join(' ')} after ${waitedMs} ms, ${broken.join()}`);
  }
  expect(others).toEqual([]);
});

it.each(['barrier', 'split', 'objects'] as const)(
  'names both calls where %s differs from the last call of others',
  async (makes) => {
    const named: Record<string, string> = { barrier: 'barrier', split: 'split', objects: 'allGatherObject' };
    const others: string[] = [];
    for (const [nRanks, hosts] of [
      [3, 1],
      [5, 2],
    ] as const)
      for (let rank = 0; rank < nRanks; rank++) {
        const last = { kind: 'broadcast' as const, count: 1, pauseMs: 0 };
        const calls = [...barrier, last, last];
        const faults: Fault[] = [{ kind: 'odd call', rank, call: 2, makes }];
        const { broken, trace } = await runJob({ seed: rank, nRanks, hosts, calls, faults, recovers: false }, await code);
        const failed = trace.filter(({ text }) => text.includes(' failed: '));
        const names = ({ text }: { readonly text: string }): boolean =>
          text.includes('CALL_MISMATCH') && text.includes(' called broadcast') && text.includes(` called ${named[makes]!}`);
        if (broken.length > 0 || failed.length === 0 || !failed.every(names))
          others.push(`${nRanks} ranks, ${hosts} hosts, rank ${rank}: ${failed.map(({ text }) => text).join()}`);
      }
    expect(others).toEqual([]);
  },
);

it.each([1, 3])('refuses every kind of call once comm.failed has resolved, on %i hosts', async (hosts) => {
  for (const kind of kinds) {
    const calls = [...barrier, { kind, count: 10, pauseMs: 2000 }];
    const faults: Fault[] = [{ kind: 'crash', rank: 2, atMs: 700 }];
    const { broken, trace } = await runJob({ seed: 6, nRanks: 4, hosts, calls, faults, recovers: false }, await code);
    const failed = trace.filter(({ text }) => text.startsWith(`call 1: ${kind}`) && text.includes(' failed: RANK_DIED'));
    expect([kind, broken, failed.length]).toEqual([kind, [], 3]);
  }
});

it('names the rank that receives a message where the others split, open a window or make a barrier', async () => {
  const named = new Set<string>();
  for (const kind of ['split', 'window', 'barrier'] as const)
    for (const hosts of [1, 3]) {
      const faults: Fault[] = [{ kind: 'odd call', rank: 1, call: 0, makes: 'ring' }];
      const job = { seed: 5, nRanks: 3, hosts, calls: [{ kind, count: 4, pauseMs: 0 }], faults, recovers: false };
      const { broken, trace } = await runJob(job, await code);
      expect(broken).toEqual([]);
      for (const { rank, text } of trace)
        if (rank !== 1 && text.includes(' failed: ')) named.add(/rank 1\b/.exec(text)?.[0] ?? text);
    }
  expect([...named]).toEqual(['rank 1']);
});

it.each([1, 2, 5])('shrinks without a rank that is stopped, on %i hosts', async (hosts) => {
  for (const kind of ['window', 'barrier'] as const) {
    const faults: Fault[] = [{ kind: 'stop', rank: 0, atMs: 320, forMs: 300_000 }];
    const calls = Array.from({ length: 3 }, () => ({ kind, count: 10, pauseMs: 200 }));
    const { broken, spans } = await runJob({ seed: 11, nRanks: 5, hosts, calls, faults, recovers: false }, await code);
    expect(broken).toEqual([]);
    const shrinks = spans.filter(({ rank, name }) => rank > 0 && name === 'shrink');
    expect(shrinks.map(({ rank }) => rank).sort()).toEqual([1, 2, 3, 4]);
  }
});

const three = ['allReduce', 'ring', 'allGather'] as const;
const outcomes: readonly (readonly [string, Fault, string])[] = [
  ['the death of a rank', { kind: 'crash', rank: 2, atMs: 320 }, 'RANK_DIED'],
  ['a rank that makes another call', { kind: 'odd call', rank: 1, call: 2 }, 'CALL_MISMATCH'],
  ['a rank that is stopped', { kind: 'stop', rank: 3, atMs: 320, forMs: 60_000 }, 'TIMEOUT'],
  ['a rank that never comes', { kind: 'late', rank: 1, byMs: 300_000 }, 'RANK_MISSING'],
];

it.each(outcomes)('ends the calls of the others after %s', async (_, fault, outcome) => {
  const calls = three.map((kind) => ({ kind, count: 100, pauseMs: 200 }));
  const { broken, trace } = await runJob({ seed: 4, nRanks: 4, calls, faults: [fault], recovers: true }, await code);
  expect(broken).toEqual([]);
  expect(trace.filter(({ text }) => text.includes(` failed: ${outcome}`)).length).toBeGreaterThanOrEqual(3);
});

it('names a rank that stops between the last messages of init, in whatever call the others are by then', async () => {
  const calls = [{ kind: 'allReduce' as const, count: 100, pauseMs: 0 }];
  const job = { seed: 2, nRanks: 4, calls, faults: [], recovers: false };
  const inits = (await runJob(job, await code)).spans.filter(({ name }) => name === 'init');
  const [first = 0, last = 0] = [Math.min, Math.max].map((choose) => choose(...inits.map(({ endMs = 0 }) => endMs)));
  const ended = new Set<string>();
  for (const part of [0.2, 0.5, 0.8])
    for (const rank of [0, 1, 2, 3]) {
      const stop: Fault = { kind: 'stop', rank, atMs: first - 1 + part * (last - first + 1), forMs: 60_000 };
      const { broken, trace } = await runJob({ ...job, faults: [stop] }, await code);
      expect([stop, broken]).toEqual([stop, []]);
      for (const { text } of trace) if (text.includes(' failed: ')) ended.add(text.split(' ')[0]!);
    }
  // Some were still in init, and others in their first call.
  expect([...ended].sort()).toEqual(expect.arrayContaining(['call', 'init']));
});

it('lets a rank read what arrived before a reset, as Linux does', async () => {
  const world = new World(1);
  // Ranks are told 50 ms late, so that the reset has arrived before they read.
  const network = new VirtualNetwork(world, (rank, run) => void world.after(50, rank, run));
  const read: string[] = [];
  let code: string | undefined;
  const server = network.createServer(0, (socket) => {
    socket.write('last words');
    socket.resetAndDestroy();
  });
  server.listen({ host: '10.0.0.1', port: 5 });
  await world.run(() => server.accepts, 10);
  const socket = network.connect(1, { host: '10.0.0.1', port: 5 });
  socket.on('data', (data: Buffer) => read.push(data.toString()));
  socket.on('error', (error: NodeJS.ErrnoException) => (code = error.code));
  await world.run(() => socket.closed, 1000);
  expect([read.join(''), code]).toEqual(['last words', 'ECONNRESET']);
});

it('shrinks a job to what still fails, and draws it', async () => {
  const faults: Fault[] = [
    { kind: 'slow', rank: 0, atMs: 150, factor: 2 },
    { kind: 'odd call', rank: 1, call: 2 },
  ];
  // Every job fails here whose ranks make different calls.
  const run = async (job: Job): Promise<JobResult> => {
    const result = await runJob(job, await code);
    expect(result.broken).toEqual([]);
    return { ...result, broken: result.trace.flatMap(({ text }) => (text.includes('CALL_MISMATCH') ? [text] : [])) };
  };
  const failing = await run({ ...drawJob(new Random(3), 3, 4, []), faults });
  const { job } = await shrinkJob(failing, run, () => undefined);
  expect(job).toMatchObject({
    nRanks: 2,
    calls: [{ kind: 'barrier', count: 1, pauseMs: 0 }],
    faults: [{ ...faults[1], call: 0 }],
  });

  expect(diagramOf(failing)).toMatch(/rank 0 +rank 1 +rank 2 +rank 3\n/);
  const { traceEvents } = JSON.parse(perfettoOf(failing)) as { traceEvents: { name: string; ph: string }[] };
  expect(traceEvents.filter(({ name, ph }) => name === 'init' && ph === 'X')).toHaveLength(4);
});

it.each(Array.from({ length: runs(10, 100) }, (_, index) => index + 1))('seed %i', async (seed) => {
  expect((await runSeed(seed, await code)).broken).toEqual([]);
});

/** Jobs that failed once, and the fault that they showed. */
const corpus: readonly (readonly [fault: string, job: Job])[] = [
  [
    'a rank of a host without shared memory threw a RangeError when a rank of it could not be reached',
    {
      seed: 50,
      nRanks: 4,
      calls: Array.from({ length: 20 }, () => ({ kind: 'allReduce' as const, count: 1000, pauseMs: 100 })),
      faults: [{ kind: 'partition', from: 2, to: 3, bothWays: false, atMs: 834, forMs: 1e9 }],
      recovers: false,
    },
  ],
  [
    'a rank that was stopped while it connected for data failed: the other side had closed the connection',
    {
      seed: 880_151,
      nRanks: 5,
      calls: barrier,
      faults: [
        { kind: 'slow', rank: 1, atMs: 600, factor: 10 },
        { kind: 'stop', rank: 1, atMs: 263, forMs: 15_000 },
      ],
      recovers: false,
    },
  ],
  [
    'a rank that was given up at the end of its meeting left its listener open',
    {
      seed: 880_751,
      nRanks: 2,
      calls: barrier,
      faults: [
        { kind: 'slow', rank: 1, atMs: 202, factor: 1000 },
        { kind: 'reset', atMs: 569 },
      ],
      recovers: true,
    },
  ],
  [
    'a rank that was stopped between the last messages of init was not named by ranks that had left it',
    {
      seed: 1,
      nRanks: 4,
      calls: [{ kind: 'allReduce', count: 100, pauseMs: 0 }],
      faults: [{ kind: 'stop', rank: 1, atMs: 268.86, forMs: 60_000 }],
      recovers: false,
    },
  ],
  [
    'the world dropped the reason of a rank that gave up in init, because a reset arrived right after it',
    {
      seed: 910_040,
      nRanks: 4,
      calls: barrier,
      faults: [
        { kind: 'stop', rank: 3, atMs: 555, forMs: 60_000 },
        { kind: 'late', rank: 2, byMs: 500 },
      ],
      recovers: true,
    },
  ],
  [
    'a rank named one that aborted because of a death, and not the dead rank',
    { seed: 991_691, nRanks: 4, calls: barrier, faults: [{ kind: 'reset', atMs: 295 }], recovers: false },
  ],
  [
    'ranks named one that could not finish its connections with a stopped rank, and not the stopped one',
    {
      seed: 995_053,
      nRanks: 4,
      calls: [{ kind: 'broadcast', count: 1, pauseMs: 0 }],
      faults: [{ kind: 'stop', rank: 0, atMs: 313, forMs: 60_000 }],
      recovers: true,
    },
  ],
  [
    'the world took a rank of a child for one of its parent',
    {
      seed: 990_318,
      nRanks: 4,
      calls: [{ kind: 'split', count: 1, pauseMs: 0 }],
      faults: [{ kind: 'stop', rank: 2, atMs: 370, forMs: 15_000 }],
      recovers: true,
    },
  ],
  [
    'the world did not let a rank close that had its last messages, while others made calls that did not match',
    {
      seed: 990_976,
      nRanks: 3,
      calls: [
        { kind: 'ring', count: 1, pauseMs: 0 },
        { kind: 'ring', count: 1, pauseMs: 0 },
      ],
      faults: [{ kind: 'odd call', rank: 0, call: 1 }],
      recovers: false,
    },
  ],
  [
    'the world cut the loopback interface of a host, which nothing watches, and a rank waited to close',
    {
      seed: 1_202_052,
      nRanks: 3,
      calls: [
        { kind: 'ring', count: 40_000, pauseMs: 0 },
        { ...barrier[0]!, pauseMs: 168 },
        { ...barrier[0]!, pauseMs: 172 },
      ],
      faults: [{ kind: 'partition', from: 1, to: 0, bothWays: true, atMs: 510, forMs: 1e9 }],
      recovers: false,
    },
  ],
  [
    'ranks in init named one that aborted because it found a host silent, and not that host',
    {
      seed: 1_206_110,
      nRanks: 5,
      hosts: 2,
      calls: barrier,
      faults: [{ kind: 'partition', from: 3, to: 2, bothWays: true, atMs: 287.9145075341446, forMs: 1e9 }],
      recovers: true,
    },
  ],
  [
    'the world ended a long cut with a short one of the same way, and let what had been sent before wait on',
    {
      seed: 1_410_414,
      nRanks: 4,
      hosts: 2,
      calls: barrier,
      faults: [
        { kind: 'partition', from: 2, to: 0, bothWays: true, atMs: 133, forMs: 1e9 },
        { kind: 'partition', from: 3, to: 0, bothWays: true, atMs: 875, forMs: 100 },
      ],
      recovers: true,
    },
  ],
  [
    'calls of two algorithms that do not match ended with TIMEOUT, because no message of one met the other',
    {
      seed: 1_410_443,
      nRanks: 5,
      calls: [barrier[0]!, { kind: 'broadcast', count: 1, pauseMs: 0 }, barrier[0]!],
      faults: [{ kind: 'odd call', rank: 4, call: 2, makes: 'broadcast' }],
      recovers: false,
    },
  ],
  [
    'a rank got ABORTED of one that gave up because of a failure which had been reported before',
    {
      seed: 2_114_862,
      nRanks: 4,
      hosts: 1,
      calls: [{ kind: 'ring', count: 1, pauseMs: 77 }],
      faults: [{ kind: 'partition', from: 1, to: 3, bothWays: true, atMs: 168, forMs: 1e9 }],
      recovers: true,
    },
  ],
  [
    'the world did not let an error name a rank that waited in a child for the stopped one',
    {
      seed: 7,
      nRanks: 3,
      hosts: 3,
      calls: [barrier[0]!, { kind: 'split', count: 1, pauseMs: 0 }, barrier[0]!],
      faults: [{ kind: 'stop', rank: 2, atMs: 304, forMs: 15_000 }],
      recovers: false,
    },
  ],
  [
    'a rank whose call differs from the last one of others got CLOSED, because a goodbye passed their messages',
    {
      seed: 2_001_186,
      nRanks: 3,
      calls: [barrier[0]!, { kind: 'broadcast', count: 1, pauseMs: 0 }, { kind: 'broadcast', count: 1, pauseMs: 0 }],
      faults: [{ kind: 'odd call', rank: 1, call: 2, makes: 'window' }],
      recovers: false,
    },
  ],
  [
    'a rank whose next operation of a network was refused after a death reported that it had completed it: others waited',
    {
      seed: 4_059_125,
      nRanks: 5,
      hosts: 2,
      calls: [{ kind: 'broadcast', count: 1, pauseMs: 0 }, barrier[0]!, { kind: 'split', count: 1, pauseMs: 79 }, barrier[0]!],
      faults: [{ kind: 'crash', rank: 2, atMs: 349 }],
      recovers: false,
    },
  ],
  [
    'data of a call were lost with a connection, and the goodbye on another one was taken for another call',
    {
      seed: 4_015_798,
      nRanks: 4,
      hosts: 4,
      calls: [
        { kind: 'reduceScatter', count: 1, pauseMs: 122 },
        { kind: 'allGather', count: 1, pauseMs: 0 },
        { kind: 'window', count: 1, pauseMs: 57 },
        { kind: 'window', count: 1, pauseMs: 0 },
        { kind: 'broadcast', count: 1, pauseMs: 0 },
        { kind: 'split', count: 1, pauseMs: 0 },
        { kind: 'ring', count: 1, pauseMs: 14 },
        { kind: 'reduceScatter', count: 1, pauseMs: 0 },
        { kind: 'objects', count: 1, pauseMs: 0 },
        barrier[0]!,
        { kind: 'objects', count: 1, pauseMs: 114 },
        { kind: 'broadcast', count: 1, pauseMs: 0 },
      ],
      faults: [{ kind: 'reset', atMs: 648 }],
      recovers: true,
    },
  ],
  [
    'the world did not let a rank whose last call is the first of a group of others be named as closed',
    {
      seed: 4_002_422,
      nRanks: 2,
      hosts: 1,
      calls: [{ kind: 'group', count: 40_000, pauseMs: 0 }],
      faults: [{ kind: 'odd call', rank: 0, call: 0, makes: 'allReduce' }],
      recovers: false,
    },
  ],
  [
    'a rank kept the first of two connections that another dialled, which the network had reset, and left the second one open',
    { seed: 4_243_818, nRanks: 3, hosts: 2, calls: barrier, faults: [{ kind: 'reset', atMs: 263 }], recovers: false },
  ],
  [
    'a rank whose connection was lost named another that had closed; the world did not let it revoke the parent, which knew of no loss',
    {
      seed: 1852,
      nRanks: 5,
      hosts: 2,
      calls: [barrier[0]!, { kind: 'split', count: 1, pauseMs: 0 }, barrier[0]!],
      faults: [{ kind: 'reset', atMs: 304 }],
      recovers: true,
    },
  ],
  [
    'the world did not wait until a rank that had finished, and was stopped, went on and closed its connections',
    {
      seed: 4_686_010,
      nRanks: 4,
      hosts: 4,
      calls: [
        { kind: 'group', count: 1, pauseMs: 113 },
        barrier[0]!,
        { kind: 'reduceScatter', count: 1, pauseMs: 128 },
        { ...barrier[0]!, pauseMs: 59 },
        { kind: 'group', count: 1, pauseMs: 0 },
        { kind: 'broadcast', count: 1, pauseMs: 0 },
      ],
      faults: [
        { kind: 'stranger', atMs: 254, bytes: 3, stays: false },
        { kind: 'stop', rank: 1, atMs: 608, forMs: 15_000 },
      ],
      recovers: false,
    },
  ],
];

it('warns of nothing where many ranks agree after a death', async () => {
  const warnings: string[] = [];
  const warned = ({ message }: Error): void => void warnings.push(message);
  process.on('warning', warned);
  const faults: Fault[] = [{ kind: 'crash', rank: 3, atMs: 600 }];
  const calls = Array.from({ length: 3 }, () => ({ ...barrier[0]!, pauseMs: 200 }));
  for (const recovers of [true, false]) {
    const { broken, spans } = await runJob({ seed: 1, nRanks: 14, calls, faults, recovers }, await code);
    expect(broken).toEqual([]);
    expect(spans.filter(({ name }) => name === 'allReduce of 5 among 13')).toHaveLength(13);
  }
  process.off('warning', warned);
  expect(warnings).toEqual([]);
});

it.each(corpus)('%s', async (_, job) => {
  expect((await runJob(job, await code)).broken).toEqual([]);
});
