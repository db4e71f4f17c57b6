import { systemJson } from '../../planner/topology/system-json.js';
import { svgFile } from '../../view/draw/svg.js';
import { draw } from '../../view/machine/boxes.js';
import { machinePicture } from '../../view/machine/picture.js';
import { matrixLines, type Paint, pathCountLines, treeLines } from '../../view/machine/text.js';
import { colorsFor, print, printJson, printNotes, writeFile } from '../output.js';
import type { VersionOptions } from '../version-options.js';
import { readTopologyInput } from './input.js';
import { loadMachine } from './load.js';

export interface ShowOptions extends VersionOptions {
  readonly hardware?: string;
  readonly svg?: string;
  readonly json?: boolean;
  readonly matrix?: boolean;
  readonly mergeNics?: boolean;
}

/** Maximum number of GPUs and network devices whose matrix fits a terminal. */
const WIDEST_MATRIX = 40;

/** `tccl topo show`. */
export function show(name: string, options: ShowOptions): void {
  const machine = loadMachine(readTopologyInput(name), options.hardware, options.mergeNics === true, options);
  const drawing = draw(machine.title, machine.system, machine.paths, machine.root);
  if (options.svg !== undefined) writeFile(options.svg, svgFile(machinePicture(drawing)));
  if (options.json === true) {
    printJson({ ...drawing, notes: machine.notes, ...systemJson(machine.system, machine.paths) }, 1);
    return;
  }
  const paint = painter();
  const wide = drawing.endpoints.length > WIDEST_MATRIX && options.matrix !== true;
  print(...treeLines(drawing, paint), '', ...(wide ? pathCountLines(drawing, paint) : matrixLines(drawing, paint)));
  if (options.svg !== undefined) print('', `Drawn to ${options.svg}`);
  printNotes(machine.notes);
}

function painter(): Paint {
  const colors = colorsFor(process.stdout);
  return { bold: colors.bold, dim: colors.dim, gpu: colors.green, net: colors.cyan };
}
