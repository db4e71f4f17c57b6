import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { InputError, InvalidArgumentError } from '../../../src/errors.js';
import { defaultParameters, parametersFromEnvironment } from '../../../src/planner/parameters.js';
import { accuracyPage, compareResults, fitResults } from '../../../testing/accuracy/accuracy-page.js';
import { estimate, measuredParameters, type ReachName } from '../../../src/planner/plan/estimate.js';
import { simulatedTable } from '../../../testing/accuracy/simulated.js';
import { coverageTable } from '../../../testing/calibration/coverage.js';
import { measuredKindsOf, predictLeftOut, readLeftOut } from '../../../testing/calibration/left-out.js';
import { measuredKinds } from '../../../src/planner/simulate/measured-calls.js';
import { type MeasuredCall, PCIE, readMeasured, readMeasuredFiles } from '../../../testing/calibration/measured.js';
import { fitParameters, withReach } from '../../../testing/accuracy/fit.js';
import { parsePublishedResults } from '../../../testing/accuracy/published.js';
import { applyOverrides } from '../../../src/planner/plan/overrides.js';
import { plan } from '../../../src/planner/plan/plan.js';
import { machine } from '../../../src/planner/topology/catalogue/machines.js';
import { choose } from '../../../src/planner/tuning/choose.js';
import { collectives } from '../../../src/planner/tuning/names.js';
import { tune } from '../../../src/planner/tuning/tune.js';

const notes = new URL('../../../docs/notes/', import.meta.url);
const published = readFileSync(new URL('published-results.yaml', notes), 'utf8');

function tuningOf(
  name: string,
  { count = 1, gpus, environment = {} }: { count?: number; gpus?: number; environment?: Record<string, string> } = {},
) {
  const { parameters } = parametersFromEnvironment(environment);
  const root = applyOverrides(machine(name), gpus === undefined ? {} : { gpus });
  return tune(plan({ hosts: [{ machine: root, count }] }, parameters), parameters);
}

const page = readFileSync(new URL('accuracy.md', notes), 'utf8');

const simulatedHead = '| machines | collective | size |';
const coverageHead = '| left out | size | rows |';

/** A table of the page. */
function tableOf(text: string, start = simulatedHead): string[] {
  const lines = text.split('\n');
  const head = lines.findIndex((line) => line.startsWith(start));
  return lines.slice(head, lines.indexOf('', head));
}

describe('docs/notes/accuracy.md', () => {
  let compared: ReturnType<typeof compareResults>;
  let calls: readonly MeasuredCall[];
  const fits = readLeftOut(readFileSync(new URL('../../../testing/calibration/left-out.jsonl', import.meta.url), 'utf8'));
  beforeAll(() => {
    compared = compareResults(published);
    calls = readMeasured(readMeasuredFiles((name: string) => readFileSync(new URL(name, notes), 'utf8')));
  });

  it('has the errors of simulated times that follow from the measurements', () => {
    const pairs = calls.filter(({ hosts, collective }) => hosts > 1 && collective === 'SendRecv');
    const rows = simulatedTable(pairs, fits).split('\n').slice(2);
    expect(rows.length).toBeGreaterThan(0);
    expect(tableOf(page)).toEqual(expect.arrayContaining(rows));
  });

  it('counts the kinds of calls as measured that measurements are of', () => {
    const trusted = calls.filter(({ fabric, doubt }) => fabric !== PCIE && doubt === undefined);
    expect([...measuredKindsOf(trusted)].sort()).toEqual([...measuredKinds].sort());
  });

  it('has the share of measurements inside their intervals', () => {
    const between = calls.filter(({ hosts, doubt }) => hosts > 1 && doubt === undefined);
    const rows = coverageTable(fits.flatMap((fit) => predictLeftOut(fit, between)))
      .split('\n')
      .slice(2);
    expect(rows).toHaveLength(5);
    expect(tableOf(page, coverageHead)).toEqual(expect.arrayContaining(rows));
  });

  it('has intervals that hold about eight of ten measurements of each class and size', () => {
    const shares = tableOf(page, coverageHead)
      .slice(2)
      .map((row) => row.split('|').map((cell) => cell.trim()));
    expect(shares).toHaveLength(14);
    for (const [, place, size, , inside = ''] of shares) {
      expect(parseInt(inside), `${place} ${size}`).toBeGreaterThanOrEqual(75);
      expect(parseInt(inside), `${place} ${size}`).toBeLessThanOrEqual(95);
    }
  });

  it('predicts each left-out class of one node as well as NCCL’s belief, or within a point of it', () => {
    const errors = tableOf(page)
      .slice(2)
      .map((row) => row.split('|').map((cell) => cell.trim()))
      .filter(([, place = '', , , , , , belief = '']) => place.endsWith('one node') && belief !== 'none');
    expect(errors.length).toBe(27);
    for (const [, place, collective, size, , , leftOut, belief] of errors)
      expect(parseFloat(leftOut ?? ''), `${place} ${collective} ${size}`).toBeLessThanOrEqual(parseFloat(belief ?? '') + 1);
  });

  it('equals the output of npm run accuracy', () => {
    expect(page).toBe(accuracyPage(compared, tableOf(page).join('\n'), tableOf(page, coverageHead).join('\n')));
  });

  it('has parameters that follow from its fit', () => {
    const results = [...fitResults(compared).values()];
    const fitted = fitParameters(results);
    expect(Math.round(fitted.launchUs)).toBe(measuredParameters.launchUs);
    expect(Math.round(10 * fitted.rounds) / 10).toBe(measuredParameters.rounds);
    const { reach } = withReach(results, measuredParameters.launchUs, measuredParameters.rounds);
    for (const [name, value] of Object.entries(measuredParameters.reach))
      expect(reach[name as ReachName], name).toBeCloseTo(value, 2.5);
  });

  it('has an estimate that is nearer than NCCL below 128 MiB, where nothing was fitted', () => {
    const rows = compared.filter(({ use, nodes }) => use === 'test' && nodes === 1).flatMap((result) => result.rows);
    const small = rows.filter(({ bytes }) => bytes < 2 ** 27);
    const mean = (of: (row: (typeof rows)[number]) => number) =>
      small.reduce((sum, row) => sum + Math.abs(of(row) / row.measured - 1), 0) / small.length;
    expect(small.length).toBeGreaterThan(5);
    expect(mean((row) => row.estimated)).toBeLessThan(mean((row) => row.believed) / 2);
  });
});

