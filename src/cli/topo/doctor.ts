import { statSync } from 'node:fs';
import { detect } from '../../detect/detect.js';
import { parametersFromEnvironment } from '../../parameters.js';
import { completeSkeleton } from '../../topology/catalogue/complete.js';
import { diagnose } from '../../topology/doctor/diagnose.js';
import type { Finding, Severity } from '../../topology/doctor/finding.js';
import type { XmlElement } from '../../topology/xml/tree.js';
import { inFile } from '../../errors.js';
import { colorsFor } from '../output.js';
import { readTopologyInput } from './input.js';
import { readHardware } from './load.js';

export interface DoctorOptions {
  readonly hardware?: string;
  readonly machine?: string;
  readonly graph?: string;
  readonly json?: boolean;
}

/** Places of one finding that the text shows; JSON has all. */
const shownPlaces = 4;

/** `tccl topo doctor`; gives back the exit code. */
export function doctor(name: string, options: DoctorOptions): number {
  const input = readTopologyInput(name);
  const hardware = options.hardware === undefined ? undefined : readHardware(options.hardware);
  const root = hardware === undefined ? input.root : inFile(input.fileName, () => completeSkeleton(input.root, hardware).root);
  const findings = diagnose(root, {
    notes: input.notes,
    parameters: parametersFromEnvironment(process.env).parameters,
    ...(options.machine === undefined ? {} : { machine: machineNamed(options.machine) }),
    ...(options.graph === undefined ? {} : { graph: { root: readTopologyInput(options.graph).root, fileName: options.graph } }),
  });
  if (options.json === true) console.log(JSON.stringify({ title: input.title, findings }, null, 1));
  else print(findings, input.title, input.fileName);
  return findings.some(({ severity }) => severity === 'error') ? 1 : 0;
}

/** A dump, or a machine by the root of its file system. */
function machineNamed(name: string): XmlElement {
  return statSync(name, { throwIfNoEntry: false })?.isDirectory() === true ? detect({ root: name }).root : readTopologyInput(name).root;
}

function print(findings: readonly Finding[], title: string, fileName: string | undefined): void {
  const colors = colorsFor(process.stdout);
  const paint: Record<Severity, (text: string) => string> = { error: colors.red, warning: colors.yellow, info: colors.cyan };
  for (const { severity, code, places, problem, consequence, remedy } of findings) {
    console.log(`${paint[severity](severity)} ${colors.bold(code)}: ${problem}`);
    for (const place of places.slice(0, shownPlaces)) {
      const at = [fileName, place.line, place.column].filter((part) => part !== undefined && part !== 0).join(':');
      console.log(`  at ${place.element}${at === '' ? '' : ` ${colors.dim(at)}`}`);
    }
    if (places.length > shownPlaces) console.log(`  and ${places.length - shownPlaces} more places`);
    console.log(`  cost: ${consequence}`);
    console.log(`  do:   ${remedy}\n`);
  }
  const count = (severity: Severity, word: string) => {
    const number = findings.filter((finding) => finding.severity === severity).length;
    return number === 0 ? [] : [`${number} ${word}${number === 1 ? '' : 's'}`];
  };
  const counts = [...count('error', 'error'), ...count('warning', 'warning'), ...count('info', 'remark')];
  console.log(counts.length === 0 ? `${title}: nothing to complain of` : `${title}: ${counts.join(', ')}`);
}
