import { describe, expect, it } from 'vitest';
import { checkFlight } from '../../../../src/planner/log/checks/flight.js';
import { checkTimelines } from '../../../../src/planner/log/checks/timelines.js';
import { classify } from '../../../../src/planner/readers/classify.js';
import { readInspector, readTrace } from '../../../../src/planner/readers/timeline.js';

const kindOf = (text: string) => classify(new TextEncoder().encode(text));

/** Record of NCCL Inspector for a collective, as in its README. */
const record = (rank: number, sequence: number, us: number, indent?: number) =>
  JSON.stringify(
    {
      header: { id: '0x7f8c496ae9f661', rank, n_ranks: 4, nnodes: 2 },
      metadata: {
        inspector_output_format_version: 'v4.0',
        git_rev: '',
        rec_mechanism: 'profiler_plugin',
        dump_timestamp_us: 1748030377748202,
        hostname: `node${Math.floor(rank / 2)}`,
        pid: 1639453,
      },
      coll_perf: {
        coll: 'AllReduce',
        coll_sn: sequence,
        coll_msg_size_bytes: 1 << 24,
        coll_exec_time_us: us,
        coll_algobw_gbs: 1,
        coll_busbw_gbs: 1,
      },
    },
    null,
    indent,
  );
const recordsOf = (rank: number, us: (sequence: number) => number, indent?: number) =>
  Array.from({ length: 10 }, (_, sequence) => record(rank, sequence, us(sequence), indent)).join('\n');

