import { describe, expect, it } from 'vitest';
import { comparePlan } from '../../../../src/planner/log/checks/compare-plan.js';
import { interleaved, madeLog, planMachines, randomFrom, releases } from './made-log.js';
import { codes, findingsOf, readLines } from './read.js';

const machines = {
  'dgx-h100 x 2': planMachines('dgx-h100', 2),
  'dgx-1v': planMachines('dgx-1v', 1),
  'dgx-a100 x 3': planMachines('dgx-a100', 3),
};

describe.each(Object.entries(machines))('a log made from the plan of %s', (_, machine) => {
  it.each(releases)('is read back completely and without findings in the format of version %i', (release) => {
    const lines = interleaved(madeLog(machine, { release }), randomFrom(release));
    const model = readLines(lines);

    expect(model.communicators).toHaveLength(1);
    const [communicator] = model.communicators;
    expect(communicator!.nRanks).toBe(machine.plan.nodes.nRanks);
    expect([...communicator!.ranks.values()].filter(({ completed }) => completed === undefined)).toEqual([]);
    expect(codes(findingsOf(lines))).toEqual([]);
    expect(comparePlan(communicator!, machine.plan, machine.transports).differences).toEqual([]);
  });
});
