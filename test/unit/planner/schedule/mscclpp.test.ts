import { describe, expect, it } from 'vitest';
import {
  defaultParameters,
  machine,
  prepareCluster,
  readProgram,
  schedule,
  simulatorOf,
  verifyProgram,
  verifySchedule,
} from '../../../../src/planner/index.js';
import { packets, putAndSignal, readReduceSend, switchPipeline } from './execution-plans.js';

describe('an execution plan of MSCCL++', () => {
  it.each([
    ['reads, adds and writes', readReduceSend(2)],
    ['reads, adds and writes among eight', readReduceSend(8)],
    ['shares chunks between blocks', readReduceSend(4, 3)],
    ['sends packets', packets(4)],
    ['puts and signals behind a barrier', putAndSignal(4)],
    ['goes through the switch piece by piece', switchPipeline(4, 4)],
  ])('that %s is valid, with messages of any length', (_, text) => {
    const program = readProgram(text);
    expect(verifyProgram(program)).toBeUndefined();
    expect(verifySchedule(schedule(program, 64 * program.chunks, { pieceBytes: 16, unitBytes: 16 }), 4)).toBeUndefined();
  });

  it('has the same connections for every size', () => {
    const program = readProgram(readReduceSend(4, 3));
    const connectionsOf = (bytes: number) => schedule(program, bytes).connections;
    expect(connectionsOf(64 * 1024)).toEqual(connectionsOf(64));
  });

  it('without a wait is a race, reported with both users of the bytes', () => {
    const text = readReduceSend(2).replaceAll('"wait"', '"nop"');
    expect(verifyProgram(readProgram(text))).toMatch(
      /^byte \d+ of the buffer of rank \d is (read|written) by thread block 0 of rank \d, and no thread block of rank \d waits for that before it ends$/,
    );
  });

  it('whose blocks write bytes that other blocks of the rank use is a race, reported with both', () => {
    const text = readReduceSend(2, 2).replaceAll('"tb_id":1', '"tb_id":0');
    expect(verifyProgram(readProgram(text))).toMatch(
      /^.*rank \d.*, step \d+ \(move\): byte \d+ of the input is .*, and neither waits for the other$/,
    );
  });

  it('whose second block signals without the barrier is a race', () => {
    const text = putAndSignal(2).replaceAll('"barrier","barrier_id":0,"num_threadblocks":2', '"nop"');
    expect(verifyProgram(readProgram(text))).toMatch(/no thread block of rank \d waits for that before it ends/);
  });

  it('whose signals are missing is a deadlock, with rank, thread block and step', () => {
    const text = readReduceSend(2).replaceAll('"signal"', '"nop"');
    expect(() => verifyProgram(readProgram(text))).toThrow(
      'deadlock: rank 0, thread block 0, step 1 (wait) waits for a signal of rank 1; rank 1, thread block 0, step 1 (wait) waits for a signal of rank 0',
    );
  });

  it('that counts an input twice gives a wrong sum', () => {
    const source = '"src_buff":[{"type":"i","index":0,"size":1},';
    const text = readReduceSend(2).replace(`${source}{"buffer_id":0`, `${source}{"type":"i"`);
    expect(verifyProgram(readProgram(text))).toMatch(
      /is not made of each input once: that of rank 0 is counted twice, that of rank 1 is missing$/,
    );
  });

  it('is simulated: more blocks are faster, and a byte crosses NVLink at most as often as in a ring', () => {
    const simulator = simulatorOf(
      prepareCluster({ hosts: [{ machine: machine('dgx-h100'), count: 1 }] }, defaultParameters),
      defaultParameters,
    );
    const timeOf = (text: string) => simulator.simulateSchedule(schedule(readProgram(text), 2 ** 26), 'Simple');
    expect(timeOf(readReduceSend(8, 8))).toBeLessThan(timeOf(readReduceSend(8, 1)) / 2);
    // 7/8 of the data to and from each GPU, at 450 GB/s each way at most.
    expect(timeOf(readReduceSend(8, 8))).toBeGreaterThan((2 ** 26 * 2 * 7) / 8 / 450e3);
  });

  const good = putAndSignal(2);
  it.each([
    ['no JSON', '{"gpus": [', /^no JSON/],
    ['neither form', 'hello', /neither XML of MSCCL .* nor JSON of MSCCL\+\+/],
    ['a collective without a promise', good.replace('"allgather"', '"custom"'), /plan\.collective "custom" defines no result/],
    [
      'a collective that there is not',
      good.replace('"allgather"', '"allgathre"'),
      /plan\.collective "allgathre" is none whose result.*allgather/,
    ],
    [
      'an operation that there is not',
      good.replace('"flush"', '"flash"'),
      /plan\.gpus\[0\]\.threadblocks\[1\]\.ops\[2\]\.name.*flush/,
    ],
    [
      'a channel that there is not',
      good.replace('"channel_ids":[0]', '"channel_ids":[3]'),
      /channel_ids\[0\] is 3; it has to be one of/,
    ],
    ['a gpu that there is not', good.replace('"connected_to":[1]', '"connected_to":[7]'), /connected_to\[0\] is 7/],
    ['a field too few', good.replace('"index":0,', ''), /src_buff\[0\]\.index is missing/],
    [
      'another reduction',
      readReduceSend(2).replace('"reduce_op":"sum"', '"reduce_op":"max"'),
      /reduce_op is "max"; it has to be sum/,
    ],
  ])('%s is refused with its place', (_, text, message) => {
    expect(() => readProgram(text)).toThrow(message);
  });

  it('a chunk outside of a buffer is refused with its place', () => {
    const text = good.replace('"type":"o","index":0', '"type":"o","index":5');
    expect(() => verifyProgram(readProgram(text))).toThrow(
      /^rank 0, thread block 0, step \d \(move\): chunks 5 to 5 of the output, which has 2/,
    );
  });
});
