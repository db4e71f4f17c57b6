import { describe, expect, it } from 'vitest';
import { describeDifference, firstDifference } from '../../../testing/oracle/difference.js';
import type { OracleInput } from '../../../testing/oracle/oracle-case.js';
import { runOracleCase } from '../../../testing/oracle/run-oracle.js';

describe('firstDifference', () => {
  it('compares numbers as C floats', () => {
    expect(firstDifference(20.6, Math.fround(20.6))).toBeUndefined();
    expect(firstDifference(20.6, 20.7)).toEqual({ path: '', expected: 20.6, actual: 20.7 });
  });

  it('gives the place of the first difference', () => {
    const difference = firstDifference({ a: [1, { b: 'x', c: 2 }] }, { a: [1, { b: 'y', c: 3 }] });
    expect(difference?.path).toBe('a[1].b');
    expect(difference && describeDifference(difference)).toBe('a[1].b: NCCL "x", here "y"');
  });

  it('sees a missing key, a list of another length and another kind of value', () => {
    expect(firstDifference({ a: 1 }, {})).toMatchObject({ path: 'a', actual: undefined });
    expect(firstDifference([1, 2], [1])).toMatchObject({ path: '.length', expected: 2, actual: 1 });
    expect(firstDifference(null, [])).toMatchObject({ expected: null });
    expect(firstDifference([1], 1)).toBeDefined();
    expect(firstDifference({ a: 1 }, [1])).toBeDefined();
  });
});

const xml =
  '<system version="1"><cpu numaid="0" affinity="f" arch="arm64"><pci busid="0000:01:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="80" rank="0" gdr="1"/></pci></cpu></system>';

/** A case of one GPU whose whole answer is known. */
function oneGpu(changes: { nodeType?: object; expected?: object; file?: object; text?: string } = {}): OracleInput {
  const nodeType = {
    xml: 'topo.xml',
    localRanks: [0],
    inter: 0,
    maxBw: 5000,
    totalBw: 5000,
    nvlsSupport: 0,
    ...changes.nodeType,
  };
  return {
    name: 'one-gpu',
    case: { nodes: [{ xml: 'topo.xml', count: 1 }], env: {}, collnet: false, nRanks: 1, omitted: [], ...changes.file },
    expected: changes.expected ?? { nodeTypes: [nodeType] },
    files: new Map([['topo.xml', changes.text ?? xml]]),
  };
}

const outcome = (input: OracleInput, section: string) => runOracleCase(input, [section]).outcomes.get(section);

describe('a section of a case', () => {
  it('passes when it is equal', () => {
    expect(outcome(oneGpu(), 'nodeTypes')).toEqual({ kind: 'passed' });
  });

  it('fails with the first difference', () => {
    expect(outcome(oneGpu({ nodeType: { maxBw: 24 } }), 'nodeTypes')).toEqual({
      kind: 'failed',
      difference: 'nodeTypes[0].maxBw: NCCL 24, here 5000',
    });
  });

  it('ignores bandwidth and hops of a path that leads nowhere', () => {
    const path = (type: string) => ({ from: 'GPU/0-1000', GPU: [{ to: 'GPU/0-1000', type, bw: 1, count: 7, hops: ['x'] }] });
    expect(outcome(oneGpu({ nodeType: { paths: [path('NET')] } }), 'paths')).toMatchObject({
      difference: 'nodeTypes[0].paths[0].GPU[0].type: NCCL "NET", here "LOC"',
    });
    expect(outcome(oneGpu({ nodeType: { paths: [path('LOC')] } }), 'paths')).toMatchObject({
      difference: 'nodeTypes[0].paths[0].GPU[0].bw: NCCL 1, here 5000',
    });
  });

  it('is skipped where the case lacks it', () => {
    expect(outcome(oneGpu({ file: { omitted: ['system'] } }), 'system')).toEqual({ kind: 'skipped' });
  });

  it('fails, and does not throw, where the planner fails or the case is malformed', () => {
    expect(outcome(oneGpu({ text: xml.replace('sm="80"', '') }), 'nodeTypes')).toMatchObject({
      difference: expect.stringContaining('attribute sm is missing') as string,
    });
    expect(outcome(oneGpu({ text: '<system' }), 'nodeTypes')).toMatchObject({ kind: 'failed' });
    expect(outcome(oneGpu({ file: { nodes: 3 } }), 'nodeTypes')).toMatchObject({
      difference: expect.stringContaining('case.json has no list of nodes') as string,
    });
    expect(outcome({ ...oneGpu(), files: new Map() }, 'nodeTypes')).toMatchObject({
      difference: expect.stringContaining('topo.xml is missing') as string,
    });
  });
});

describe('a case that NCCL fails on', () => {
  const fails = (call: string, ncclResult: number, text = xml) => oneGpu({ expected: { error: { call, ncclResult } }, text });

  it('passes in the section of the call that fails, when the planner fails with the same result', () => {
    const broken = fails('ncclTopoGetSystemFromXml(xml, …)', 3, xml.replace('sm="80"', ''));
    expect(outcome(broken, 'system')).toEqual({ kind: 'passed' });
    expect(outcome(broken, 'paths')).toEqual({ kind: 'skipped' });
  });

  it('passes where NCCL reads nothing of a file that the planner reads, with a note', () => {
    expect(outcome(fails('ncclTopoGetXmlFromFile(topo.xml, …)', 3, xml.replace('<cpu', 'text <cpu')), 'system')).toEqual({
      kind: 'passed',
    });
    expect(outcome(fails('ncclTopoGetXmlFromFile(topo.xml, …)', 3, xml.slice(0, -10)), 'system')).toEqual({ kind: 'passed' });
  });

  it('fails in that section when the planner does not fail, or with another result', () => {
    expect(outcome(fails('ncclTopoGetSystemFromXml(xml, …)', 3), 'system')).toMatchObject({
      difference: expect.stringContaining('here nothing fails') as string,
    });
    expect(outcome(fails('ncclTopoGetSystemFromXml(xml, …)', 2, xml.replace('sm="80"', '')), 'system')).toMatchObject({
      kind: 'failed',
    });
  });
});
