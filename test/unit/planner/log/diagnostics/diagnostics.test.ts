import { describe, expect, it } from 'vitest';
import { checkFlight } from '../../../../../src/planner/log/diagnostics/check-flight.js';
import { classify } from '../../../../../src/planner/log/diagnostics/classify.js';
import { type FlightRecording, readFlightRecording } from '../../../../../src/planner/log/diagnostics/flight.js';
import { parseJson } from '../../../../../src/planner/log/diagnostics/json.js';
import { checkRasJson, RasText } from '../../../../../src/planner/log/diagnostics/ras.js';
import { checkNvlink, checkPorts, checkTopoMatrix, type ToolLine } from '../../../../../src/planner/log/diagnostics/tools.js';
import { codes, findingsOf } from '../read.js';

const place = { file: 0, line: 1 };
const linesOf = (text: string): ToolLine[] =>
  text.split('\n').map((line, index) => ({ text: line, place: { file: 0, line: index + 1 } }));

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
    checkRasJson({ nccl_version: '2.28.3', communicators: [{ hash: '0x1', ranks, missing_ranks: missing }] }, place).map(
      ({ code, ranks: who }) => `${code} ${who?.join(' ') ?? ''}`,
    );

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

  const texts = (text: string) => {
    const ras = new RasText();
    for (const line of linesOf(text)) ras.read(line.text, line.place);
    return ras.finish().map(({ code, ranks }) => `${code} ${ranks?.join(' ') ?? ''}`.trim());
  };

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
    ).toEqual(['rank-behind']);
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

  // The words of src/ras/client_support.cc of NCCL 2.27.
  it('as text names ranks that are behind and processes that are dead', () => {
    const ras = new RasText();
    const text = `Errors
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
    for (const line of linesOf(text)) ras.read(line.text, line.place);
    expect(ras.finish().map(({ code, ranks }) => `${code} ${ranks?.join(' ') ?? ''}`)).toEqual([
      'process-dead ',
      'rank-behind 3',
    ]);
  });
});

describe('nvidia-smi', () => {
  const matrix = (rows: readonly string[]) =>
    `\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\n${rows.map((row, index) => `GPU${index}\t${row.replaceAll(' ', '\t')}\tPXB\t0-23`).join('\n')}`;
  const check = (...rows: string[]) =>
    checkTopoMatrix(linesOf(matrix(rows))).map(({ code, problem }) => `${code} ${problem.includes('GPU2') ? 'GPU2' : ''}`.trim());

  it('topo -m of a healthy machine has no finding, with NVSwitch, with pairs of bridges, and without NVLink', () => {
    expect(check('X NV18 NV18 NV18', 'NV18 X NV18 NV18', 'NV18 NV18 X NV18', 'NV18 NV18 NV18 X')).toEqual([]);
    expect(check('X NV4 SYS SYS', 'NV4 X SYS SYS', 'SYS SYS X NV4', 'SYS SYS NV4 X')).toEqual([]);
    expect(check('X PIX SYS SYS', 'PIX X SYS SYS', 'SYS SYS X PIX', 'SYS SYS PIX X')).toEqual([]);
    expect(check('X NV1 NV2 NV2', 'NV1 X NV2 NV2', 'NV2 NV2 X NV1', 'NV2 NV2 NV1 X')).toEqual([]);
  });

  // What drivers from 535 on print: an underlined head, NICs by number, and a column `GPU NUMA ID` after the affinities.
  it('topo -m of newer drivers has another column that is no GPU', () => {
    const newer = (link: (i: number, j: number) => string) =>
      [
        '\t\u001b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\u001b[0m',
        ...[0, 1, 2, 3].map(
          (i) => `GPU${i}\t${[0, 1, 2, 3].map((j) => (i === j ? ' X ' : link(i, j))).join('\t')}\tPXB\t0-55\t0\t\tN/A`,
        ),
        'NIC0\tPXB\tPXB\tPXB\tPXB\t X ',
        '',
        'NIC Legend:',
        '',
        '  NIC0: mlx5_0',
      ].join('\n');
    expect(checkTopoMatrix(linesOf(newer(() => 'NV18')))).toEqual([]);
    expect(checkTopoMatrix(linesOf(newer(() => 'NV18').replaceAll('\t', '     ')))).toEqual([]);
    const [finding, ...more] = checkTopoMatrix(linesOf(newer((i, j) => (i === 2 || j === 2 ? 'SYS' : 'NV18'))));
    expect(finding?.problem).toBe('nvidia-smi topo -m: GPU2 has no NVLink to 3 GPUs (SYS), while other pairs have');
    expect(more).toEqual([]);
    const two = checkTopoMatrix(linesOf(newer((i, j) => (i % 3 === 0 || j % 3 === 0 ? 'SYS' : 'NV4'))));
    expect(two).toEqual([]);
  });

  it('topo -m of a DGX-1, where each GPU is linked with four of seven, has no finding', () => {
    const links = [
      'X NV1 NV1 NV2 NV2 SYS SYS SYS',
      'NV1 X NV2 NV1 SYS NV2 SYS SYS',
      'NV1 NV2 X NV2 SYS SYS NV1 SYS',
      'NV2 NV1 NV2 X SYS SYS SYS NV1',
      'NV2 SYS SYS SYS X NV1 NV1 NV2',
      'SYS NV2 SYS SYS NV1 X NV2 NV1',
      'SYS SYS NV1 SYS NV1 NV2 X NV2',
      'SYS SYS SYS NV1 NV2 NV1 NV2 X',
    ].map((row) => row.split(' '));
    const text = (rows: string[][]) =>
      `\t${rows.map((_, gpu) => `GPU${gpu}`).join('\t')}\tCPU Affinity\n${rows.map((row, gpu) => `GPU${gpu}\t${row.join('\t')}\t0-19`).join('\n')}`;
    expect(checkTopoMatrix(linesOf(text(links)))).toEqual([]);
    const switched = links.map((row, i) =>
      row.map((link, j) => (link === 'X' ? link : [2, 5].some((gpu) => gpu === i || gpu === j) ? 'SYS' : 'NV12')),
    );
    expect(checkTopoMatrix(linesOf(text(switched)))).toMatchObject([{ code: 'nvlink-degraded' }]);
  });

  it('topo -m names the GPU whose NVLinks are missing or fewer', () => {
    expect(check('X NV18 NV16 NV18', 'NV18 X NV16 NV18', 'NV16 NV16 X NV16', 'NV18 NV18 NV16 X')).toEqual([
      'nvlink-degraded GPU2',
    ]);
    expect(check('X NV12 NV12 NV12 NV12', 'NV12 X NV12 NV12', 'SYS NV12 X NV12', 'NV12 NV12 NV12 X')[0]).toBe(
      'nvlink-degraded GPU2',
    );
  });

  it('nvlink -e of newer drivers counts traffic and corrected errors too', () => {
    const counters = (failed: number, effective: number) =>
      `GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)
\t Link 0: Tx packets: 982374234
\t Link 0: Malformed packet Errors: 0
\t Link 0: Link recovery successful events: 1
\t Link 0: Link recovery failed events: ${failed}
\t Link 0: Effective Errors: ${effective}
\t Link 0: Effective BER: 15e-255
\t Link 0: FEC Errors - 0: 81723481
\t Link 0: FEC Errors - 2: N/A`;
    expect(checkNvlink(linesOf(counters(0, 0)))).toEqual([]);
    expect(codes(checkNvlink(linesOf(counters(4, 0))))).toEqual(['nvlink-errors warning']);
    expect(codes(checkNvlink(linesOf(counters(0, 9))))).toEqual(['nvlink-errors warning']);
  });

  it('nvlink -s names the GPU with links that are down, nvlink -e errors', () => {
    const status = (inactive: string) =>
      `GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-2)\n\t Link 0: 26.562 GB/s\n\t Link 1: ${inactive}`;
    expect(codes(checkNvlink(linesOf(status('26.562 GB/s'))))).toEqual([]);
    expect(checkNvlink(linesOf(status('<inactive>')))).toMatchObject([
      { code: 'nvlink-degraded', problem: 'GPU 1 has 1 active NVLinks, others 2' },
    ]);
    expect(
      codes(checkNvlink(linesOf('GPU 0: NVIDIA H100 (UUID: GPU-1)\n\t Link 0: Replay Errors: 0\n\t Link 0: CRC Errors: 17'))),
    ).toEqual(['nvlink-errors warning']);
  });
});

describe('ports', () => {
  const ibstat = (state: string, rate: number) =>
    [0, 1, 2]
      .map(
        (device) =>
          `CA 'mlx5_${device}'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: ${device === 1 ? state : 'Active'}\n\t\tPhysical state: ${device === 1 && state !== 'Active' ? 'Polling' : 'LinkUp'}\n\t\tRate: ${device === 1 ? rate : 400}`,
      )
      .join('\n');

  it('that are down or slow are named', () => {
    expect(checkPorts(linesOf(ibstat('Active', 400)))).toEqual([]);
    expect(checkPorts(linesOf(ibstat('Down', 40)))).toMatchObject([
      { code: 'port-down', problem: 'mlx5_1:1 (Polling) is not active, 2 other ports are' },
    ]);
    expect(checkPorts(linesOf(ibstat('Active', 100)))).toMatchObject([{ code: 'port-slow' }]);
    expect(
      checkPorts(
        linesOf(
          'hca_id:\tmlx5_0\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\nhca_id:\tmlx5_1\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_DOWN (1)',
        ),
      ),
    ).toMatchObject([{ code: 'port-down' }]);
  });

  it('of other cards and for other networks have no finding', () => {
    const port = (name: string, type: string, layer: string, state: string, rate: number) =>
      `CA '${name}'\n\tCA type: ${type}\n\tPort 1:\n\t\tState: ${state}\n\t\tPhysical state: ${state === 'Down' ? 'Disabled' : 'LinkUp'}\n\t\tRate: ${rate}\n\t\tLink layer: ${layer}\n`;
    const fabric = [0, 1, 2, 3].map((index) => port(`mlx5_${index}`, 'MT4129', 'InfiniBand', 'Active', 400)).join('');
    const others = port('mlx5_4', 'MT41692', 'Ethernet', 'Active', 100) + port('mlx5_5', 'MT41692', 'Ethernet', 'Down', 40);
    expect(checkPorts(linesOf(fabric + others))).toEqual([]);
    expect(checkPorts(linesOf(`${fabric}${others}${port('mlx5_6', 'MT4129', 'InfiniBand', 'Down', 10)}`))).toMatchObject([
      { problem: 'mlx5_6:1 (Disabled) is not active, 4 other ports are' },
    ]);
    const roce = [0, 1, 2, 3].map((index) => port(`mlx5_${index}`, 'MT4129', 'Ethernet', 'Active', 400)).join('');
    expect(checkPorts(linesOf(roce + port('mlx5_4', 'MT4125', 'Ethernet', 'Active', 25)))).toEqual([]);
  });

  it('are read from ibstatus and rdma link too', () => {
    const status = (index: number, state: string, physical: string) =>
      `Infiniband device 'mlx5_${index}' port 1 status:\n\tstate:\t\t ${state}\n\tphys state:\t ${physical}\n\trate:\t\t 400 Gb/sec (4X NDR)\n\tlink_layer:\t InfiniBand\n`;
    const up = [0, 1].map((index) => status(index, '4: ACTIVE', '5: LinkUp')).join('\n');
    expect(checkPorts(linesOf(up))).toEqual([]);
    expect(checkPorts(linesOf(`${up}${status(2, '1: DOWN', '3: Disabled')}`))).toMatchObject([
      { code: 'port-down', problem: 'mlx5_2:1 (Disabled) is not active, 2 other ports are' },
    ]);
    const link = (index: number, state: string) =>
      `link mlx5_${index}/1 subnet_prefix fe80:0000:0000:0000 lid 13 sm_lid 1 lmc 0 state ${state} physical_state ${state === 'DOWN' ? 'POLLING' : 'LINK_UP'}`;
    const links = [
      link(0, 'ACTIVE'),
      link(1, 'ACTIVE'),
      link(2, 'DOWN'),
      'link mlx5_3/1 state DOWN physical_state DISABLED netdev eth3',
    ];
    expect(checkPorts(linesOf(links.join('\n')))).toMatchObject([
      { problem: 'mlx5_2:1 (POLLING) is not active, 2 other ports are' },
    ]);
    const kindOf = (text: string) => classify(new TextEncoder().encode(text));
    expect([kindOf(up), kindOf(links.join('\n'))]).toEqual(['ports', 'ports']);
  });
});

describe('a sweep of nccl-tests over pairs of hosts', () => {
  const table = (a: string, b: string, gbps: number) => [
    '# nThread 1 nGpus 1 minBytes 8 maxBytes 1 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0',
    ...[a, b].map(
      (host, rank) => `#  Rank  ${rank} Group  0 Pid 895544 on     ${host} device  0 [0002:00:01] NVIDIA H100 80GB HBM3`,
    ),
    `  1073741824  268435456  float  sum  -1  1000.0  ${gbps}  ${gbps}  0  1001.0  ${gbps}  ${gbps}  0`,
    '# Avg bus bandwidth    : 1',
  ];
  const sweep = (speed: (a: string, b: string) => number) =>
    ['n1', 'n2', 'n3', 'n4'].flatMap((a, index, all) => all.slice(index + 1).flatMap((b) => table(a, b, speed(a, b))));

  it.each(['[1,0]<stdout>:', '0: ', 'n1: ', '(Worker pid=77) ', '[pod/sweep-1/main] ', '2025-11-17T03:12:44.123Z '])(
    'is read behind the prefixes of launchers: %s',
    (prefix) => {
      const lines = sweep((a, b) => (a === 'n2' || b === 'n2' ? 150 : 370)).map((line) => `${prefix}${line}`);
      expect(findingsOf(lines)).toMatchObject([
        { code: 'host-slow', problem: expect.stringContaining('3 of 6 pairs') as string },
      ]);
    },
  );

  it('names the host that is slow with every other, or else the pair', () => {
    expect(codes(findingsOf(sweep(() => 48)))).toEqual([]);
    const [host] = findingsOf(sweep((a, b) => (a === 'n3' || b === 'n3' ? 24 : 48)));
    expect(host).toMatchObject({ code: 'host-slow', problem: expect.stringMatching(/^n3 is slow/) as string });
    expect(findingsOf(sweep((a, b) => (a === 'n1' && b === 'n2' ? 20 : 48)))[0]).toMatchObject({
      code: 'pair-slow',
      problem: expect.stringMatching(/^n1 with n2/) as string,
    });
  });
});

describe('a file', () => {
  const kind = (text: string) => classify(new TextEncoder().encode(text));

  it('is recognised by its first bytes', () => {
    expect(kind('<?xml version="1.0"?>\n<system version="1">')).toBe('topology');
    expect(kind('\t\u001b[4mGPU0\tGPU1\tCPU Affinity\u001b[0m\nGPU0\t X \tNV18\t0-23')).toBe('topology matrix');
    expect(kind('GPU 0: NVIDIA H100 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s')).toBe('NVLink status');
    expect(kind("CA 'mlx5_0'\n\tCA type: MT4129")).toBe('ports');
    expect(kind('Job summary\n===========')).toBe('ras');
    expect(kind('{\n "nccl_version": "2.28.3"')).toBe('json');
    expect(kind('{"log":"a"}\n{"log":"b"}')).toBe('log');
    expect(kind('node1:1:2 [0] NCCL INFO x')).toBe('log');
    expect(classify(Uint8Array.of(0x80, 2, 0x7d))).toBe('pickle');
    expect(classify(Uint8Array.of(0x7f, 0x45, 0x4c, 0x46, 0))).toBe('other');
  });
});
