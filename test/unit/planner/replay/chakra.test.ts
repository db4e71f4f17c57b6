import { describe, expect, it } from 'vitest';
import { defaultParameters } from '../../../../src/planner/parameters.js';
import { MessageWriter } from '../../../../src/planner/readers/protobuf.js';
import { TraceReader } from '../../../../src/planner/replay/read-traces.js';
import { measureJob, replayJob } from '../../../../src/planner/replay/replay.js';
import { runPrograms } from '../../../../src/planner/replay/run.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';

const dgx = {
  title: 'dgx-h100',
  cluster: { hosts: [{ machine: machine('dgx-h100'), count: 1 }] },
  parameters: defaultParameters,
};

interface Node {
  readonly id: number;
  readonly type: 4 | 5 | 6 | 7;
  readonly after?: readonly number[];
  readonly us?: number;
  readonly attributes?: Readonly<Record<string, number>>;
}

/** A trace as MLCommons' schema has it. */
function traceOf(nodes: readonly Node[]): Uint8Array {
  const parts = [new MessageWriter().text(1, '0.0.4').delimited()];
  for (const { id, type, after = [], us = 0, attributes = {} } of nodes) {
    const node = new MessageWriter().number(1, id).text(2, `node ${id}`).number(3, type);
    for (const other of after) node.number(5, other);
    node.number(7, us);
    for (const [name, value] of Object.entries({ is_cpu_op: 0, ...attributes }))
      node.message(10, new MessageWriter().text(1, name).number(name === 'is_cpu_op' ? 27 : 9, value));
    parts.push(node.delimited());
  }
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}
const read = (...files: readonly Uint8Array[]) => {
  const reader = new TraceReader();
  files.forEach((bytes, rank) => {
    reader.read(bytes, `job.${rank}.et`);
  });
  return reader.finish();
};
const reduce = (bytes: number) => ({ comm_type: 0, comm_size: bytes });
/** Every call takes 100 µs. */
const costs = { timeUs: () => 100, speeds: (running: readonly unknown[]) => new Float64Array(running.length).fill(1) };
const ends = (...files: readonly Uint8Array[]) =>
  Object.fromEntries(runPrograms(measureJob(read(...files)).programs, costs).endUs);

describe('execution traces of Chakra', () => {
  it('have calls beside the work that does not depend on them', () => {
    const trace = traceOf([
      { id: 1, type: 4, us: 30 },
      { id: 2, type: 7, after: [1], attributes: reduce(2 ** 20) },
      { id: 3, type: 4, after: [1], us: 60 },
      { id: 4, type: 4, after: [2, 3], us: 10 },
    ]);
    // 30 before the call, 60 beside its 100, 10 after it.
    expect(ends(trace, trace)).toEqual({ 0: 140, 1: 140 });
    const [first] = read(trace, trace);
    expect(first).toMatchObject({
      rank: 0,
      nRanks: 2,
      clock: 'order',
      calls: [{ collective: 'AllReduce', bytes: 2 ** 20, size: 2 }],
    });
  });

  it('wait for the rank that comes last', () => {
    const trace = (us: number) =>
      traceOf([
        { id: 1, type: 4, us },
        { id: 2, type: 7, after: [1], attributes: reduce(1024) },
      ]);
    expect(ends(trace(10), trace(500))).toEqual({ 0: 600, 1: 600 });
  });

  it('depend on calls through nodes of the CPU, which take no time and are no calls', () => {
    const trace = traceOf([
      { id: 1, type: 7, us: 85, attributes: { ...reduce(1024), is_cpu_op: 1 } },
      { id: 2, type: 7, after: [1, 77], attributes: reduce(1024) },
      { id: 3, type: 4, after: [2], us: 50, attributes: { is_cpu_op: 1 } },
      { id: 4, type: 4, after: [3], us: 10 },
    ]);
    expect(ends(trace, trace)).toEqual({ 0: 110, 1: 110 });
  });

  it('have parts of one rank in all-gathers, and groups of the ranks that name them', () => {
    const [trace] = read(
      traceOf([{ id: 1, type: 7, attributes: { comm_type: 2, comm_size: 1000 } }]),
      traceOf([{ id: 1, type: 7, attributes: { comm_type: 2, comm_size: 1000 } }]),
    );
    expect(trace?.calls[0]).toMatchObject({ collective: 'AllGather', bytes: 2000 });
  });

  it('have sends that do not hold up the sender', () => {
    const around = (rank: number) =>
      traceOf([
        { id: 1, type: 5, attributes: { comm_size: 4096, comm_dst: (rank + 1) % 4 } },
        { id: 2, type: 6, after: [1], attributes: { comm_size: 4096, comm_src: (rank + 3) % 4 } },
        { id: 3, type: 4, after: [2], us: 7 },
      ]);
    const job = measureJob(read(...[0, 1, 2, 3].map(around)));
    expect(job.calls.map(({ call }) => [call.operation, call.size, call.bytes])).toEqual(Array(4).fill(['send', 2, 4096]));
    const { calls, notes, replayedUs } = replayJob(job, dgx);
    expect(calls.every(({ predicted }) => predicted !== undefined)).toBe(true);
    expect(notes.join()).not.toMatch(/different orders/);
    expect(replayedUs).toBeLessThan(40);
  });

  it('may be JSON', () => {
    const reader = new TraceReader();
    const nodes = [
      { Id: 1, Name: 'a', NodeType: 4, runtime: 20, is_cpu_op: false },
      { Id: 2, Name: 'b', NodeType: 7, ctrlDeps: [2], data_deps: [1], runtime: 5, is_cpu_op: false, comm_type: 5, comm_size: 64 },
    ];
    reader.read(new TextEncoder().encode(JSON.stringify({ workload_graph: nodes })), 'chakra.3.json');
    expect(reader.finish()).toMatchObject([
      { rank: 3, calls: [{ collective: 'Broadcast', bytes: 64, startUs: 20, durationUs: 5 }], order: { workUs: 20, endUs: 25 } },
    ]);
  });

  it('say what they lack', () => {
    const trace = traceOf([{ id: 1, type: 7, attributes: reduce(1024) }]);
    expect(measureJob(read(trace, trace)).notes.join()).toMatch(/ranks 0-1: the trace has dependencies in place of times/);
    const cycle = traceOf([
      { id: 1, type: 4, after: [2] },
      { id: 2, type: 4, after: [1] },
    ]);
    expect(() => read(cycle)).toThrow('2 nodes that wait for each other');
    expect(() => read(cycle.subarray(0, cycle.length - 3))).toThrow(/ends within a message/);
  });
});