describe('records of NCCL Inspector', () => {
  it('show the rank that arrives last', () => {
    const files = [0, 1, 2, 3].map((rank) => recordsOf(rank, () => (rank === 2 ? 900 : 5000 + rank)));
    expect(kindOf(files[0] ?? '')).toBe('inspector');
    const timed = files.flatMap((text, file) => readInspector(text, file).timed);
    expect(timed).toHaveLength(40);
    const [finding, ...others] = checkTimelines(timed);
    expect(others).toEqual([]);
    expect(finding).toMatchObject({ code: 'rank-late', ranks: [2] });
    expect(finding?.problem).toContain('rank 2 (node1) comes last to 10 of 10 collectives');
    expect(finding?.problem).toContain('the others wait 4.1 ms of the 5.0 ms');
  });

  it('have no finding where ranks are alike, or late in turn', () => {
    const alike = [0, 1, 2, 3].flatMap(
      (rank) =>
        readInspector(
          recordsOf(rank, () => 5000 + 40 * rank),
          rank,
        ).timed,
    );
    expect(checkTimelines(alike)).toEqual([]);
    const inTurn = [0, 1, 2, 3].flatMap(
      (rank) =>
        readInspector(
          recordsOf(rank, (sequence) => (sequence % 4 === rank ? 500 : 5000)),
          rank,
        ).timed,
    );
    expect(checkTimelines(inTurn)).toEqual([]);
  });

  // NCCL numbers the calls of each collective of each communicator by themselves; without a name it is `unknown`.
  it('are compared within a communicator and a collective', () => {
    const of = (rank: number, id: string, coll: string, us: number) =>
      Array.from({ length: 10 }, (_, sequence) => {
        const { header, metadata, coll_perf: call } = JSON.parse(record(rank, sequence, us)) as Record<string, object>;
        return JSON.stringify({ header: { ...header, id, comm_name: 'unknown' }, metadata, coll_perf: { ...call, coll } });
      });
    const timed = [0, 1].flatMap(
      (rank) =>
        readInspector(
          [
            ...of(rank, '0x1', 'AllReduce', 5000),
            ...of(rank, '0x1', 'AllGather', 300),
            ...(rank === 0 ? of(rank, '0x2', 'AllReduce', 100) : []),
          ].join('\n'),
          rank,
        ).timed,
    );
    expect(checkTimelines(timed)).toEqual([]);
    // The root of a broadcast is done first; that is no delay.
    const broadcasts = [0, 1, 2].flatMap(
      (rank) => readInspector(of(rank, '0x1', 'Broadcast', rank === 0 ? 100 : 5000).join('\n'), rank).timed,
    );
    expect(checkTimelines(broadcasts)).toEqual([]);
  });

  it('may be written over several lines', () => {
    const text = recordsOf(1, () => 7, 2);
    expect(kindOf(text)).toBe('inspector');
    expect(readInspector(text, 0).timed.map(({ sequence }) => sequence)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });
});

/** A trace as TCCL_TRACE writes it: without its last bracket, and without the end of what has not ended. */
function trace(ranks: number, calls: (rank: number) => number, ends: (rank: number) => number): string {
  const lines: object[] = [{ name: 'process_name', ph: 'M', pid: 0, args: { name: 'vm' } }];
  for (let rank = 0; rank < ranks; rank++) {
    const track = { pid: 0, tid: 100_000 + rank };
    lines.push({ name: 'thread_name', ph: 'M', args: { name: `rank ${rank}` }, ...track });
    for (let number = 0; number < calls(rank); number++) {
      const event = { name: 'allReduce', cat: 'collective', args: { number, count: 1024, type: 'float32' }, ...track };
      lines.push({ ...event, ph: 'B', ts: 1000 * number });
      if (number < ends(rank)) lines.push({ ...event, ph: 'E', ts: 1000 * number + 100 });
    }
  }
  return `[\n${lines.map((line) => JSON.stringify(line)).join(',\n')}`;
}

describe('traces', () => {
  it('of TCCL show the ranks that are missing in a collective', () => {
    const text = trace(
      4,
      (rank) => (rank === 1 ? 6 : 7),
      () => 6,
    );
    expect(kindOf(text)).toBe('trace');
    const { timed, recordings } = readTrace(text, 3);
    expect(timed).toHaveLength(24);
    expect(checkFlight(recordings)).toMatchObject([{ code: 'rank-behind', ranks: [1], places: [{ file: 3, line: 1 }] }]);
    const whole = readTrace(
      trace(
        4,
        () => 7,
        () => 7,
      ),
      0,
    );
    expect(checkFlight(whole.recordings)).toEqual([]);
    expect(checkTimelines(whole.timed)).toEqual([]);
  });

  it("of NCCL's example profiler have ranks and sequence numbers of their own", () => {
    const begin = (id: number, seq: number, rank: number) =>
      `{"name": "AllReduce", "cat": "COLL", "ph": "b", "id": ${id}, "pid": 7, "tid": 1, "ts": 10.0, "args": {"SeqNum": ${seq}, "CommHash": 15234, "Rank": ${rank}, "Count": 64, "Datatype": "ncclFloat32", "Algorithm": "RING", "Protocol": "LL", "nChannels": 2}},`;
    const end = (id: number) => `{"name": "AllReduce", "cat": "COLL", "ph": "e", "id": ${id}, "pid": 7, "tid": 1, "ts": 30.0},`;
    const text = `[\n${[begin(1, 0, 3), end(1), begin(2, 1, 3)].join('\n')}\n{}]\n`;
    expect(kindOf(text)).toBe('trace');
    const { timed, recordings } = readTrace(text, 0);
    expect(timed).toMatchObject([{ group: '15234 AllReduce', sequence: 0, rank: 3, durationUs: 20 }]);
    expect(recordings).toMatchObject([{ rank: 3, calls: [{ state: 'completed' }, { state: 'started', sequence: 1 }] }]);
  });

  it("of NCCL's example profiler may have copy engines, kernels and their phases (interfaces v6 and v7) among their events", () => {
    const event = (name: string, cat: string, ph: string, id: number, ts: number, args: object) =>
      `${JSON.stringify({ name, cat, ph, id, pid: 7, tid: 1, ts, args })},`;
    const coll = { SeqNum: 0, CommHash: 15234, Rank: 3, Count: 64, userTag: 5, isSymColl: 1 };
    const text = [
      '[',
      event('AllGather', 'COLL', 'b', 1, 10, coll),
      event('KernelCh', 'GPU', 'b', 1, 11, { Channel: 0 }),
      event('compute', 'GPU', 'b', 1, 12, { Channel: 0, phaseId: 1 }),
      event('compute', 'GPU', 'e', 1, 13, {}),
      event('AllGather', 'CE_COLL', 'b', 1, 14, { eventId: 1, count: 64, strategy: 'UC' }),
      event('CeSync', 'CE_SYNC', 'b', 1, 14, { eventId: 1, nRanks: 8 }),
      event('AllGather', 'CE_COLL', 'e', 1, 20, {}),
      event('AllGather', 'COLL', 'e', 1, 30, {}),
      '{}]',
    ].join('\n');
    expect(kindOf(text)).toBe('trace');
    expect(readTrace(text, 0).timed).toMatchObject([{ group: '15234 AllGather', sequence: 0, rank: 3, durationUs: 20 }]);
  });

  it('that are broken are read up to the damage', () => {
    expect(readTrace('[\n{"name":\n{{{\n]', 0)).toEqual({ timed: [], recordings: [] });
    expect(readInspector('{"header": {}, "metadata": {}, "coll_perf": 3}\n{"header"', 0).timed).toEqual([]);
  });
});
