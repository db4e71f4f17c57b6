import { draw } from '../../planner/topology/view/drawing.js';
import { systemJson } from '../../planner/topology/view/json.js';
import { drawingSvg } from '../../planner/topology/view/svg.js';
import { matrixText, type Paint, pathCountText, treeText } from '../../planner/topology/view/text.js';
import { colorsFor, printNotes, writeFile } from '../output.js';
import { readTopologyInput } from './input.js';
import { loadMachine } from './load.js';

export interface ShowOptions {
  readonly hardware?: string;
  readonly svg?: string;
  readonly json?: boolean;
  readonly matrix?: boolean;
  readonly mergeNics?: boolean;
}

/** More GPUs and network devices than this make a matrix that no terminal holds. */
const widestMatrix = 40;

/** `tccl topo show`. */
export function show(name: string, options: ShowOptions): void {
  const machine = loadMachine(readTopologyInput(name), options.hardware, options.mergeNics === true);
  const drawing = draw(machine.title, machine.system, machine.paths, machine.root);
  if (options.svg !== undefined) writeFile(options.svg, drawingSvg(drawing));
  if (options.json === true) {
    console.log(JSON.stringify({ ...drawing, notes: machine.notes, ...systemJson(machine.system, machine.paths) }, null, 1));
    return;
  }
  const paint = painter();
  process.stdout.write(treeText(drawing, paint));
  const wide = drawing.endpoints.length > widestMatrix && options.matrix !== true;
  process.stdout.write(`\n${wide ? pathCountText(drawing, paint) : matrixText(drawing, paint)}`);
  if (options.svg !== undefined) console.log(`\nDrawn to ${options.svg}`);
  printNotes(machine.notes);
}

function painter(): Paint {
  const colors = colorsFor(process.stdout);
  return { bold: colors.bold, dim: colors.dim, gpu: colors.green, net: colors.cyan };
}
