import { describe, expect, it } from 'vitest';
import { defaultParameters, machine, prepareCluster, simulatorOf } from '../../../../src/planner/index.js';
import { unmeasuredText } from '../../../../src/planner/simulate/interval.js';

const MiB = 2 ** 20;

function intervalsOf(name: string, hosts: number, network: 'verbs' | 'efa' = 'verbs') {
  const prepared = prepareCluster({ hosts: [{ machine: machine(name), count: hosts }] }, defaultParameters);
  const { least, most, unmeasured } = simulatorOf(prepared, defaultParameters).interval('AllReduce', 16 * MiB, { network });
  return { width: Math.log(most / least), unmeasured };
}

describe('the interval of a prediction', () => {
  const measured = intervalsOf('dgx-h100', 2);

  it('is that of the class where hosts like these were measured', () => {
    expect(measured.unmeasured).toEqual([]);
    expect(intervalsOf('dgx-h100', 10)).toEqual(measured);
    expect(unmeasuredText([])).toBeUndefined();
  });

  it('grows with hosts that nobody measured', () => {
    const [more, most] = [intervalsOf('dgx-h100', 16), intervalsOf('dgx-h100', 128)];
    expect(more.width).toBeGreaterThan(measured.width);
    expect(most.width).toBeGreaterThan(1.5 * measured.width);
    expect(most.unmeasured).toEqual(['128 hosts, where 10 were measured']);
  });

  it('is wider for a generation, a network and links without a measurement, and says so', () => {
    expect(intervalsOf('dgx-b200', 2).width).toBeGreaterThan(measured.width);
    expect(intervalsOf('dgx-h100', 2, 'efa').width).toBeGreaterThan(measured.width);
    expect(intervalsOf('pcie-8-l40s', 1).width).toBeGreaterThan(intervalsOf('dgx-h100', 1).width);
    expect(unmeasuredText(intervalsOf('dgx-b200', 2, 'efa').unmeasured)).toBe(
      'the fit has no measurement of Blackwell between hosts and of the network plugin efa: intervals are wider',
    );
  });
});
