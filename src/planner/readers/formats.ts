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
import { pciList } from './lspci.js';
import { deviceMatrix } from './matrix.js';
import { ethernetPorts, interfaceList } from './network.js';
import { nvlinkStatus, smiReport, smiTable } from './nvidia-smi.js';
import { peerTest } from './peer-test.js';
import { rasText } from './ras.js';
import { gidTable, rdmaPorts } from './rdma.js';
import type { ToolFormat } from './section.js';
import { flightAnalysis, processStacks } from './stacks.js';

/** Every tool whose output is read, in the order in which a line is tried as the first of one. */
export const toolFormats = [
  deviceMatrix,
  peerTest,
  smiReport,
  smiTable,
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

type FormatOf<Format> =
  Format extends ToolFormat<infer Name, infer Facts> ? { readonly tool: Name; readonly facts: Facts } : never;
/** The facts of one output of any tool, with the host that a heading names and the place of the first line. */
export type AnyToolOutput = FormatOf<(typeof toolFormats)[number]> & {
  readonly host: string;
  readonly place: { readonly file: number; readonly line: number };
};
