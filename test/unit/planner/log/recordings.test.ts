import { describe, expect, it } from 'vitest';
import { checkFlight } from '../../../../src/planner/log/checks/flight.js';
import { checkRas } from '../../../../src/planner/log/checks/ras.js';
import { diagnoseJob } from '../../../../src/planner/log/verdict/diagnosis.js';
import { type FlightRecording, readFlightRecording } from '../../../../src/planner/readers/flight.js';
import { parseJson } from '../../../../src/planner/readers/json.js';
import { rasText, readRasJson } from '../../../../src/planner/readers/ras.js';
import { findingsOf, readLines } from './read.js';

const place = { file: 0, line: 1 };

describe('flight recordings', () => {
  const call = (sequence: number, operation: string, size: number, state: string) => ({
    process_group: ['0', 'default_pg'],
    collective_seq_id: sequence,
    profiling_name: `nccl:${operation}`,
    input_sizes: [[size]],
    input_dtypes: ['Float'],
    state,
    is_p2p: false,
    frames: [
      { filename: '/lib/torch/distributed/distributed_c10d.py', line: 1, name: 'wrapper' },
      { filename: 'train.py', line: sequence, name: 'step' },
    ],
  });
  const recording = (rank: number, ...entries: object[]): FlightRecording =>
    readFlightRecording(
      { version: '2.4', entries, pg_config: { 0: { name: '0', ranks: '[0, 1, 2]' } } },
      `nccl_trace_rank_${rank}`,
      place,
    );
  const done = call(1, 'all_reduce', 8, 'completed');
  const started = call(2, 'all_reduce', 8, 'started');
  const check = (...recordings: FlightRecording[]) =>
    checkFlight(recordings).map(({ code, ranks }) => `${code} ${ranks?.join(' ') ?? ''}`);

  it('in which all calls ended have no finding', () => {
    expect(check(recording(0, done), recording(1, done), recording(2, done))).toEqual([]);
  });

  it('name the missing rank, and its last call', () => {
    const recordings = [recording(0, done, started), recording(1, done), recording(2, done, started)];
    expect(check(...recordings)).toEqual(['rank-behind 1']);
    expect(checkFlight(recordings)[0]!.problem).toContain('train.py:1 step');
  });

  it('of which there is one leave open who is late', () => {
    const diagnose = (alone: FlightRecording) => diagnoseJob({ ...readLines([]), recordings: [alone] });
    const { outcome, open } = diagnose(recording(0, done, started));
    expect(outcome).toBe('undecided');
    expect(open?.problem).toContain('rank 0 waits in');
    expect(diagnose({ ...recording(0, done, started), rank: -1 }).open?.problem).toContain('the rank of this file waits in');
  });

  it('name the ranks that call something else', () => {
    expect(
      check(recording(0, done, started), recording(1, done, call(2, 'broadcast', 8, 'started')), recording(2, done, started)),
    ).toEqual(['calls-differ 0 1']);
    expect(
      check(recording(0, done, started), recording(1, done, started), recording(2, done, call(2, 'all_reduce', 16, 'started'))),
    ).toEqual(['calls-differ 0 2']);
  });

  it('blame the network where all ranks are in the same call', () => {
    expect(check(recording(0, done, started), recording(1, done, started), recording(2, done, started))).toEqual([
      'collective-stuck 0 1 2',
    ]);
  });

  it('name the rank whose GPU has not begun', () => {
    expect(
      check(recording(0, done, started), recording(1, done, call(2, 'all_reduce', 8, 'scheduled')), recording(2, done, started)),
    ).toEqual(['rank-not-started 1']);
  });

  it('name the rank that has not finished a call that others completed', () => {
    const recordings = [
      recording(0, done, started),
      recording(1, call(1, 'all_reduce', 8, 'scheduled')),
      recording(2, done, started),
    ];
    expect(check(...recordings)).toEqual(['rank-behind 1']);
    expect(checkFlight(recordings)[0]!.problem).toBe(
      'rank 1 has not come out of all_reduce (number 1 of group 0), which 2 other ranks have completed',
    );
  });

  // PyTorch records each call of a batch without a state that is ever updated, then an entry `coalesced` that has one.
  it('identify a batch of calls by its last entry', () => {
    const batch = (sequence: number, state: string, ...operations: string[]) => [
      ...operations.map((operation) => call(sequence, operation, 8, 'scheduled')),
      { ...call(sequence, 'coalesced', 0, state), input_sizes: [] },
    ];
    const healthy = [...batch(1, 'completed', 'all_gather', 'all_gather'), call(2, 'all_reduce', 8, 'completed')];
    expect(check(recording(0, ...healthy), recording(1, ...healthy), recording(2, ...healthy))).toEqual([]);
    const stuck = [...batch(1, 'completed', 'all_gather', 'all_gather'), ...batch(2, 'started', 'all_gather', 'all_reduce')];
    const other = [...batch(1, 'completed', 'all_gather', 'all_gather'), ...batch(2, 'started', 'all_gather', 'all_gather')];
    expect(check(recording(0, ...stuck), recording(1, ...stuck), recording(2, ...stuck))).toEqual(['collective-stuck 0 1 2']);
    expect(check(recording(0, ...stuck), recording(1, ...other), recording(2, ...stuck))).toEqual(['calls-differ 0 1']);
  });

  // With split_group each set of ranks makes groups of its own under the same name.
  it('distinguish groups of one name with different ranks', () => {
    const of = (rank: number, ranks: string, ...entries: object[]) =>
      readFlightRecording(
        {
          version: '2.10',
          entries: entries.map((entry) => ({ ...entry, process_group: ['tp', 'tp'] })),
          pg_config: { tp: { name: 'tp', desc: 'tp', ranks } },
        },
        `nccl_trace_rank_${rank}`,
        place,
      );
    const next = call(2, 'all_reduce', 8, 'completed');
    expect(check(of(0, '[0, 1]', done, next), of(1, '[0, 1]', done, next), of(2, '[2, 3]', done), of(3, '[2, 3]', done))).toEqual(
      [],
    );
    const [finding] = checkFlight([
      of(0, '[0, 1]', done),
      of(1, '[0, 1]', done),
      of(2, '[2, 3]', done, started),
      of(3, '[2, 3]', done),
    ]);
    expect(finding).toMatchObject({ code: 'rank-behind', ranks: [3] });
    expect(finding!.problem).toContain('group tp (ranks 2-3)');
  });

  it('list the rank first for which others wait that are missing elsewhere', () => {
    const grouped = (group: string, entry: object) => ({ ...entry, process_group: [group, group] });
    const of = (rank: number, ...entries: object[]) =>
      readFlightRecording(
        { version: '2.4', entries, pg_config: { dp: { ranks: '[0, 2]' }, tp: { ranks: '[2, 3]' } } },
        `rank_${rank}`,
        place,
      );
    const dp = grouped('dp', started);
    const tp = grouped('tp', { ...started, collective_seq_id: 9 });
    const held = of(3, grouped('tp', { ...done, collective_seq_id: 8 }));
    expect(check(of(0, dp), of(2, tp), held)).toEqual(['rank-behind 3', 'group-waits 2']);
  });

  const message = (name: string, sequence: number, state: string) => ({
    ...call(sequence, name, 8, state),
    p2p_seq_id: sequence,
    collective_seq_id: 0,
    is_p2p: true,
  });

  it('name the rank that does not send what another waits for', () => {
    const waits = recording(0, message('recv 0<-1', 1, 'completed'), message('recv 0<-1', 2, 'started'));
    const ended = recording(1, message('send 1->0', 1, 'completed'));
    expect(check(waits, ended, recording(2))).toEqual(['message-unmatched 0 1']);
    expect(checkFlight([waits, ended])[0]!.problem).toBe(
      'rank 0 waits to receive from rank 1 (group 0 at train.py:2 step), which does not send to it: it called last send to 0 (group 0, train.py:1 step)',
    );
    expect(check(waits, recording(1, message('send 1->0', 1, 'completed'), message('send 1->0', 2, 'started')))).toEqual([
      'collective-stuck 0 1',
    ]);
    // A small message has left the sender before it arrives.
    expect(check(waits, recording(1, message('send 1->0', 1, 'completed'), message('send 1->0', 2, 'completed')))).toEqual([
      'collective-stuck 0 1',
    ]);
  });

  it('take the state of a batch of messages from its last entry', () => {
    const batch = (state: string) => [
      message('send 0->1', 3, 'scheduled'),
      message('recv 0<-1', 3, 'scheduled'),
      message('coalesced', 3, state),
    ];
    const peer = recording(
      1,
      message('recv 1<-0', 3, 'scheduled'),
      message('send 1->0', 3, 'scheduled'),
      message('coalesced', 3, 'completed'),
    );
    expect(check(recording(0, ...batch('completed')), peer)).toEqual([]);
    expect(check(recording(0, ...batch('completed'), ...batch('started')), peer)).toEqual(['message-unmatched 0 1']);
  });

  it('name the rank that left no recording', () => {
    expect(check(recording(0, done, started), recording(2, done, started))).toEqual(['rank-absent 1']);
    expect(checkFlight([recording(0, done, started)])[0]!.problem).toBe(
      'rank 0 waits in all_reduce (number 2 of group 0) at train.py:2 step; of the other 2 ranks no recording was given',
    );
  });
});

