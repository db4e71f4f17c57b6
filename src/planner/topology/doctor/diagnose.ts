import { InputError } from '../../../errors.js';
import { defaultParameters, type Parameters } from '../../parameters.js';
import { buildSystem } from '../build/build-system.js';
import type { System } from '../system.js';
import type { XmlNote } from '../xml/notes.js';
import { isOfRccl } from '../xml/rccl.js';
import type { XmlElement } from '../xml/tree.js';
import { validateTopology } from '../xml/validate.js';
import { markDesign } from './by-design.js';
import { checkCards } from './check-cards.js';
import { checkCpus } from './check-cpus.js';
import { checkAgainstMachine, checkDevices, checkGraph, checkNotes } from './check-file.js';
import { checkLinks } from './check-links.js';
import { checkNetwork } from './check-network.js';
import { checkNvlinks } from './check-nvlink.js';
import { type Finding, Findings } from './finding.js';
import { Measure } from './measure.js';
import { devicesOf, type Inventory } from './inventory.js';

/** Facts with which a topology is compared. */
export interface DiagnoseOptions {
  readonly parameters?: Parameters;
  /** Notes of `parseXml` about text that NCCL's own parser would refuse. */
  readonly notes?: readonly XmlNote[];
  /** The intended machine, from a dump or detection. */
  readonly machine?: XmlElement;
  /** A graph file that is used with it. */
  readonly graph?: { readonly root: XmlElement; readonly fileName: string };
}

/** Limit of elements; a file of a whole rack has a tenth of this. */
const MOST_DEVICES = 5000;

/**
 * Finds faults of a topology, certain or likely: each with its place, its cost in GB/s, and the remedy. Never throws for the
 * contents of the file. A limit that every machine of its type has by the catalogue is a remark.
 */
export function diagnose(root: XmlElement, options: DiagnoseOptions = {}): Finding[] {
  const parameters = options.parameters ?? defaultParameters;
  return markDesign(examine(root, options), root, (machine) => examine(machine, { parameters }));
}

function examine(root: XmlElement, options: DiagnoseOptions): Finding[] {
  const findings = new Findings();
  const parameters = options.parameters ?? defaultParameters;
  if (root.name === 'system' && isOfRccl(root)) {
    findings.add(root, {
      code: 'impossible',
      severity: 'info',
      problem: 'this is a topology of RCCL (AMD GPUs)',
      consequence: 'RCCL plans otherwise than NCCL: it is not examined',
      remedy: 'RCCL reads it as it is; tccl is about NCCL',
    });
    return findings.list();
  }
  checkNotes(options.notes ?? [], findings);
  attempt(findings, 'impossible', () => {
    validateTopology(root);
  });
  if (root.name !== 'system') return findings.list();

  const devices = devicesOf(root);
  if (Math.max(devices.cpus.length, devices.pcis.length, devices.gpus.length, devices.nets.length) > MOST_DEVICES) {
    findings.add(root, {
      code: 'impossible',
      severity: 'error',
      problem: `it has ${devices.pcis.length} PCI devices, ${devices.nets.length} network devices and ${devices.cpus.length} CPUs`,
      consequence: 'NCCL has room for 640 of a kind',
      remedy: 'a file is about one host, or one NVLink domain',
    });
    return findings.list();
  }
  let graph: Inventory['graph'];
  const system = systemOf(root, parameters, findings, devices);
  if (system !== undefined) {
    // One-sided links are noticed only when paths are computed.
    const measure = attempt(findings, 'nccl-fails', () => new Measure(root, system, parameters));
    if (measure !== undefined) graph = { system, measure };
  }
  const inventory: Inventory = { root, ...devices, parameters, graph, findings };

  checkDevices(inventory);
  checkCpus(inventory);
  checkLinks(inventory);
  checkNetwork(inventory);
  checkNvlinks(inventory);
  attempt(findings, 'nccl-fails', () => {
    checkCards(inventory);
  });
  if (options.machine !== undefined) checkAgainstMachine(inventory, options.machine);
  if (options.graph !== undefined) checkGraph(inventory, options.graph.root, options.graph.fileName);
  return findings.list();
}

/** The graph; undefined without a further finding if other findings explain its absence. */
function systemOf(
  root: XmlElement,
  parameters: Parameters,
  findings: Findings,
  devices: Pick<Inventory, 'cpus' | 'gpus'>,
): System | undefined {
  const isSkeleton = !devices.gpus.some(({ element }) => element.attributes.has('rank'));
  if (isSkeleton && devices.cpus.length > 0) return undefined;
  return attempt(findings, 'nccl-fails', () => buildSystem(root, { parameters }));
}

function attempt<Result>(findings: Findings, code: 'impossible' | 'nccl-fails', action: () => Result): Result | undefined {
  try {
    return action();
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    findings.add(
      { element: 'the file', line: error.line ?? 0, column: error.column ?? 0 },
      {
        code,
        severity: 'error',
        problem: error.message,
        consequence:
          code === 'impossible'
            ? 'what NCCL computes from it is about no machine'
            : 'NCCL fails when it builds its graph: 0 GB/s',
        remedy:
          code === 'impossible' ? 'correct this element' : 'correct this element; NCCL_TOPO_DUMP_FILE shows how NCCL writes it',
      },
    );
    return undefined;
  }
}
