import { describe, expect, it } from 'vitest';
import { SearchReport } from '../../../src/planner/graph/search-report.js';
import { searchHost } from '../../../src/planner/graph/search-host.js';
import { defaultParameters } from '../../../src/planner/parameters.js';
import { type DeviceEdit, withDeviceEdits } from '../../../src/planner/plan/device-edits.js';
import { buildSystem } from '../../../src/planner/topology/build/build-system.js';
import { machine } from '../../../src/planner/topology/catalogue/machines.js';
import { localSystems } from '../../../src/planner/topology/local-systems.js';
import { computePaths } from '../../../src/planner/topology/paths/compute-paths.js';
import { nodeName } from '../../../src/planner/topology/system.js';
import { draw } from '../../../src/view/machine/boxes.js';
import { highlighted, withDifferences } from '../../../src/view/machine/highlight.js';
import { machinePicture } from '../../../src/view/machine/picture.js';
import { storyOf } from '../../../src/view/why/story.js';
import { drawList } from './draw-list.js';

function searched(name: string) {
  const root = machine(name);
  const system = buildSystem(root, { parameters: defaultParameters });
  const local = localSystems(system, defaultParameters, 2 * system.gpus.length)[0]!;
  const report = new SearchReport();
  searchHost(local, defaultParameters, { trace: report.listen });
  const drawn = new Map(system.gpus.map((gpu) => [nodeName(gpu), nodeName(system.hardware[gpu.parent]!)]));
  const picture = machinePicture(draw(name, system, computePaths(system, defaultParameters), root));
  return { graphs: report.graphs, picture, drawnName: (id: string) => drawn.get(id) ?? id };
}

// After a wanted change of a view: npx vitest run -u, and look at what changed.
describe('the story of a search', () => {
  it.each(['dgx-1v', 'hgx-a100-4', 'dgx-h100', 'gb200-tray', 'ac922', 'pcie-8-a6000'])(
    'of %s, with what is drawn',
    async (name) => {
      const { graphs, picture, drawnName } = searched(name);
      const lines = graphs.slice(0, 2).flatMap((graph) =>
        storyOf(graph).flatMap(({ text, details, alike }) => [
          text,
          ...details.flatMap((detail) => {
            const places = detail.places.map(drawnName);
            const added = highlighted(picture, places, detail.text).marks.slice(picture.marks.length);
            const marks = drawList({ ...picture, marks: added })
              .split('\n')
              .slice(1, -1);
            return [`  ${detail.text}`, ...marks.map((mark) => `    ${mark.replace(/ «.*»$/, '')}`)];
          }),
          ...alike.map((each) => `  and ${each}`),
        ]),
      );
      await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot(`golden/why-${name}.txt`);
    },
  );

  it('keeps every sentence, and folds steps that differ in numbers only', () => {
    for (const name of ['dgx-1v', 'dgx-h100', 'pcie-8-a6000'])
      for (const graph of searched(name).graphs) {
        const steps = storyOf(graph);
        const count = graph.sentences.filter((sentence) => !sentence.startsWith('  ')).length;
        expect(steps.reduce((sum, { alike }) => sum + 1 + alike.length, 0)).toBe(count);
        expect(graph.places).toHaveLength(graph.sentences.length);
      }
    const { graphs } = searched('pcie-8-a6000');
    expect(graphs.flatMap((graph) => storyOf(graph)).some(({ alike }) => alike.length > 0)).toBe(true);
  });

  it('points at every obstacle with at least one frame', () => {
    const { graphs, picture, drawnName } = searched('dgx-1v');
    const obstacles = graphs.flatMap(({ places }) => places).filter((places) => places.length > 0);
    expect(obstacles.length).toBeGreaterThan(0);
    for (const places of obstacles) {
      const { marks } = highlighted(picture, places.map(drawnName), 'in the way');
      expect(marks.length).toBeGreaterThan(picture.marks.length);
    }
  });
});

describe('two pictures of a machine', () => {
  const pictureOf = (edits: readonly DeviceEdit[], ncclVersion = defaultParameters.ncclVersion) => {
    const parameters = { ...defaultParameters, ncclVersion };
    const root = withDeviceEdits(machine('dgx-h100'), edits);
    const system = buildSystem(root, { parameters });
    return machinePicture(draw('dgx-h100', system, computePaths(system, parameters), root));
  };
  const marked = (a: ReturnType<typeof pictureOf>, b: ReturnType<typeof pictureOf>) =>
    withDifferences(a, b).marks.flatMap(({ look, subject }) => (look === 'differs' || look === 'otherframe' ? [subject] : []));

  it('have marks for what differs, and no others', () => {
    const whole = pictureOf([]);
    expect(marked(whole, whole)).toEqual([]);
    expect(marked(pictureOf([{ what: 'half-speed', device: 'mlx5_1' }]), whole)).toEqual(['link/NET/0-1>NIC/0-40000', 'NET/0-1']);
    const added = marked(pictureOf([{ what: 'another', device: 'gpu3' }]), whole).filter(
      (subject) => !subject?.startsWith('link/'),
    );
    expect(added).toEqual(['DEV/0-add000000', 'NVS']);
  });

  it('differ not by the names of hardware in other versions', () => {
    // The version counts other bandwidth for NVLinks.
    const differing = marked(pictureOf([], '2.27.7'), pictureOf([]));
    expect(differing.filter((subject) => subject?.endsWith('NVS') !== true)).toEqual([]);
  });
});