describe('untrusted JSON', () => {
  it('is refused if it is nested deeper than any recording', () => {
    expect(parseJson('{"a": [1, "[[[[\\"[[", {"b": null}]}')).toEqual({ a: [1, '[[[["[[', { b: null }] });
    expect(() => parseJson('['.repeat(100_000) + ']'.repeat(100_000))).toThrow('nested deeper than 200');
    expect(() => parseJson('{"a": ')).toThrow('is no JSON');
  });
});

describe('RAS', () => {
  const rank = (number: number, count: number, error = 0) => ({
    rank: number,
    host: 'n',
    pid: 1,
    status: { async_error: error },
    collective_counts: { AllGather: 0, AllReduce: count },
  });
  const json = (ranks: object[], missing: object[] = []) =>
    checkRas([
      readRasJson({ nccl_version: '2.28.3', communicators: [{ hash: '0x1', ranks, missing_ranks: missing }] }, place),
    ]).map(({ code, ranks: who }) => `${code} ${who?.join(' ') ?? ''}`);

  it('as JSON names ranks that are behind, missing or failed', () => {
    expect(json([rank(0, 41), rank(1, 41)])).toEqual([]);
    expect(json([rank(0, 41), rank(1, 40), rank(2, 41)])).toEqual(['rank-behind 1']);
    expect(json([rank(0, 41)], [{ rank: 1, status: { considered_dead: true } }])).toEqual(['rank-missing 1']);
    expect(json([rank(0, 41, 6), rank(1, 41)])).toEqual(['async-error 0']);
  });

  it('as JSON names ranks that are ahead, that called something else, and that are in another state', () => {
    expect(json([rank(0, 41), rank(1, 42), rank(2, 41)])).toEqual(['rank-behind 0 2']);
    const astray = { ...rank(1, 40), collective_counts: { AllGather: 1, AllReduce: 40 } };
    expect(json([rank(0, 41), astray, rank(2, 41)])).toEqual(['calls-differ 1']);
    const aborted = { ...rank(2, 41), status: { async_error: 0, abort_flag: true } };
    expect(json([rank(0, 41), rank(1, 41), aborted])).toEqual(['rank-status 2']);
    const initial = { ...rank(2, 41), status: { async_error: 0, init_state: 7 } };
    expect(json([rank(0, 41), rank(1, 41), initial])).toEqual(['rank-status 2']);
  });

  const texts = (text: string) =>
    findingsOf(text.split('\n')).map(({ code, ranks }) => `${code} ${ranks?.join(' ') ?? ''}`.trim());

  // The words of src/ras/client_support.cc of NCCL 2.30: several ranks that say the same are listed below their number.
  it('as text names several ranks at a time, errors and states', () => {
    expect(
      texts(`#0-0 (cf264af53edbe986) MISMATCH
  Communicator ranks have different AllReduce operation counts
  6 ranks have launched up to operation 41
  2 ranks have launched up to operation 40
  Rank 3 -- GPU 3 managed by process 4711 on node 10.0.0.7
  Rank 5 -- GPU 5 managed by process 4713 on node 10.0.0.7`),
    ).toEqual(['rank-behind 3 5']);
    // NVIDIA/nccl#1911: the ranks that are listed are those ahead.
    expect(
      texts(`#0-0 (fa93daea854b060b) MISMATCH
  Communicator ranks have different AllGather operation counts
  30 ranks have launched up to operation 640
  2 ranks have launched up to operation 641
  Rank 12 -- GPU 4 managed by process 323032 on node 10.137.190.124
  Rank 13 -- GPU 5 managed by process 323033 on node 10.137.190.124`),
    ).toEqual([
      `rank-behind ${Array.from({ length: 32 }, (_, rank) => rank)
        .filter((rank) => rank !== 12 && rank !== 13)
        .join(' ')}`,
    ]);
    expect(
      texts(`#0-0 (cf264af53edbe986) ERROR
  Asynchronous error on 1 rank
  Rank 3 reported Remote process error -- GPU 3 managed by process 4711 on node 10.0.0.7

Warnings
========

#0-0 (cf264af53edbe986) MISMATCH
  Communicator ranks have different status
  7 ranks have status RUNNING
  Rank 3 has status ABORT -- GPU 3 managed by process 4711 on node 10.0.0.7`),
    ).toEqual(['async-error 3', 'rank-status 3']);
    expect(
      texts(`#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 2 ranks
  Rank 8 -- GPU 0 managed by process 4711 on node 10.0.0.8
  Rank 9 -- [process information not found]`),
    ).toEqual(['rank-missing 8 9']);
  });

  // NVIDIA/nccl#1762 has such a row: several kinds of trouble at once.
  it('as text knows the size of a group with several kinds of trouble', () => {
    const text = `Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         1         4         4         4   RUNNING  INCOMPLETE,MISMATCH
#0-0 (cf264af53edbe986) MISMATCH
  Communicator ranks have different AllReduce operation counts
  3 ranks have launched up to operation 40
  Rank 3 has launched up to operation 41 -- GPU 3 managed by process 4711 on node 10.0.0.7`;
    expect(texts(text)).toEqual(['rank-behind 0 1 2']);
    const lines = text.split('\n').map((line, index) => ({ text: line, place: { file: 0, line: index + 1 } }));
    expect(rasText.parse(lines)?.communicators.map(({ size }) => size)).toEqual([4]);
  });

  it('as text of a healthy job has no finding', () => {
    expect(
      texts(`Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          8            1         16       16

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         8        16        16   RUNNING      OK

Errors
======

Warnings
========
`),
    ).toEqual([]);
  });

  const incomplete = (status: string, list: string) => `Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         4       7-8        32        32   RUNNING  INCOMPLETE

Errors
======

${status}
  Process 3487984 on node 172.16.64.213 managing GPU 5

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from some ranks
  ${list}
`;

  // The example of NVIDIA's guide to RAS, and its plural.
  it('as text names missing ranks in one line, and the process of a single one', () => {
    const findings = (status: string, list: string) => findingsOf(incomplete(status, list).split('\n'));
    const [one] = findings('INCOMPLETE', 'The missing rank: 21');
    expect(one).toMatchObject({ code: 'rank-missing', ranks: [21] });
    expect(one?.problem).toContain('rank 21 of communicator cf264af53edbe986, process 3487984 on 172.16.64.213 (GPU 5)');
    const several = findings('INCOMPLETE', 'The missing ranks: 21,23');
    expect(several.map(({ code, ranks }) => [code, ranks])).toEqual([['rank-missing', [21, 23]]]);
    const dead = findings('DEAD', 'The missing rank: 21');
    expect(dead.map(({ code, ranks }) => [code, ranks])).toEqual(
      expect.arrayContaining([
        ['process-dead', [21]],
        ['rank-missing', [21]],
      ]),
    );
    expect(findings('INCOMPLETE', '').map(({ code }) => code)).toEqual(['rank-missing']);
  });

  it('as text whose trouble is only in the table is not called free of it', () => {
    const lines = incomplete('', '').split('\n').slice(0, 3);
    const { outcome, open } = diagnoseJob(readLines(['Job summary', ...lines]));
    expect(outcome).toBe('undecided');
    expect(open?.problem).toContain('RAS reports INCOMPLETE');
  });

  // The words of src/ras/client_support.cc of NCCL 2.27.
  it('as text names ranks that are behind and processes that are dead', () => {
    const text = `Job summary
===========
Errors
======
DEAD
  1 process is considered dead
  Process 4711 on node 10.0.0.7 managing GPU 3

Warnings
========
#0-0 (cf264af53edbe986) MISMATCH
  Communicator ranks have different AllReduce operation counts
  7 ranks have launched up to operation 41
  1 ranks have launched up to operation 40
  Rank 3 has launched up to operation 40 -- GPU 3 managed by process 4711 on node 10.0.0.7`;
    expect(texts(text)).toEqual(['process-dead', 'rank-behind 3']);
  });
});