describe('estimate', () => {
  it('follows the choice of NCCL for every collective, and is longer where links reach no more than NCCL believes', () => {
    const tuning = tuningOf('dgx-2');
    for (const collective of collectives) {
      for (let bytes = 1; bytes <= 2 ** 34; bytes *= 4) {
        const choice = choose(tuning, collective, bytes)!;
        const ours = estimate(tuning, collective, bytes)!;
        expect([ours.algorithm, ours.protocol]).toEqual([choice.algorithm, choice.protocol]);
        expect(ours.timeUs).toBeGreaterThan(choice.timeUs);
        expect(ours.busGBps / ours.algorithmGBps).toBeCloseTo(choice.busGBps / choice.algorithmGBps, 9);
      }
    }
  });

  it('is slower for two Blackwells with LL128 than for three, against what NCCL believes', () => {
    const environment = { NCCL_ALGO: 'Ring', NCCL_PROTO: 'LL128' };
    const [two, three] = [2, 3].map((gpus) => estimate(tuningOf('dgx-b200', { gpus, environment }), 'AllReduce', 2 ** 30)!);
    expect(two!.busGBps).toBeLessThan(0.65 * three!.busGBps);
  });

  it('is undefined for one rank, and where NCCL has no candidate', () => {
    expect(estimate(tuningOf('gh200'), 'AllReduce', 1024)).toBeUndefined();
    expect(estimate(tuningOf('dgx-a100', { environment: { NCCL_ALGO: 'NVLS' } }), 'AllReduce', 1024)).toBeUndefined();
  });

  it('refuses an invalid size', () => {
    const tuning = tune(plan({ hosts: [{ machine: machine('dgx-h100'), count: 1 }] }), defaultParameters);
    expect(() => estimate(tuning, 'AllReduce', 0)).toThrow(InvalidArgumentError);
  });
});

describe('a list of published results', () => {
  const entry = '- name: x\n  use: fit\n  machine: dgx-h100\n  gbps:\n    1G: 300\n';

  it('reads missing fields as defaults', () => {
    expect(parsePublishedResults(entry)).toEqual([
      {
        name: 'x',
        use: 'fit',
        machine: 'dgx-h100',
        nodes: 1,
        fabric: 'unknown',
        overrides: {},
        environment: {},
        collective: 'AllReduce',
        type: 'float32',
        gpusPerThread: 1,
        nccl: undefined,
        source: undefined,
        note: undefined,
        isRound: false,
        sizes: [{ label: '1G', bytes: 2 ** 30, gbps: 300 }],
      },
    ]);
  });

  it.each([
    [entry.replace('fit', 'fitt'), /use is "fitt"; it has to be one of fit, test/, 2],
    [entry.replace('1G:', '1X:'), /1X is no size/, 5],
    [entry.replace('300', '-3'), /a bandwidth in GB\/s, above 0/, 5],
    [entry.replace('machine', 'maschine'), /no field maschine; did you mean machine|no field maschine/, 3],
    ['- name: x\n', /needs a name, use, machine and gbps/, 1],
  ])('gives the place of an error: %#', (text, message, line) => {
    let thrown: unknown;
    try {
      parsePublishedResults(text);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(InputError);
    expect((thrown as InputError).message).toMatch(message);
    expect((thrown as InputError).line).toBe(line);
  });
});
