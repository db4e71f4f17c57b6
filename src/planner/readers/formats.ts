import {
  cpuReport,
  fileSystems,
  kernelOptions,
  limitList,
  memoryTable,
  moduleList,
  packageList,
  serviceList,
  variableList,
} from './host.js';
import { copyTest } from './copy-test.js';
import { pciList } from './lspci.js';
import { lspciTree } from './lspci-tree.js';
import { lstopoText, lstopoXml } from './lstopo.js';
import { deviceMatrix } from './matrix.js';
import { ethernetPorts, interfaceList } from './network.js';
import { machineNames, nodeLabels, slurmNodes } from './nodes.js';
import { nvlinkStatus, smiReport, smiTable } from './nvidia-smi.js';
import { peerTest } from './peer-test.js';
import { rasText } from './ras.js';
import { gidTable, rdmaPorts } from './rdma.js';
import type { ToolFormat } from './section.js';
import { smiQuery } from './smi-query.js';
import { flightAnalysis, processStacks } from './stacks.js';

/** Every tool whose output is read, in the order in which a line is tried as the first of one. */
export const toolFormats = [
  deviceMatrix,
  peerTest,
  copyTest,
  smiReport,
  smiTable,
  smiQuery,
  nvlinkStatus,
  pciList,
  gidTable,
  rdmaPorts,
  interfaceList,
  ethernetPorts,
  fileSystems,
  limitList,
  memoryTable,
  packageList,
  moduleList,
  serviceList,
  kernelOptions,
  cpuReport,
  processStacks,
  flightAnalysis,
  rasText,
  variableList,
] as const;

/** Tools whose output describes a machine, in that order. */
export const machineFormats = [
  lstopoXml,
  lstopoText,
  lspciTree,
  deviceMatrix,
  smiReport,
  smiTable,
  nvlinkStatus,
  pciList,
  rdmaPorts,
  cpuReport,
  slurmNodes,
  nodeLabels,
  machineNames,
] as const;

type FormatOf<Format> =
  Format extends ToolFormat<infer Name, infer Facts> ? { readonly tool: Name; readonly facts: Facts } : never;
interface Placed {
  readonly host: string;
  readonly place: { readonly file: number; readonly line: number };
}
/** The facts of one output of any tool, with the host that a heading names and the place of the first line. */
export type AnyToolOutput = FormatOf<(typeof toolFormats)[number]> & Placed;
/** The same, of a tool that describes a machine. */
export type AnyMachineOutput = FormatOf<(typeof machineFormats)[number]> & Placed;
