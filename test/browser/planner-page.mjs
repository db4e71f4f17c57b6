// Program of planner.test.ts, run in a browser and, for comparison, in Node.
import {
  buildSystem,
  computePaths,
  defaultParameters,
  diagnose,
  draw,
  machine,
  machinePicture,
  parseXml,
  plan,
  planFromJson,
  planToJson,
  svgFile,
  writeXml,
} from '../../dist/planner/index.js';

/** Plans of machines from the catalogue and from text, a picture, and the doctor's findings. */
export function answers() {
  const made = plan({ hosts: [{ machine: machine('dgx-h100'), count: 2 }] });
  const { root } = parseXml(writeXml(machine('dgx-a100')));
  const mixed = plan({
    hosts: [
      { machine: root, count: 1 },
      { machine: machine('hgx-a100-4'), count: 3 },
    ],
  });
  const system = buildSystem(root, { parameters: defaultParameters });
  return JSON.stringify({
    made: planToJson(made),
    mixed: planToJson(planFromJson(planToJson(mixed))),
    svg: svgFile(machinePicture(draw('a machine', system, computePaths(system, defaultParameters)))),
    findings: diagnose(root).map(({ code }) => code),
  });
}
