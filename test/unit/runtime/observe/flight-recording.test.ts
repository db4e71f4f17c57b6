import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkFlight } from '../../../../src/planner/log/checks/flight.js';
import { isFlightRecording, readFlightRecording } from '../../../../src/planner/readers/flight.js';
import { encodeCall, type Call } from '../../../../src/runtime/algorithms/call.js';
import { outOfBandCode, windowCode } from '../../../../src/runtime/algorithms/other-calls.js';
import { Board } from '../../../../src/runtime/device/board.js';
import { RING_ENTRIES } from '../../../../src/runtime/device/board-layout.js';
import { dataTypeOf, int32 } from '../../../../src/runtime/device/types.js';
import { flightRecording } from '../../../../src/runtime/observe/flight-recording.js';

const call = (kind: 'allReduce' | 'allGather', count: number): Call => ({
  kind,
  type: dataTypeOf(new Float32Array(0)),
  operator: 'sum',
  root: 0,
  count,
  algorithm: 'direct',
});

const facts = { job: 'abcd', version: '0.1.0', shared: true, hosts: [{ host: 'a', from: 0, to: 1 }] };

/** A rank whose communicator makes calls; `begin` and `wait` as the queue of calls does. */
function rank(number: number) {
  const board = Board.ofOwn();
  board.open({ rank: number, nRanks: 2, facts });
  const recorder = board.show({ id: '0.0', name: 'main', rank: number, nRanks: 2, members: [0, 1] });
  let begun = 0;
  const make = (made: Call, waits = false): void => {
    const code = encodeCall(made);
    recorder.begin(++begun, code, made.root, made.count);
    if (waits) recorder.wait(begun, { code, root: made.root, count: made.count });
  };
  return { board, recorder, make };
}

const recordingOf = (board: Board) => {
  const recording = flightRecording(board.bytes(), 'a', Date.now());
  if (recording === undefined) throw new Error('no recording');
  return recording;
};

const findings = (...boards: readonly Board[]) =>
  checkFlight(
    boards.map((board) => {
      const value: unknown = JSON.parse(JSON.stringify(recordingOf(board)));
      if (!isFlightRecording(value)) throw new Error('not a recording');
      return readFlightRecording(value, 'record', { file: 0, line: 1 });
    }),
  );

