import { describe, expect, it } from 'vitest';
import {
  choose,
  collectives,
  defaultParameters,
  machine,
  planPrepared,
  prepareCluster,
  simulatorOf,
  tune,
} from '../../../../../src/planner/index.js';
import { chooseWay } from '../../../../../src/planner/tuning/choose.js';
import { checkTunerTable, outcomeOf } from '../../../../../src/planner/plan/tuner/check-table.js';
import { isChanged, makeTunerTable } from '../../../../../src/planner/plan/tuner/make-table.js';
import { readTunerTable } from '../../../../../src/planner/plan/tuner/read-table.js';
import { rowLine } from '../../../../../src/planner/plan/tuner/row.js';

const prepared = prepareCluster({ hosts: [{ machine: machine('dgx-h100'), count: 2 }] }, defaultParameters);
const plan = planPrepared(prepared, defaultParameters);
const tuning = tune(plan, defaultParameters);
const simulator = simulatorOf(prepared, defaultParameters, plan, tuning);
const made = makeTunerTable(simulator, tuning);
const csv = `# a comment\n${made.map(rowLine).join('\n')}\n`;

const problems = (text: string) => {
  const { rows, findings } = readTunerTable(text);
  return [...findings, ...checkTunerTable(rows, tuning)].map(({ line, message }) => `${line ?? ''} ${message}`);
};

describe('a table for the tuner plugin', () => {
  it('is read back unchanged, without a finding', () => {
    expect(readTunerTable(csv).findings).toEqual([]);
    expect(problems(csv)).toEqual([]);
    expect(readTunerTable(csv).rows.map(({ line, ...row }) => [line, rowLine(row)])).toEqual(
      made.map((row, index) => [index + 2, rowLine(row)]),
    );
  });

  it('takes every call, and leaves channels to NCCL', () => {
    const { rows } = readTunerTable(csv);
    for (const collective of collectives)
      for (const bytes of [1, 1023, 1024, 65_537, 2 ** 20 + 1, 2 ** 33, 2 ** 36]) {
        const { row, way } = outcomeOf(rows, tuning, collective, bytes);
        expect(row, `${collective} ${bytes}`).toBeDefined();
        expect(way?.nChannels).toBeUndefined();
      }
  });

  it("is NCCL's own choice except where another is predicted to be faster", () => {
    let changed = 0;
    for (const { collective, algorithm, protocol, tried } of made)
      for (const each of tried) {
        const own = choose(tuning, collective, each.bytes);
        expect(each.own).toEqual({ algorithm: own?.algorithm, protocol: own?.protocol });
        expect(each.way).toEqual({ algorithm, protocol });
        const chosen = chooseWay(tuning, collective, each.bytes, each.way);
        if (isChanged(each)) changed++;
        if (isChanged(each)) expect(each.timeUs).toBeLessThan(0.9 * each.ownUs);
        else expect(each.timeUs).toBe(each.ownUs);
        expect(simulator.simulate(collective, each.bytes, { ...(chosen && { choice: chosen }) })?.timeUs).toBe(each.timeUs);
      }
    expect(changed).toBeGreaterThan(0);
  });

  it('is empty if no gain reaches the threshold', () => {
    expect(makeTunerTable(simulator, tuning, { gain: 0.95 }).flatMap(({ tried }) => tried.filter(isChanged))).toEqual([]);
  });
});

describe('an existing table', () => {
  it('is read as the plugin reads it', () => {
    const { rows, findings } = readTunerTable(
      [
        'all_reduce,64K,1M,Ring,LL,4,2,16',
        'allreduce,0,1,ring,,ll128,4,2,16',
        'reduce,0,1,ring,ll,4,2',
        'reduce,0,1,ring,ll,4,2,16,-1,0,7',
        `# ${'x,'.repeat(200)}`,
        'broadcast , 0, 18446744073709551615 ,ring, simple,4,2,16\r',
      ].join('\n'),
    );
    expect(rows.map(({ line, ...row }) => `${line} ${rowLine(row)}`)).toEqual([
      '1 allreduce,64,1,ring,simple,4,2,16',
      '2 allreduce,0,1,ring,ll128,4,2,16',
      '4 reduce,0,1,ring,ll,4,2,16,-1,0',
      '6 broadcast,0,18446744073709551615,ring,simple,4,2,16',
    ]);
    expect(findings.map(({ line, severity }) => `${line} ${severity}`)).toEqual([
      ...Array.from({ length: 6 }, () => '1 error'),
      '2 error',
      '3 error',
      '4 error',
      '5 error',
    ]);
    expect(findings.find(({ line }) => line === 4)?.message).toBe(
      '11 fields: the plugin reads 10 (up to NCCL 2.30.7; later it ignores the row)',
    );
  });

  it('has a finding where calls run on one channel', () => {
    const all = problems('allreduce,0,65535,tree,ll,-1,-1,-1\nallreduce,131072,18446744073709551615,ring,simple,0,2,16');
    expect(all).toContain('1 channels -1 is one channel with this plugin; 0 leaves the number to NCCL');
    expect(all).toContain(' allreduce: no row takes sizes from 65536 to 131071 bytes; such calls run on one channel');
    expect(all).toContain(' broadcast: no row takes any size; such calls run on one channel');
    const { rows } = readTunerTable('');
    expect(outcomeOf(rows, tuning, 'AllReduce', 2 ** 30).way?.nChannels).toBe(1);
  });

  it('has a finding for rows without effect', () => {
    const all = problems(
      [
        'allreduce,0,18446744073709551615,collnet_direct,simple,0,2,16',
        'allreduce,0,18446744073709551615,ring,simple,99,2,16',
        'allreduce,1024,2048,tree,ll,0,2,16',
        'allreduce,1024,2048,tree,ll,0,4,32',
      ].join('\n'),
    );
    expect(all.some((each) => each.startsWith('1 allreduce cannot use collnet_direct with simple here'))).toBe(true);
    expect(all).toContain(`2 channels 99: the communicator has ${tuning.input.nChannels}`);
    expect(all).toContain('3 earlier rows take all its sizes: it never decides');
    expect(all.some((each) => each.startsWith('4 not for this cluster'))).toBe(true);
    // A row that the communicator cannot do leaves the call to the next one.
    const { rows } = readTunerTable('allreduce,0,9999,nvls_tree,ll,0,2,16\nallreduce,0,9999,ring,ll,2,2,16');
    expect(outcomeOf(rows, tuning, 'AllReduce', 4096)).toMatchObject({
      row: { line: 2 },
      way: { algorithm: 'Ring', protocol: 'LL', nChannels: 2 },
    });
  });
});
