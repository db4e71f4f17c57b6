import { describe, expect, it } from 'vitest';
import { NcclLogReader } from '../../../src/planner/log/job/read-log.js';
import { diagnosed } from '../../../src/studio/log.js';
import { incidentPictures } from '../../../src/studio/parts/incident.js';
import { partOf } from '../../../src/studio/parts/part.js';
import { planned } from '../../../src/studio/planned.js';
import { sheetOfLog, sheetOfPart } from '../../../src/studio/sheets.js';
import { type NamedText, sourceOf } from '../../../src/studio/source.js';
import { stateOf, type StudioState } from '../../../src/studio/state.js';
import { svgFile } from '../../../src/view/draw/svg.js';
import { parseXml } from '../../../src/planner/topology/xml/parse.js';
import { drawList } from '../view/draw-list.js';

const plan = (state: StudioState, file?: NamedText) => planned(sourceOf(state, file)!);

function sheetOf(fragment: string) {
  const state = stateOf(fragment);
  const made = plan(state);
  return sheetOfPart('a view', partOf({ made, state, file: undefined, against: undefined, tables: [], width: undefined, plan })!);
}

/** Flight recordings of all ranks, of which one did not begin the last call. */
function recordings(nRanks: number, late: number) {
  const reader = new NcclLogReader();
  for (let rank = 0; rank < nRanks; rank++) {
    const entry = (sequence: number) => ({
      process_group: ['0', 'default_pg'],
      collective_seq_id: sequence,
      profiling_name: 'nccl:all_reduce',
      input_sizes: [[1024]],
      state: sequence === 41 ? 'started' : 'completed',
      is_p2p: false,
    });
    const ranks = `[${[...Array(nRanks).keys()].join(', ')}]`;
    const entries = (rank === late ? [39, 40] : [39, 40, 41]).map(entry);
    const text = JSON.stringify({ version: '2.5', pg_config: { 0: { name: '0', ranks } }, entries });
    reader.openFile(`rank_${rank}.json`);
    reader.readWhole('json', new TextEncoder().encode(text));
  }
  return diagnosed(reader.finish())!;
}

// After a wanted change of a view: npx vitest run -u, and look at what changed.
describe.each([
  ['dgx-1v', 1],
  ['hgx-a100-4', 2],
  ['dgx-h100', 2],
  ['gb200-tray', 2],
  ['ac922', 1],
  ['pcie-8-a6000', 2],
])('sheets of %s, %d of them', (name, nodes) => {
  const cluster = `machine=${name}&nodes=${nodes}`;

  it.each([
    ['choice', '&windows=both'],
    ['channels', ''],
    ['changes', '&env=NCCL_ALGO%3DRing&gpu-off=0'],
    ['learn', ''],
  ])('%s', async (view, settings) => {
    const picture = sheetOf(`${cluster}&view=${view}${settings}`);
    expect(JSON.stringify(picture)).not.toMatch(/NaN|null|undefined/);
    expect(parseXml(svgFile(picture)).root.name).toBe('svg');
    // Of a comparison the texts and marks of differences: both pictures have goldens of their own.
    const marks = picture.marks.filter(
      ({ kind, look }) => view !== 'changes' || kind === 'text' || /differs|otherframe/.test(look),
    );
    await expect(drawList({ ...picture, marks })).toMatchFileSnapshot(`golden/${view}-${nodes}-${name}.txt`);
  });

  it('an incident', async () => {
    const made = plan(stateOf(cluster));
    const job = recordings(made.plan.nodes.nRanks, 1);
    const picture = sheetOfLog('an incident', { ...job.log, ranks: incidentPictures(job, made, undefined) });
    expect(picture.marks.filter(({ look }) => look === 'late').length).toBeGreaterThan(0);
    expect(picture.marks.filter(({ look }) => look === 'frame').length).toBe(1);
    await expect(drawList(picture)).toMatchFileSnapshot(`golden/incident-${nodes}-${name}.txt`);
  });
});

describe('a sheet', () => {
  it.each(['machine', 'cluster', 'matrix', 'motion', 'why'])('of %s has its pictures and texts within its borders', (view) => {
    const { marks, width, height } = sheetOf(`machine=dgx-h100&nodes=2&view=${view}`);
    expect(marks.length).toBeGreaterThan(20);
    for (const mark of marks) {
      if (mark.kind === 'path') continue;
      expect(mark.x).toBeLessThanOrEqual(width);
      expect(mark.y).toBeLessThanOrEqual(height);
    }
  });

  it('draws the path of a cell, and names the channels over a link', () => {
    const state = stateOf('machine=dgx-h100&nodes=2&view=matrix&selected=path%2FDEV%2F0-1b000%3ENET%2F0-3');
    const part = partOf({ made: plan(state), state, file: undefined, against: undefined, tables: [], width: undefined, plan });
    expect(part?.view === 'matrix' && part.path?.text).toMatch(/^GPU 0 to NET 3: PXN, .*, 48 GB\/s, by DEV\/0-1b000, NVS, /);
    const link = stateOf('machine=dgx-h100&nodes=2&selected=link%2FNET%2F0-0%3ENIC%2F0-18000');
    const machine = partOf({
      made: plan(link),
      state: link,
      file: undefined,
      against: undefined,
      tables: [],
      width: undefined,
      plan,
    });
    expect(machine?.view === 'machine' && machine.over).toEqual([0, 1, 8, 9]);
  });
});