describe('the last calls of a rank', () => {
  test('have their number, elements, state and time, also those that share an entry', () => {
    const before = Date.now() * 1e6;
    const { board, recorder, make } = rank(0);
    for (let i = 0; i < 100; i++) make(call('allReduce', 4));
    make(call('allGather', 2), true);
    recorder.end();
    make(call('allReduce', 8), true);
    const { entries, pg_config: groups } = recordingOf(board);
    expect(entries.map(({ collective_seq_id: number }) => number)).toEqual(Array.from({ length: 102 }, (_, i) => i));
    expect(entries.slice(0, 100).every(({ state, input_sizes: [sizes] }) => state === 'completed' && sizes?.[0] === 4)).toBe(
      true,
    );
    expect(entries.slice(100)).toMatchObject([
      { profiling_name: 'tccl:allGather', input_sizes: [[2]], input_dtypes: ['float32'], state: 'completed' },
      { profiling_name: 'tccl:allReduce (sum)', input_sizes: [[8]], state: 'started', process_group: ['0.0', 'main'] },
    ]);
    for (const { time_created_ns: created } of entries) expect(created).toBeGreaterThan(before - 1e9);
    expect(groups['0.0']?.ranks).toBe('[0, 1]');
  });

  test('are the newest 2,000, and a call that waits is never lost', () => {
    const { board, make } = rank(0);
    make(call('allReduce', 1), true);
    const side = board.show({ id: '1.0', name: undefined, rank: 0, nRanks: 2 });
    for (let i = 1; i <= 3 * RING_ENTRIES; i++) side.begin(i, encodeCall(call('allReduce', i)), 0, i);
    const { entries } = recordingOf(board);
    expect(entries).toHaveLength(2000);
    expect(entries.at(-1)).toMatchObject({ collective_seq_id: 3 * RING_ENTRIES - 1, input_sizes: [[3 * RING_ENTRIES]] });
    expect(entries.filter(({ state }) => state === 'started')).toMatchObject([{ process_group: ['0.0', 'main'] }]);
  });

  test('do not mix up those of a closed communicator and of the next one in its place', () => {
    const { board } = rank(0);
    const closed = board.show({ id: '1.0', name: undefined, rank: 0, nRanks: 2 });
    closed.begin(1, encodeCall(call('allReduce', 3)), 0, 3);
    closed.close();
    const next = board.show({ id: '2.0', name: undefined, rank: 0, nRanks: 2 });
    next.begin(1, encodeCall(call('allReduce', 3)), 0, 3);
    expect(recordingOf(board).entries.map(({ process_group: [id] }) => id)).toEqual(['closed communicator 2 of rank 0', '2.0']);
  });

  test('have times after a communicator with many calls has been closed', () => {
    const { board } = rank(0);
    const code = encodeCall(call('allReduce', 4));
    const closed = board.show({ id: '1.0', name: undefined, rank: 0, nRanks: 2 });
    for (let i = 1; i <= 10_000; i++) closed.begin(i, code, 0, 4);
    closed.close();
    const next = board.show({ id: '2.0', name: undefined, rank: 0, nRanks: 2 });
    for (let i = 1; i <= 500; i++) next.begin(i, code, 0, i);
    const { entries } = recordingOf(board);
    expect(entries.slice(-200).some(({ time_discovered_started_ns: started }) => started !== null)).toBe(true);
  });

  test('include messages, with the other rank and their state', () => {
    const { board, recorder } = rank(0);
    recorder.addMessage(true, 1, dataTypeOf(new Int32Array(0)).code, 5);
    const got = recorder.beginMessage(false, 1, dataTypeOf(new Int32Array(0)).code, 6);
    recorder.endApart(got);
    recorder.beginMessage(false, 1, dataTypeOf(new Int32Array(0)).code, 7);
    expect(recordingOf(board).entries).toMatchObject([
      { profiling_name: 'tccl:send 0->1', is_p2p: true, input_sizes: [[5]], input_dtypes: ['int32'], state: 'completed' },
      { profiling_name: 'tccl:recv 0<-1', is_p2p: true, input_sizes: [[6]], state: 'completed' },
      { profiling_name: 'tccl:recv 0<-1', is_p2p: true, input_sizes: [[7]], state: 'started' },
    ]);
  });

  test('keep their order, whatever repeats', () => {
    const put = windowCode('put', int32);
    const step = fc.array(
      fc.record({ kind: fc.constantFrom('send', 'recv', 'put', 'barrier', 'late'), count: fc.integer({ min: 1, max: 2 }) }),
      { minLength: 1, maxLength: 20 },
    );
    const program = fc.array(fc.record({ step, times: fc.integer({ min: 1, max: 70 }) }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(program, (parts) => {
        const { board, recorder, make } = rank(0);
        const made = parts.flatMap(({ step: calls, times }) => Array.from({ length: times }, () => calls).flat());
        for (const { kind, count } of made) {
          if (kind === 'barrier') make(call('allGather', count));
          else if (kind === 'put') recorder.operation(put, 1, count);
          else if (kind === 'late') recorder.endApart(recorder.beginMessage(true, 1, int32.code, count));
          else recorder.addMessage(kind === 'send', 1, int32.code, count);
        }
        const names = { send: 'send 0->1', recv: 'recv 0<-1', put: 'put 0->1', barrier: 'allGather', late: 'send 0->1' };
        const { entries } = recordingOf(board);
        expect(entries.map(({ profiling_name: name, input_sizes: [size] }) => `${name} ${size?.[0]}`)).toEqual(
          made.slice(-entries.length).map(({ kind, count }) => `tccl:${names[kind]} ${count}`),
        );
        expect(entries.length).toBe(Math.min(made.length, 2000));
      }),
    );
  });

  test('include operations of windows, and calls over the bootstrap network', () => {
    const { board, recorder, make } = rank(0);
    make(call('allReduce', 4));
    const put = windowCode('put with signal', int32);
    for (let i = 0; i < 3; i++) recorder.operation(put, 1, 5);
    recorder.operation(windowCode('get', int32), 1, 5);
    make(call('allReduce', 4), true);
    recorder.end();
    const shrink = recorder.beginOutOfBand(outOfBandCode('shrink'), 1);
    recorder.endOutOfBand(shrink);
    recorder.beginOutOfBand(outOfBandCode('agree'), 2);
    recorder.beginOperation(windowCode('waitSignal', int32), 1, 2);
    const { entries, pg_config: groups } = recordingOf(board);
    const bootstrap = ['0.0 (bootstrap)', 'main'];
    const puts = { profiling_name: 'tccl:put with signal 0->1', is_p2p: true, input_sizes: [[5]], input_dtypes: ['int32'] };
    expect(entries).toMatchObject([
      { profiling_name: 'tccl:allReduce (sum)', collective_seq_id: 0 },
      puts,
      puts,
      puts,
      { profiling_name: 'tccl:get 0<-1', state: 'completed' },
      { profiling_name: 'tccl:allReduce (sum)', collective_seq_id: 1, state: 'completed' },
      { profiling_name: 'tccl:shrink', process_group: bootstrap, collective_seq_id: 0, input_sizes: [], state: 'completed' },
      { profiling_name: 'tccl:agree', process_group: bootstrap, collective_seq_id: 1, state: 'started' },
      { profiling_name: 'tccl:waitSignal 0<-1', is_p2p: true, state: 'started' },
    ]);
    expect(groups['0.0 (bootstrap)']?.ranks).toBe('[0, 1]');
  });
});

describe('tccl diagnose', () => {
  test('names the rank that never called', () => {
    const [a, b] = [rank(0), rank(1)];
    for (const { make } of [a, b]) for (let i = 0; i < 3; i++) make(call('allReduce', 4));
    a.make(call('allReduce', 4), true);
    expect(findings(a.board, b.board)).toMatchObject([{ code: 'rank-behind', ranks: [1], waiting: [0] }]);
  });

  test('names ranks with different calls', () => {
    const [a, b] = [rank(0), rank(1)];
    a.make(call('allReduce', 4), true);
    b.make(call('allGather', 4), true);
    const [finding] = findings(a.board, b.board);
    expect(finding?.code).toBe('calls-differ');
    expect(finding?.problem).toMatch(/rank 0 allReduce \(sum\) of \[\[4\]\] float32, rank 1 allGather of \[\[4\]\] float32/);
  });

  test('gives advice for ranks of tccl, which run no Python and need no GPU', () => {
    const [a, b] = [rank(0), rank(1)];
    a.make(call('allReduce', 4), true);
    const [finding] = findings(a.board, b.board);
    expect(finding?.remedy).toMatch(/tccl inspect/);
    expect(`${finding?.cause} ${finding?.remedy}`).not.toMatch(/py-spy|nvidia-smi|GPU|NCCL/);
  });
});
