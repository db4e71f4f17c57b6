// What planner.test.ts runs in a browser, and in Node to compare.
import {
  buildSystem,
  computePaths,
  defaultParameters,
  diagnose,
  draw,
  drawingSvg,
  machine,
  parseXml,
  plan,
  planFromJson,
  planToJson,
  writeXml,
} from '../../dist/planner/index.js';

/** Plans of machines from the catalogue and from text, a picture, and what the doctor says. */
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
    svg: drawingSvg(draw('a machine', system, computePaths(system, defaultParameters))),
    findings: diagnose(root).map(({ code }) => code),
  });
}
