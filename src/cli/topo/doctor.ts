import { statSync } from 'node:fs';
import { counted } from '../../counted.js';
import { detect } from '../../runtime/detect/detect.js';
import { parametersFromEnvironment } from '../../planner/parameters.js';
import { completeSkeleton } from '../../planner/topology/catalogue/complete.js';
import { diagnose } from '../../planner/topology/doctor/diagnose.js';
import type { Finding, Severity } from '../../planner/topology/doctor/finding.js';
import { descendants, shorten, type XmlElement } from '../../planner/topology/xml/tree.js';
import { inFile, InputError } from '../../errors.js';
import { machineOf } from '../../planner/evidence/machine-of-tools.js';
import { colorsFor, print, printJson, printNotes } from '../output.js';
import { newGpuNotes, type VersionOptions, versionOf } from '../version-options.js';
import { readTopologyInput } from './input.js';
import { readHardware } from './load.js';

export interface DoctorOptions extends VersionOptions {
  readonly hardware?: string;
  readonly machine?: string;
  readonly graph?: string;
  readonly json?: boolean;
}

/** Number of places of one finding in the text; JSON has all. */
const SHOWN_PLACES = 4;

/** `tccl topo doctor`; returns the exit code. */
export function doctor(name: string, options: DoctorOptions): number {
  const input = readTopologyInput(name);
  const hardware = options.hardware === undefined ? undefined : readHardware(options.hardware);
  const { root, notes: evidentNotes } = inFile(input.fileName, () => {
    if (input.evidence !== undefined) return machineOf(input.evidence, hardware);
    return { root: hardware === undefined ? input.root : completeSkeleton(input.root, hardware).root, notes: [] };
  });
  const { parameters } = parametersFromEnvironment(process.env, versionOf(options));
  const findings = diagnose(root, {
    notes: input.notes,
    parameters,
    ...(options.machine === undefined ? {} : { machine: machineNamed(options.machine) }),
    ...(options.graph === undefined ? {} : { graph: { root: graphNamed(options.graph), fileName: options.graph } }),
  });
  const notes = [...newGpuNotes(input.title, gpusOf(root), parameters), ...evidentNotes];
  if (options.json === true) printJson({ title: input.title, findings, notes }, 1);
  else {
    printFindings(findings, input.title, input.fileName);
    printNotes(notes);
  }
  return findings.some(({ severity }) => severity === 'error') ? 1 : 0;
}

/** Compute capabilities of the GPUs, also where no graph can be built. */
function gpusOf(root: XmlElement): { readonly sm: number }[] {
  return [...descendants(root)]
    .filter(({ name }) => name === 'gpu')
    .map((gpu) => ({ sm: Number(gpu.attributes.get('sm') ?? 0) }));
}

/** A dump, or a machine by the root of its file system. */
function machineNamed(name: string): XmlElement {
  if (statSync(name, { throwIfNoEntry: false })?.isDirectory() === true) return detect({ root: name }).root;
  return rootNamed('system', name, '--machine takes a topology, or the root of a file system');
}

function graphNamed(name: string): XmlElement {
  return rootNamed('graphs', name, '--graph takes an NCCL_GRAPH_FILE, or what NCCL_GRAPH_DUMP_FILE wrote');
}

function rootNamed(expected: 'system' | 'graphs', name: string, what: string): XmlElement {
  const { root, fileName } = readTopologyInput(name);
  if (root.name === expected) return root;
  throw new InputError('CONTENT', `its root is <${shorten(root.name)}>, not <${expected}>: ${what}`, {
    line: root.line,
    column: root.column,
    ...(fileName === undefined ? {} : { file: fileName }),
  });
}

function printFindings(findings: readonly Finding[], title: string, fileName: string | undefined): void {
  const colors = colorsFor(process.stdout);
  const paint: Record<Severity, (text: string) => string> = { error: colors.red, warning: colors.yellow, info: colors.cyan };
  for (const { severity, code, places, problem, consequence, remedy } of findings) {
    print(`${paint[severity](severity)} ${colors.bold(code)}: ${problem}`);
    for (const place of places.slice(0, SHOWN_PLACES)) {
      const at = [fileName, place.line, place.column].filter((part) => part !== undefined && part !== 0).join(':');
      print(`  at ${place.element}${at === '' ? '' : ` ${colors.dim(at)}`}`);
    }
    if (places.length > SHOWN_PLACES) print(`  and ${places.length - SHOWN_PLACES} more places`);
    print(`  cost: ${consequence}`);
    print(`  do:   ${remedy}`, '');
  }
  const count = (severity: Severity, word: string) => {
    const number = findings.filter((finding) => finding.severity === severity).length;
    return number === 0 ? [] : [counted(number, word)];
  };
  const counts = [...count('error', 'error'), ...count('warning', 'warning'), ...count('info', 'remark')];
  print(counts.length === 0 ? `${title}: nothing to complain of` : `${title}: ${counts.join(', ')}`);
}
